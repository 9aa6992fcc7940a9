# SPDX-License-Identifier: Apache-2.0
"""Analysts and their keys: added, rotated, revoked."""

from typing import Annotated

from fastapi import Depends, Response

from reticent_server.access.service import Analyst
from reticent_server.console.looking import Signed
from reticent_server.console.pages import account
from reticent_server.domain.roles import Act
from reticent_server.errors import Conflict, InvalidRequest, ReticentError
from reticent_server.pipeline import oversight
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import SignedFor, Visit, posted_for

router = pages_router("console")

Managed = Annotated[Visit, Depends(posted_for(Act.MANAGE_ANALYSTS))]
Managing = Annotated[Visit, Depends(SignedFor(Act.MANAGE_ANALYSTS))]

_CHANGED = (
    "Her or his keys were changed since that page was shown; look at them again before you rotate. "
    "(Sending the same form twice would end the key that is in use.)"
)


@router.get("/analysts")
def analysts(visit: Signed) -> Response:
    """All analysts, and a form for a new one."""
    return _analysts(visit)


def _analysts(visit: Visit, status: int = 200, problem: str = "") -> Response:
    access = visit.services.access
    rows = [(analyst, access.grants(analyst.id)) for analyst in access.analysts()]
    given = visit.fields.get("name", "")
    return visit.page("analysts.html", status, rows=rows, problem=problem, given=given)


@router.post("/analysts")
def add(visit: Managed) -> Response:
    """A new analyst; the key is shown on this page, once."""
    name = visit.fields.get("name", "")
    try:
        _, key = visit.services.access.add_analyst(name, by=visit.actor)
    except ReticentError as error:
        return _analysts(visit, error.status, error.detail)
    return visit.page("key.html", 201, name=name, key=key, is_new=True)


@router.get("/analysts/{name}")
def analyst(visit: Signed, name: str) -> Response:
    """One analyst: keys, budgets, what was asked."""
    services = visit.services
    holder = services.access.analyst(name)
    balances = services.ledger.balances(holder.id)
    return visit.page(
        "analyst.html",
        analyst=holder,
        identities=services.identities.of(holder.id),
        accounts=[account(services, b) for b in balances],
        trails=[(b, oversight.account_trail(services, b)) for b in balances],
        datasets=[facts.name for facts in services.catalog.list()],
    )


@router.post("/analysts/{name}/rotate")
def rotate(visit: Managed, name: str) -> Response:
    """A new key, shown once. The form names the newest key that it knew of: a form that is sent
    twice would otherwise end the key that the analyst uses."""
    holder = visit.services.access.analyst(name)
    if visit.fields.get("newest_key", "") != (holder.newest_key or ""):
        raise Conflict(_CHANGED)
    drop_old = visit.fields.get("drop_old") == "yes"
    key = visit.services.access.rotate(name, by=visit.actor, drop_old=drop_old)
    return visit.page("key.html", 201, name=name, key=key, is_new=False)


@router.get("/analysts/{name}/revoke")
def confirm_revoke(visit: Managing, name: str) -> Response:
    """Asks again, since there is no way back."""
    return _confirm(visit, visit.services.access.analyst(name))


def _confirm(visit: Visit, holder: Analyst, status: int = 200, problem: str = "") -> Response:
    return visit.page("revoke.html", status, analyst=holder, problem=problem)


@router.post("/analysts/{name}/revoke")
def revoke(visit: Managed, name: str) -> Response:
    """Ends an analyst's access for good, where the name was typed."""
    holder = visit.services.access.analyst(name)
    if visit.fields.get("typed") != name:
        wrong = InvalidRequest("Type the analyst's name to revoke the access.")
        return _confirm(visit, holder, wrong.status, wrong.detail)
    visit.services.access.revoke(name, by=visit.actor)
    return visit.redirect(f"/console/analysts/{name}")
