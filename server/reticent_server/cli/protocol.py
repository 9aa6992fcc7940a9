# SPDX-License-Identifier: Apache-2.0
"""`reticent protocol …`: what a pooled study asks of this site, and the curator's signature."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent_server.access.secret_places import place_of
from reticent_server.cli.analyst import tell
from reticent_server.cli.common import JsonFlag, command, minute, print_json, show, user
from reticent_server.domain.protocol import LARGEST, Agreed
from reticent_server.domain.roles import Act
from reticent_server.errors import CuratorError
from reticent_server.opening import open_books
from reticent_server.pipeline.books import Books
from reticent_server.settings import Settings

app = typer.Typer(
    help="Check, sign and withdraw protocols of pooled studies.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(help="The protocol's file.")]
DatasetName = Annotated[str, typer.Option(help="The data set that it asks about here.")]
Site = Annotated[str, typer.Option(help="What the protocol calls this site.")]


@app.command()
@command(Act.LOOK)
def check(
    file: File,
    dataset: Annotated[
        str | None, typer.Option(help="Hold it against this data set, too; needs --site.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="What the protocol calls this site.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Verify a protocol's signatures; with a data set, also its columns, bounds, levels and what
    the study would cost there. Reads no private cell and charges nothing."""
    if (dataset is None) != (site is None):
        raise CuratorError("Give both --dataset and --site, or neither.")
    agreed = _read(file)
    told: dict[str, Any] = {
        "digest": agreed.digest,
        "sites": list(agreed.sites),
        "signed": _signed(agreed),
    }
    if dataset is not None and site is not None:
        told["cost"] = _would_cost(open_books(Settings()), agreed, dataset, site)
    if as_json:
        print_json(told)
        return
    typer.echo(f"digest {agreed.digest}")
    for name in agreed.sites:
        key = told["signed"].get(name)
        typer.echo(f"{name}: {'not signed' if key is None else f'signed with the key {key}'}")
    if "cost" in told:
        typer.echo(f"As agreed at {site}. The study would cost {told['cost']}.")


@app.command()
@command(Act.SET_POLICY)
def accept(file: File, dataset: DatasetName, site: Site, as_json: JsonFlag = False) -> None:
    """Check a protocol as `protocol check` does, sign it in its file, and let releases name it."""
    from reticent_server.certificate.signing import PROTOCOL, fingerprint, sign  # noqa: PLC0415 - takes a second

    agreed, settings = _read(file), Settings()
    _signed(agreed)
    books, place = open_books(settings), place_of(settings)
    _would_cost(books, agreed, dataset, site)
    key, stated = fingerprint(place), agreed.key(site)
    if stated is not None and stated != key:
        raise CuratorError(f"The protocol says that {site} signs with another key than {key}.")
    header, _, signature = sign(place, agreed.canonical, PROTOCOL).split(".")
    detached = f"{header}..{signature}"
    books.protocols.accept(agreed, dataset, site, detached, by=user())
    _write(file, agreed, site, detached)
    told = {"digest": agreed.digest, "dataset": dataset, "site": site, "key": key}
    tell(f"Accepted and signed with the key {key}.", told, as_json=as_json)


@app.command("list")
@command(Act.LOOK)
def list_protocols(as_json: JsonFlag = False) -> None:
    """List the protocols that were accepted here, the last first."""
    rows: list[dict[str, Any]] = []
    for one in open_books(Settings()).protocols.all():
        row = {name: value for name, value in asdict(one).items() if name != "agreed"}
        rows.append(row | {"title": one.agreed.title})
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            "digest": row["digest"],
            "title": row["title"],
            "data set": row["dataset"],
            "site": row["site"],
            "accepted": f"{minute(row['accepted_at'])} by {row['accepted_by']}",
            "state": "holds"
            if row["withdrawn_at"] is None
            else f"withdrawn {minute(row['withdrawn_at'])}",
        }
        for row in rows
    ]
    show(shown, as_json=False)


@app.command()
@command(Act.SET_POLICY)
def withdraw(
    digest: Annotated[str, typer.Argument(help="Its digest; `protocol list` shows them.")],
    dataset: DatasetName,
    as_json: JsonFlag = False,
) -> None:
    """Refuse further releases that name the protocol; what was released stays."""
    open_books(Settings()).protocols.withdraw(digest, dataset, by=user())
    tell("Withdrawn.", {"digest": digest, "dataset": dataset}, as_json=as_json)


def _read(file: Path) -> Agreed:
    try:
        with file.open("rb") as opened:
            return Agreed.from_text(opened.read(LARGEST + 1))
    except OSError as error:
        raise CuratorError(f"{file} cannot be read: {error.strerror}.") from None


def _signed(agreed: Agreed) -> dict[str, str]:
    """The fingerprint of the key that signed, by site. Raises CuratorError for a signature that is
    not of this protocol, or by another key than the protocol states.
    """
    from reticent_server.certificate.signing import PROTOCOL, opened_detached  # noqa: PLC0415 - takes a second

    found: dict[str, str] = {}
    for site, text in agreed.signatures:
        if site not in agreed.sites:
            raise CuratorError(f"{site} has signed, and is no site of the protocol.")
        found[site] = opened_detached(text, agreed.canonical, PROTOCOL)
        if agreed.key(site) not in (None, found[site]):
            raise CuratorError(f"{site} is to sign with another key than {found[site]}.")
    return found


def _would_cost(books: Books, agreed: Agreed, dataset: str, site: str) -> str:
    """What the study takes there. Raises CuratorError for what does not agree, and as planning
    does.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - the planner takes two seconds to import

    from reticent_server.pipeline import planning  # noqa: PLC0415
    from reticent_server.web.bodies import RequestBody  # noqa: PLC0415

    if site not in agreed.sites:
        raise CuratorError(f"The protocol's sites are {', '.join(agreed.sites)}.")
    facts, stated = books.catalog.facts(dataset), agreed.privacy(site)
    problems = agreed.problems(site, facts.schema)
    if problems:
        raise CuratorError(f"{dataset} is not as agreed. {' '.join(problems)}")
    body = {"dataset": dataset, "query": agreed.question(site), "privacy": asdict(stated)}
    try:
        ask = RequestBody.model_validate_json(json.dumps(body)).ask()
    except ValidationError:
        raise CuratorError("The protocol's study is no question that this version knows.") from None
    planning.plan(facts, ask.query, ask.privacy)
    return f"epsilon {stated.epsilon:g}, delta {stated.delta or facts.default_delta:g}"


def _write(file: Path, agreed: Agreed, site: str, signature: str) -> None:
    """The file with the site's signature, and those of the other sites as they were."""
    signatures = dict(agreed.signatures) | {site: signature}
    listed = [{"site": name, "jws": text} for name, text in signatures.items()]
    content = dict(agreed.document) | {"signatures": listed}
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(file)
    except OSError as error:
        raise CuratorError(
            f"{file} cannot be written: {error.strerror}. The protocol is accepted; the signature "
            "is in `reticent protocol list --json`."
        ) from None
