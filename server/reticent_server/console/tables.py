# SPDX-License-Identifier: Apache-2.0
"""A new table: a file is sent, its schema is filled in beside its first rows, and it is loaded.

The only pages that show private cells, and only to the curator who has sent the file: everybody else is told that there
is no such file. The rows are read by `intake`; no page of an analyst, and no other page of the console, leads there.
"""

from collections.abc import Mapping
from typing import Annotated, cast

from fastapi import Depends, Request, Response

from reticent_server.console.schema_form import (
    DATE,
    OPEN,
    CheckedForm,
    check,
    proposed_fields,
)
from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import CuratorError, InvalidRequest, ReticentError
from reticent_server.intake.loading import FileToLoad
from reticent_server.intake.registering import folders
from reticent_server.intake.staged import Incoming, StagedFile, Staging, load, look, staging
from reticent_server.intake.versions import LoadedVersion, Named
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
    """The schema's form beside the file's first rows, as it was left."""
    return _editor(visit, _staged(visit, file_id))


@router.post("/tables/{file_id}/draft")
def draft(visit: Drafting, file_id: str) -> Response:
    """Keeps what is filled in, while it is being filled in."""
    _fill_in(visit, file_id)
    return visit.keep(Response(status_code=204))


@router.post("/tables/{file_id}")
def edit(visit: Editing, file_id: str) -> Response:
    """Checks the schema, loads the file with it, or gives the file up."""
    if visit.fields.get("action") == "discard":
        _place(visit).discard(_staged(visit, file_id))
        return visit.redirect("/console/tables")
    staged = _fill_in(visit, file_id)
    if visit.fields.get("action") == "load":
        return _load(visit, staged)
    return _editor(visit, staged, is_checked=True)


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


def _loaded(visit: Visit, staged: StagedFile) -> LoadedVersion:
    """Raises CuratorError, too where the schema is not whole; what load_file does."""
    services, fields = visit.services, staged.fields
    form = check(look(services.settings, staged).columns, fields)
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
    """is_checked: whether what is wrong with the fields is said; a form that nobody has sent is only open."""
    try:
        opened = look(visit.services.settings, staged)
    except CuratorError as error:
        return visit.page("table_unreadable.html", _BAD, staged=staged, problem=error.detail)
    form = check(opened.columns, staged.fields) if is_checked else CheckedForm()
    return visit.page(
        "table.html",
        status,
        staged=staged,
        columns=opened.columns,
        rows=opened.preview,
        fields=OPEN | dict(staged.fields or proposed_fields(opened.columns)),
        errors=form.errors,
        problem=problem or form.problem,
        is_ready=form.schema is not None and not problem,
        kinds=[*(kind.value for kind in ColumnKind), DATE],
        versions={facts.name: facts.version for facts in visit.services.catalog.list()},
    )


def _fill_in(visit: Visit, file_id: str) -> StagedFile:
    sent = {name: text for name, text in visit.fields.items() if name not in _NOT_KEPT}
    return _place(visit).fill_in(_staged(visit, file_id), sent)


def _staged(visit: Visit, file_id: str) -> StagedFile:
    return _place(visit).one(_owner(visit), file_id)


def _place(visit: Visit) -> Staging:
    return staging(visit.services.settings, visit.services.clock)


def _owner(visit: Visit) -> str:
    return cast(Principal, visit.holder).id
