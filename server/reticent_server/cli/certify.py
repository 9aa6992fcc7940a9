# SPDX-License-Identifier: Apache-2.0
"""`reticent certify`: what this installation promises, replayed on its versions and signed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent_server.access.secret_places import place_of
from reticent_server.cli.common import JsonFlag, command, err, print_json, waiting
from reticent_server.domain.roles import Act
from reticent_server.domain.strict_json import parse
from reticent_server.errors import CuratorError
from reticent_server.opening import anchors_of, open_books
from reticent_server.settings import Settings

LARGEST = 8 << 20
"""Bytes of a certificate: some hundred times the usual."""

_NO_CERTIFICATE = "What was signed is no certificate that this version can read."


@command(Act.INSTALL)
def certify(
    out: Annotated[
        Path, typer.Option(help="Where to write: NAME.jws, signed, and NAME.md, to be read.")
    ] = Path("reticent-certificate"),
    check: Annotated[
        Path | None, typer.Option(help="Check this signed certificate, and write nothing.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="With --check: the fingerprint that its signer published.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Replay this kind alone (give it several times); else all, in a minute or two."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Replay the search for every kind's farthest units on the versions that are installed, and
    write what this installation promises as a signed document and as a page. Exit status 1 if a
    pair loses more than it is charged, or the ledger is not as its entries say.
    """
    if check is not None:
        _check(check, key, as_json=as_json)
        return
    document, fingerprint = _make(out, kind)
    if as_json:
        print_json(document)
    else:
        typer.echo(f"Written: {out}.jws and {out}.md. Signed with the key {fingerprint}.")
    _end(document)


def _make(out: Path, names: Sequence[str] | None) -> tuple[Mapping[str, Any], str]:
    from reticent_server.certificate.document import document_of, page_of  # noqa: PLC0415 - takes a second
    from reticent_server.certificate.replay import kinds_of, replayed  # noqa: PLC0415
    from reticent_server.certificate.signing import CERTIFICATE, fingerprint, sign  # noqa: PLC0415

    settings = Settings()
    books, place = open_books(settings), place_of(settings)
    with waiting("Verifying the ledger"):
        problems = books.ledger.verify(*(anchor.hash for anchor in anchors_of(settings)))
    with waiting("Replaying every kind's search"):
        replays = list(replayed(kinds_of(names)))
    document = document_of(
        books, replays, problems, books.clock.now().isoformat(timespec="seconds")
    )
    payload, known = json.dumps(document, allow_nan=False).encode(), fingerprint(place)
    signed = sign(place, payload, CERTIFICATE)
    _write(out.with_name(f"{out.name}.jws"), f"{signed}\n")
    _write(out.with_name(f"{out.name}.md"), page_of(document, known))
    return document, known


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise CuratorError(f"{path} cannot be written: {error.strerror}.") from None


def _check(path: Path, key: str | None, *, as_json: bool) -> None:
    from reticent_server.certificate.signing import CERTIFICATE, opened  # noqa: PLC0415

    payload, fingerprint = opened(_read(path), CERTIFICATE)
    if key is not None and key != fingerprint:
        raise CuratorError(f"It is signed with another key: {fingerprint}.")
    document = _certificate(payload)
    if as_json:
        print_json(document)
    else:
        known = "the key that you named" if key else f"the key {fingerprint}: compare it"
        typer.echo(f"Not changed since {document['made_at']}; signed with {known}.")
    _end(document)


def _certificate(payload: bytes) -> Mapping[str, Any]:
    """What somebody has signed, who may be anybody. Raises CuratorError for what is no certificate,
    and for texts that would do something to the terminal they are printed on.
    """
    from reticent_server.certificate.document import FORMAT, MEMBERS  # noqa: PLC0415 - takes a second

    try:
        document: Mapping[str, Any] = parse(payload)
        said = [document["made_at"], *document["ledger"]["problems"]]
        for each in document["replay"]["kinds"]:
            said += [each["kind"], *each["beyond"]]
        known = (
            document["format"] == FORMAT
            and document.keys() == MEMBERS
            and all(isinstance(each, str) and each.isprintable() for each in said)
        )
        sound = all(isinstance(each["holds"], bool) for each in document["replay"]["kinds"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        known = sound = False
    if not (known and sound):
        raise CuratorError(_NO_CERTIFICATE)
    return document


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("ascii", "replace")
    except OSError as error:
        raise CuratorError(f"{path} cannot be read: {error.strerror}.") from None


def _end(document: Mapping[str, Any]) -> None:
    """Says what does not hold, with exit status 1."""
    kinds = [each for each in document["replay"]["kinds"] if not each["holds"]]
    wrong = [f"{each['kind']}: {', '.join(each['beyond'])}" for each in kinds]
    problems = [*wrong, *document["ledger"]["problems"]]
    for problem in problems:
        err.print(problem, markup=False)
    if problems:
        raise typer.Exit(1)
