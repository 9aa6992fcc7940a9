# SPDX-License-Identifier: Apache-2.0
"""Projects: who shares what budget until when, what is asked for, and the decision."""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Response

from reticent_server.access.projects import Charter
from reticent_server.access.requests import ProjectRequest
from reticent_server.console.looking import Signed
from reticent_server.console.pages import account
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest, ReticentError
from reticent_server.pipeline import projects
from reticent_server.pipeline.projects import Share
from reticent_server.web.forms import amount
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit, posted_for

router = pages_router("console")

Deciding = Annotated[Visit, Depends(posted_for(Act.DECIDE))]

_DONE = {
    "closed": "The project is closed.",
    "refused": "The request is refused.",
    "approved": "The project is made.",
    "removed": "It is removed from the project.",
}


@router.get("/projects")
def show(visit: Signed) -> Response:
    """What waits for a decision, and every project."""
    services = visit.services
    names = {a.id: a.name for a in services.access.analysts()}
    return visit.page(
        "projects.html",
        requests=[(r, names.get(r.analyst_id, r.analyst_id)) for r in services.requests.all()],
        rows=[
            (p, [account(services, b) for b in services.ledger.balances(p.id)])
            for p in services.projects.all()
        ],
        done=_DONE.get(visit.request.query_params.get("done", ""), ""),
    )


@router.get("/requests/{request_id}")
async def request(visit: Signed, request_id: str) -> Response:
    """One request: the wish, the plan with what it would cost, and the forms that decide."""
    return await visit.at_its_turn(lambda: _page(visit, visit.services.requests.one(request_id)))


def _page(visit: Visit, request: ProjectRequest, problem: ReticentError | None = None) -> Response:
    wish = projects.wish(visit.services, request)
    lines = projects.lines_of(visit.services, request)
    return visit.page(
        "request.html",
        problem.status if problem else 200,
        asked=request,
        wish=wish,
        lines=lines,
        total=sum(line.epsilon or 0.0 for line in lines),
        given=_given(visit, request, wish),
        problem=problem.detail if problem else "",
    )


def _given(visit: Visit, request: ProjectRequest, wish: Charter) -> dict[str, Any]:
    """What the form is filled with: what was sent, else what was asked for."""
    sent = visit.fields
    shares = [
        {
            "dataset": share.dataset,
            "epsilon": sent.get(f"epsilon_{i}", f"{share.epsilon:g}"),
            "delta": sent.get(f"delta_{i}", f"{share.delta:g}"),
        }
        for i, share in enumerate(projects.shares_of(request))
    ]
    plain = {
        "name": sent.get("name", wish.name),
        "members": sent.get("members", " ".join(wish.members)),
        "ends_on": sent.get("ends_on", wish.ends_on or ""),
        "reason": sent.get("reason", ""),
    }
    return {**plain, "shares": shares}


@router.post("/requests/{request_id}/approve")
async def approve(visit: Deciding, request_id: str) -> Response:
    """Makes the project, as it was asked for or as the form has changed it."""
    return await visit.at_its_turn(partial(_approved, visit, request_id))


def _approved(visit: Visit, request_id: str) -> Response:
    request = visit.services.requests.one(request_id)
    try:
        charter, shares = _decided(visit, request)
        reason = visit.fields.get("reason", "")
        projects.approve(visit.services, request, charter, shares, reason=reason, by=visit.actor)
    except ReticentError as error:
        return _page(visit, request, error)
    return visit.redirect("/console/projects?done=approved")


def _decided(visit: Visit, request: ProjectRequest) -> tuple[Charter, tuple[Share, ...]]:
    """The form's project: a data set whose ε is empty or 0 is left out."""
    fields, wish = visit.fields, projects.wish(visit.services, request)
    shares = tuple(
        Share(
            share.dataset,
            amount(fields, f"epsilon_{i}", "Epsilon"),
            amount(fields, f"delta_{i}", "Delta"),
        )
        for i, share in enumerate(projects.shares_of(request))
    )
    kept = tuple(share for share in shares if share.epsilon > 0)
    charter = Charter(
        name=fields.get("name", ""),
        purpose=wish.purpose,
        members=tuple(fields.get("members", "").split()),
        datasets=tuple(share.dataset for share in kept),
        ends_on=fields.get("ends_on") or None,
    )
    return charter, kept


@router.post("/requests/{request_id}/refuse")
async def refuse(visit: Deciding, request_id: str) -> Response:
    """Refuses a request, for a reason that its analyst reads."""
    return await visit.at_its_turn(partial(_refused, visit, request_id))


def _refused(visit: Visit, request_id: str) -> Response:
    request = visit.services.requests.one(request_id)
    try:
        visit.services.projects.refuse(request_id, visit.fields.get("reason", ""), by=visit.actor)
    except InvalidRequest as error:
        return _page(visit, request, error)
    return visit.redirect("/console/projects?done=refused")


@router.post("/projects/{name}/close")
def close(visit: Deciding, name: str) -> Response:
    """Ends a project for good, where the box was ticked."""
    if visit.fields.get("sure") != "yes":
        raise InvalidRequest("Tick the box to close the project for good.")
    visit.services.projects.close(name, by=visit.actor)
    return visit.redirect("/console/projects?done=closed")


@router.post("/projects/{name}/remove")
def remove(visit: Deciding, name: str) -> Response:
    """Takes one member or one data set out of a project."""
    member, dataset = visit.fields.get("member", ""), visit.fields.get("dataset", "")
    if bool(member) == bool(dataset):
        raise InvalidRequest("Choose a member or a data set to take out.")
    if member:
        visit.services.projects.remove_member(name, member, by=visit.actor)
    else:
        visit.services.projects.remove_dataset(name, dataset, by=visit.actor)
    return visit.redirect("/console/projects?done=removed")
