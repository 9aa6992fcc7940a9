# SPDX-License-Identifier: Apache-2.0
"""Table 1: the page that asks for it, and a description's release as journals print it.

What is charged is the kind `describe`, forecast and run on the data set's page; here its numbers
are only put into cells, by the client, so that Python prints the same table.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Response

from reticent_server.errors import InvalidRequest, NotFound
from reticent_server.kinds.describe.kind import KIND
from reticent_server.pipeline import browse
from reticent_server.pipeline.authorising import authorised
from reticent_server.web.routing import pages_router
from reticent_server.web.tables import shown
from reticent_server.workbench import exports
from reticent_server.workbench.asking import Asking, asker
from reticent_server.workbench.columns import codebook, labels

router = pages_router("workbench")

FORMS = ("markdown", "html", "latex", "word")
"""Formats of the printed table; its numbers are in the release's own CSV."""


@router.get("/datasets/{name}/table-1")
def ask(visit: Asking, name: str) -> Response:
    """Columns and a group to choose; what is chosen leads to its forecast, with the price."""
    query = visit.request.query_params
    seats = visit.services.projects.seats(asker(visit).id, name)
    own = visit.services.access.granted(asker(visit).id, name)
    project = None if own or not seats else seats[0][1]
    facts = authorised(visit.services, asker(visit), name, project).facts
    known = {column.name for column in facts.schema.columns}
    chosen = [each for each in query.getlist("column") if each in known]
    if "build" in query and chosen:
        fields = {
            "kind": KIND.name,
            "q.columns": ", ".join(chosen),
            "q.by": query.get("by", ""),
            "epsilon": query.get("epsilon", ""),
        }
        return visit.redirect(f"/workbench/datasets/{quote(name)}?{urlencode(fields)}#forecast")
    problem = "Choose the columns." if "build" in query else ""
    return visit.page(
        "table_one_ask.html",
        422 if problem else 200,
        facts=facts,
        rows=codebook(facts),
        groups=[c.name for c in facts.schema.columns if c.levels or c.is_dummy],
        problem=problem,
    )


@router.get("/releases/{release_id}/table-1")
def show(visit: Asking, release_id: str) -> Response:
    """The table of a description that was released."""
    document = _description(visit, release_id)
    return visit.page(
        "table_one.html",
        release=document,
        result=shown(_printed(visit, document)["result"]),
        formats={k: v for k, v in exports.formats().items() if k in FORMS},
    )


@router.get("/releases/{release_id}/table-1/{form}")
def export(visit: Asking, release_id: str, form: str) -> Response:
    """The table as a file."""
    document = _description(visit, release_id)
    if form not in FORMS or form not in exports.formats():
        raise NotFound("There is no such format here.")
    made = exports.EXPORTS[form]
    name = f'attachment; filename="{document["id"]}-table-1{made.ending}"'
    content = made.write(_printed(visit, document), visit.server_url)
    return visit.keep(
        Response(content, media_type=made.media_type, headers={"Content-Disposition": name})
    )


def is_description(release: Mapping[str, Any]) -> bool:
    """Whether a release is printed as Table 1."""
    return release["query"]["kind"] == KIND.name and release["result"] is not None


def _description(visit: Asking, release_id: str) -> dict[str, Any]:
    stored = browse.release(visit.services, asker(visit), release_id)
    document: dict[str, Any] = json.loads(stored)
    if not is_description(document):
        raise InvalidRequest("Table 1 is made of a description: ask for one first.")
    return document


def _printed(visit: Asking, document: Mapping[str, Any]) -> dict[str, Any]:
    """The release with the table's cells in the place of its result."""
    from reticent.kinds.describe import Description  # noqa: PLC0415 - a tenth of a second

    about = Description(document)
    known = labels(visit.services, asker(visit), document["dataset"])
    table = about.tbl_summary(labels=known)
    by = f"{known.get(about.by, about.by)} = " if about.by else ""
    named = {each: f"{by}{each}" for each in about.groups[1:]}
    cells = {
        named.get(head, head): [row[k] for row in table.rows]
        for k, head in enumerate(table.header[1:], 1)
    }
    notes = [table.notes[0], *table.notes[len(about.table().notes) :]]
    result = {
        "characteristic": [row[0] for row in table.rows],
        **cells,
        "warnings": [*(document["result"].get("warnings") or ()), *notes],
    }
    return {**document, "result": result}
