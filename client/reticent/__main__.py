# SPDX-License-Identifier: Apache-2.0
"""`python -m reticent`: a bundle of questions is planned, run, and rebuilt from its archive.

python -m reticent plan bundle.yaml --url https://stats.example.org
python -m reticent run bundle.yaml results --url https://stats.example.org --epsilon 3
python -m reticent rebuild results
python -m reticent pooled protocol.json pool.json --site north=https://a.example/bp --site …

The key is that of RETICENT_KEY, or of the file that RETICENT_KEY_FILE names. `pooled` takes each
site's from RETICENT_KEY_NORTH and so on, or asks for it; keys are kept in memory alone.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from getpass import getpass
from urllib.parse import unquote

from reticent._archive import Archive
from reticent._bundle import Bundle, bundle
from reticent._client import Client
from reticent._errors import InvalidQuery, ReticentError
from reticent._pooled.study import pooled


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        print(given.command(given))  # noqa: T201 - its output
    except (ReticentError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - its output
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reticent", description=" ".join(__doc__.split("\n\n")[0].split())
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="what a bundle would cost and bring; free")
    run = commands.add_parser("run", help="ask every question once, and keep the answers")
    for each in (plan, run):
        each.add_argument("file", help="the bundle: YAML or JSON")
    run.add_argument("folder", help="where the archive is kept")
    for each in (plan, run):
        each.add_argument("--url", required=True, help="the server's address")
        each.add_argument("--dataset", help="the data set's name; default: the bundle's")
        each.add_argument("--epsilon", type=float, help="the most that all may cost together")
    run.add_argument("--yes", action="store_true", help="spend what the plan says, unasked")
    rebuild = commands.add_parser("rebuild", help="make tables and figures again, without a server")
    rebuild.add_argument("folder", help="an archive")
    several = commands.add_parser("pooled", help="a study of several servers, by a protocol")
    several.add_argument("file", help="the protocol: JSON")
    several.add_argument("out", help="where the pooled study is saved, for reticent.load_pooled")
    several.add_argument(
        "--site",
        action="append",
        required=True,
        metavar="NAME=URL/DATASET",
        help="a site of the protocol; give it for each",
    )
    several.add_argument("--weights", choices=("people", "precision"), default="people")
    several.add_argument("--resume", action="store_true", help="some sites have answered already")
    several.add_argument("--ols", action="append", default=[], help="a formula to fit; free")
    several.set_defaults(command=_pooled)
    plan.set_defaults(command=_plan)
    run.set_defaults(command=_run)
    rebuild.set_defaults(command=_rebuild)
    return parser


def _plan(given: argparse.Namespace) -> str:
    asked = bundle(given.file)
    with Client(given.url) as client:
        planned = asked.plan(client.dataset(_name(asked, given)), given.epsilon)
    return str(planned.summary())


def _run(given: argparse.Namespace) -> str:
    asked = bundle(given.file)
    with Client(given.url) as client:
        archive = asked.run(
            client.dataset(_name(asked, given)),
            given.folder,
            epsilon=given.epsilon,
            confirm=True if given.yes else None,
        )
    return "\n".join(map(str, archive.rebuild()))


def _rebuild(given: argparse.Namespace) -> str:
    return "\n".join(map(str, Archive.read(given.folder).rebuild()))


def _pooled(given: argparse.Namespace) -> str:
    with ExitStack() as stack:
        datasets = {}
        for text in given.site:
            name, url, dataset = _site(text)
            client = stack.enter_context(Client(url, key=_site_key(name)))
            datasets[name] = client.dataset(dataset)
        found = pooled(given.file, datasets, weights=given.weights, resume=given.resume)
    found.save(given.out)
    return "\n\n".join(str(each.summary()) for each in (found, *map(found.ols, given.ols)))


def _site(text: str) -> tuple[str, str, str]:
    """Name, server's address and data set of NAME=URL/DATASET."""
    name, _, address = text.partition("=")
    url, _, dataset = address.rpartition("/")
    if not (name and dataset and url.startswith(("http://", "https://"))):
        raise InvalidQuery("A site is given as NAME=URL/DATASET: north=https://a.example/bp.")
    return name, url, unquote(dataset)


def _site_key(name: str) -> str:
    variable = "RETICENT_KEY_" + "".join(c if c.isalnum() else "_" for c in name).upper()
    return os.environ.get(variable) or getpass(f"Key at {name}: ")


def _name(asked: Bundle, given: argparse.Namespace) -> str:
    name = given.dataset or asked.dataset
    if name is None:
        raise InvalidQuery("The bundle names no data set: give --dataset.")
    return str(name)


if __name__ == "__main__":
    sys.exit(main())
