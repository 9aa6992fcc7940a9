# SPDX-License-Identifier: Apache-2.0
"""The audit trail: entries with search, and whether the ledger is as its entries say."""

from fastapi import Response

from reticent_server.console.looking import Signed
from reticent_server.pipeline import oversight
from reticent_server.web.forms import whole
from reticent_server.web.routing import pages_router

router = pages_router("console")

_LONGEST = 100


@router.get("/ledger")
def show(visit: Signed) -> Response:
    """Entries, newest first; for htmx, the table alone."""
    query = visit.request.query_params
    text = query.get("q", "").strip()[:_LONGEST]
    page = oversight.trail(visit.services, text, before=whole(query.get("before")))
    is_part = visit.request.headers.get("hx-target") == "entries"
    template = "_entries.html" if is_part else "ledger.html"
    head = visit.services.ledger.head()
    return visit.page(template, text=text, page=page, rows=page.rows, head=head)


@router.get("/ledger/verify")
def verify(visit: Signed) -> Response:
    """Recomputes every hash, account and release; for htmx, the verdict alone."""
    anchored = visit.request.query_params.get("head", "").strip()[:_LONGEST]
    ledger = visit.services.ledger
    problems = ledger.verify(*([anchored] if anchored else []))
    is_part = "hx-request" in visit.request.headers
    template = "_verdict.html" if is_part else "verify.html"
    return visit.page(template, problems=problems, head=ledger.head(), anchored=anchored)
