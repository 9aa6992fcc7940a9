# SPDX-License-Identifier: Apache-2.0
"""The audit trail: entries with search, and whether the ledger is as its entries say."""

from csv import writer
from dataclasses import fields
from io import StringIO
from typing import Annotated

from fastapi import Depends, Response

from reticent_server.chain.repository import TrailPart
from reticent_server.console.looking import Signed
from reticent_server.domain.roles import Act
from reticent_server.pipeline import oversight
from reticent_server.web.forms import whole
from reticent_server.web.routing import pages_router
from reticent_server.web.spreadsheets import cell
from reticent_server.web.visits import SignedFor, Visit

router = pages_router("console")

MOST = 5_000
"""Entries of an export: a file that a spreadsheet opens at once; `reticent ledger export` writes
all."""

COLUMNS = tuple(each.name for each in fields(oversight.TrailRow))
PARTS = {
    TrailPart.ALL: "everything",
    TrailPart.RELEASES: "releases",
    TrailPart.BUDGETS: "budgets",
    TrailPart.ACTS: "administrative acts",
}
_LONGEST = 100


@router.get("/ledger")
def show(visit: Signed) -> Response:
    """Entries, newest first; for htmx, the table alone."""
    query = visit.request.query_params
    text, part = _wanted(visit)
    page = oversight.trail(visit.services, text, before=whole(query.get("before")), part=part)
    is_part = visit.request.headers.get("hx-target") == "entries"
    template = "_entries.html" if is_part else "ledger.html"
    head = visit.services.ledger.head()
    asked = oversight.asked(visit.services, page.rows)
    return visit.page(
        template,
        text=text,
        part=part,
        parts=PARTS,
        page=page,
        rows=page.rows,
        head=head,
        asked=asked,
    )


def _wanted(visit: Visit) -> tuple[str, TrailPart]:
    """The text that is searched for, and the part of the trail; all of it for one that there is
    not."""
    query = visit.request.query_params
    known = {part.value: part for part in PARTS}
    part = known.get(query.get("show", ""), TrailPart.ALL)
    return query.get("q", "").strip()[:_LONGEST], part


@router.get("/ledger.csv")
def export(visit: Annotated[Visit, Depends(SignedFor(Act.EXPORT))]) -> Response:
    """The last entries that name a text, as CSV; no cell begins as a formula of a spreadsheet
    would."""
    text, part = _wanted(visit)
    rows = oversight.trail(visit.services, text, limit=MOST, part=part).rows
    asked = oversight.asked(visit.services, rows)
    out = StringIO()
    lines = writer(out)
    lines.writerow([*COLUMNS, "asked"])
    for row in rows:
        cells = [str(getattr(row, name)) for name in COLUMNS] + [asked.get(row.release_id, "")]
        lines.writerow(map(cell, cells))
    headers = {"Content-Disposition": 'attachment; filename="audit-trail.csv"'}
    return visit.keep(
        Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)
    )


@router.get("/ledger/verify")
def verify(visit: Signed) -> Response:
    """Recomputes every hash, account and release; for htmx, the verdict alone."""
    anchored = visit.request.query_params.get("head", "").strip()[:_LONGEST]
    ledger = visit.services.ledger
    problems = ledger.verify(*([anchored] if anchored else []))
    is_part = "hx-request" in visit.request.headers
    template = "_verdict.html" if is_part else "verify.html"
    return visit.page(template, problems=problems, head=ledger.head(), anchored=anchored)
