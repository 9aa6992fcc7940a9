# SPDX-License-Identifier: Apache-2.0
"""A new table: a file is sent, what was understood of it is accepted, its schema is filled in
beside its first rows, and it is loaded.

The only pages that show private cells, and only to the curator who has sent the file: everybody
else is told that there is no such file. The rows are read by `intake`; no page of an analyst, and
no other page of the console, leads there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, cast

from fastapi import Depends, Request, Response

from reticent_server.console.schema_form import (
    ACCEPTED,
    DATE,
    OPEN,
    READ,
    WAS,
    CheckedForm,
    check,
    proposed_fields,
    reading_fields,
    reading_in,
)
from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import CuratorError, InvalidRequest, LibraryMissing, ReticentError
from reticent_server.intake.loading import FileToLoad
from reticent_server.intake.registering import folders
from reticent_server.intake.staged import (
    UNREADABLE,
    Incoming,
    ProposedColumn,
    StagedFile,
    Staging,
    load,
    look,
    staging,
)
from reticent_server.intake.versions import LoadedVersion, Named
from reticent_server.vault.extras import readable
from reticent_server.web.forms import read_long_form
from reticent_server.web.routing import pages_router
from reticent_server.web.uploads import FileForm, receive
from reticent_server.web.visits import SignedFor, Visit, posted_again, posted_for, taken_once

router = pages_router("console")

Loading = Annotated[Visit, Depends(SignedFor(Act.LOAD))]
Referring = Annotated[Visit, Depends(posted_for(Act.LOAD))]
Editing = Annotated[Visit, Depends(posted_for(Act.LOAD, read_long_form))]
Drafting = Annotated[Visit, Depends(posted_again(Act.LOAD, read_long_form))]

_NOT_KEPT = ("form_token", "action")
_OF_COLUMN = re.compile(r"c\d+\.")
_NAME_LENGTH = 40
"""Characters of a data set's name that is made from a file's."""

_HEADINGS: Mapping[str, str] = {
    **{kind: kind.traits.heading for kind in ColumnKind if kind.is_number},
    DATE: "Dates",
    **{kind: kind.traits.heading for kind in ColumnKind if not kind.is_number},
}
_LEFT_OUT = "Not loaded"
_INCOMPLETE = "The schema is not complete yet."
_BAD = 422
"""For what a curator can mend in the form or in the file."""


@router.get("/tables")
def tables(visit: Loading) -> Response:
    """Files that wait, and a form for another."""
    return _tables(visit)


def _tables(visit: Visit, problem: ReticentError | None = None) -> Response:
    settings = visit.services.settings
    return visit.page(
        "tables.html",
        problem.status if problem else 200,
        waiting=staging(settings, visit.services.clock).of(_owner(visit)),
        problem=problem.detail if problem else "",
        limit=settings.upload_bytes,
        formats=readable(),
        folders=[folder.name for folder in folders(settings.sources_folder)],
    )


@router.post("/tables")
async def send(visit: Loading, request: Request) -> Response:
    """Takes a file as it comes; its form's token is known before the first byte is kept."""
    settings = visit.services.settings
    place = staging(settings, visit.services.clock)

    def opened(fields: Mapping[str, str], name: str) -> Incoming:
        taken_once(visit, fields)
        return place.receive(_owner(visit), name)

    form = FileForm(request.headers.get("content-type", ""), opened, settings.upload_bytes)
    await receive(request, form, settings.upload_bytes, settings.upload_seconds)
    staged = cast(Incoming, form.sink).keep()
    return visit.redirect(f"/console/tables/{staged.id}")


@router.post("/tables/folder")
def refer(visit: Referring) -> Response:
    """Begins the schema of a folder of Parquet files, which stay where they are."""
    known = {folder.name: folder for folder in folders(visit.services.settings.sources_folder)}
    folder = known.get(visit.fields.get("folder", ""))
    if folder is None:
        return _tables(visit, InvalidRequest("Choose one of the folders."))
    staged = _place(visit).refer(_owner(visit), folder)
    return visit.redirect(f"/console/tables/{staged.id}")


@router.get("/tables/{file_id}")
def table(visit: Loading, file_id: str) -> Response:
    """What is understood of the file; once that is accepted, the schema's form beside the first
    rows, as it was left.
    """
    staged = _staged(visit, file_id)
    is_new = not staged.stays and not any(name in staged.fields for name in (ACCEPTED, "c0.kind"))
    return _understood(visit, staged) if is_new else _editor(visit, staged)


@router.post("/tables/{file_id}/draft")
def draft(visit: Drafting, file_id: str) -> Response:
    """Keeps what is filled in, while it is being filled in."""
    _fill_in(visit, file_id)
    return visit.keep(Response(status_code=204))


@router.post("/tables/{file_id}")
def edit(visit: Editing, file_id: str) -> Response:
    """Checks the schema, loads the file with it, or gives the file up."""
    action = visit.fields.get("action", "")
    if action == "discard":
        _place(visit).discard(_staged(visit, file_id))
        return visit.redirect("/console/tables")
    staged = _fill_in(visit, file_id)
    done = _ACTIONS.get(action)
    return done(visit, staged) if done else _editor(visit, staged, is_checked=True)


def _understood(visit: Visit, staged: StagedFile, problem: str = "", status: int = 200) -> Response:
    """How the file is read and what its columns may be, to be accepted or read in another way."""
    fields = OPEN | dict(staged.fields)
    try:
        said = reading_in(fields)
        proposal = look(visit.services.settings, staged, said)
    except CuratorError as error:
        if not isinstance(error, LibraryMissing):
            staged = _place(visit).fill_in(staged, {**staged.fields, UNREADABLE: "yes"})
        return _unreadable(visit, staged, error, fields)
    if not staged.waits:
        kept = {k: v for k, v in staged.fields.items() if k != UNREADABLE}
        _place(visit).fill_in(staged, kept)
    return visit.page(
        "table_understood.html",
        status,
        staged=staged,
        proposal=proposal,
        problem=problem,
        fields=fields | reading_fields(proposal.reading),
        formats=readable(),
        dataset=fields["dataset"] or _name_of(staged),
    )


def _name_of(staged: StagedFile) -> str:
    """A name for the data set, from the file's."""
    made = re.sub(r"[^a-z0-9]+", "_", staged.path.stem.lower()).strip("_")[:_NAME_LENGTH]
    return made if made[:1].isalpha() else ""


def _read_again(visit: Visit, staged: StagedFile) -> Response:
    """With what is said of it now; what was accepted is not any more."""
    fields = {k: v for k, v in staged.fields.items() if k != ACCEPTED}
    return _understood(visit, _place(visit).fill_in(staged, fields))


def _accept(visit: Visit, staged: StagedFile) -> Response:
    """Keeps what was understood, and fills the schema's form with it; asks again where something
    must be said first.
    """
    fields = {k: v for k, v in staged.fields.items() if k not in {ACCEPTED, UNREADABLE}}
    staged = _place(visit).fill_in(staged, fields)
    try:
        proposal = look(visit.services.settings, staged, reading_in(fields))
    except CuratorError:
        return _understood(visit, staged)
    if not fields.get("dataset"):
        return _understood(visit, staged, "Name the data set.", _BAD)
    if proposal.questions:
        return _understood(visit, staged, " ".join(proposal.questions), _BAD)
    made = proposed_fields(proposal.columns) | reading_fields(proposal.reading)
    rest = {name: text for name, text in fields.items() if not _OF_COLUMN.match(name)}
    _place(visit).fill_in(staged, rest | made | {ACCEPTED: "yes"})
    return visit.redirect(f"/console/tables/{staged.id}")


def _choose(visit: Visit, staged: StagedFile, use: str) -> Response:
    """use: "yes" for all columns, or empty for none."""
    columns = look(visit.services.settings, staged, reading_in(staged.fields)).columns
    chosen = {f"c{i}.use": use for i, column in enumerate(columns) if column.kind}
    _place(visit).fill_in(staged, {**staged.fields, **chosen})
    return visit.redirect(f"/console/tables/{staged.id}#columns")


def _load(visit: Visit, staged: StagedFile) -> Response:
    """Loads it, or shows the form again with what stands in the way."""
    try:
        loaded = _loaded(visit, staged)
    except CuratorError as error:
        return _editor(visit, staged, error.detail, _BAD, is_checked=True)
    except ReticentError as error:
        return _editor(visit, staged, error.detail, error.status, is_checked=True)
    _place(visit).discard(staged)
    return visit.page(
        "table_loaded.html", 201, loaded=loaded, staged=staged, clipped=_clipped(loaded)
    )


_ACTIONS: Mapping[str, Callable[[Visit, StagedFile], Response]] = {
    "load": _load,
    "read": _read_again,
    "accept": _accept,
    "all": partial(_choose, use="yes"),
    "none": partial(_choose, use=""),
}


def _loaded(visit: Visit, staged: StagedFile) -> LoadedVersion:
    """Raises CuratorError, too where the schema is not whole; what load_file does."""
    services, fields = visit.services, staged.fields
    form = check(look(services.settings, staged, reading_in(fields)).columns, fields)
    if form.schema is None:
        raise CuratorError(form.problem or _INCOMPLETE)
    named = Named(
        fields.get("dataset", ""),
        fields.get("population") or None,
        fields.get("separate") or None,
        fields.get("publishes") == "yes",
    )
    strict = fields.get("strict") == "yes"
    wanted = FileToLoad(named, staged.path, form.schema, strict=strict)
    return load(services.settings, services.catalog, staged, wanted, by=visit.actor)


def _clipped(loaded: LoadedVersion) -> list[tuple[str, int, float]]:
    """(column, values outside its bounds, their share), for the curator alone."""
    slots = loaded.facts.slots
    return [(name, count, count / slots) for name, count in loaded.clipped.items() if count]


def _editor(
    visit: Visit,
    staged: StagedFile,
    problem: str = "",
    status: int = 200,
    *,
    is_checked: bool = False,
) -> Response:
    """is_checked: whether what is wrong with the fields is said; a form that nobody has sent is
    only open.
    """
    try:
        proposal = look(visit.services.settings, staged, reading_in(staged.fields))
    except CuratorError as error:
        return _understood_or(visit, staged, error)
    columns = proposal.columns
    fields = OPEN | (dict(staged.fields) or proposed_fields(columns))
    form = check(columns, fields) if is_checked else CheckedForm()
    return visit.page(
        "table.html",
        status,
        staged=staged,
        columns=columns,
        sections=_sections(columns, fields),
        rows=proposal,
        said=reading_in(fields).said,
        fields=fields,
        errors=form.errors,
        problem=problem or form.problem,
        is_ready=form.schema is not None and not problem,
        kinds=[*(kind.value for kind in ColumnKind), DATE],
        versions={facts.name: facts.version for facts in visit.services.catalog.list()},
    )


def _understood_or(visit: Visit, staged: StagedFile, error: CuratorError) -> Response:
    """A folder's files are not read in another way; a file that was sent may be."""
    if staged.stays:
        return _unreadable(visit, staged, error, OPEN)
    return _understood(visit, staged)


def _unreadable(
    visit: Visit, staged: StagedFile, error: CuratorError, fields: Mapping[str, str]
) -> Response:
    return visit.page(
        "table_unreadable.html",
        _BAD,
        staged=staged,
        problem=error.detail,
        fields=fields,
        formats=readable(),
    )


def _sections(
    columns: Sequence[ProposedColumn], fields: Mapping[str, str]
) -> list[tuple[str, list[int]]]:
    """(heading, positions of its columns): by kind, and at the end those that are not loaded."""
    headings = [*_HEADINGS.values(), _LEFT_OUT]
    sections: dict[str, list[int]] = {heading: [] for heading in headings}
    for i in range(len(columns)):
        kind = fields.get(f"c{i}.kind", "") if fields.get(f"c{i}.use") == "yes" else ""
        other = _HEADINGS[ColumnKind.CATEGORICAL] if kind else _LEFT_OUT
        sections[_HEADINGS.get(kind, other)].append(i)
    return [(heading, inside) for heading, inside in sections.items() if inside]


def _fill_in(visit: Visit, file_id: str) -> StagedFile:
    """With what was sent; how the file is read stays where nothing was sent of it, and is said only
    where it is not what was understood anyhow (`was.…`): a file is understood anew where another
    part of it is said.
    """
    staged, fields = _staged(visit, file_id), visit.fields
    whole = staged.fields if fields.get("action") == "read" else {}
    kept = {name: text for name, text in staged.fields.items() if name.startswith(READ)}
    sent = {
        name: text
        for name, text in fields.items()
        if name not in _NOT_KEPT
        and not name.startswith(WAS)
        and (
            name in kept or text != fields.get(name.replace(READ, WAS, 1), None) or READ not in name
        )
    }
    return _place(visit).fill_in(staged, {**whole, **kept, **sent})


def _staged(visit: Visit, file_id: str) -> StagedFile:
    return _place(visit).one(_owner(visit), file_id)


def _place(visit: Visit) -> Staging:
    return staging(visit.services.settings, visit.services.clock)


def _owner(visit: Visit) -> str:
    return cast(Principal, visit.holder).id
