# SPDX-License-Identifier: Apache-2.0
"""Proposals: what waits for a second person, approved or refused."""

from collections.abc import Mapping
from typing import Annotated, cast
from urllib.parse import urlencode

from fastapi import Depends, Response

from reticent_server.access.approvals import ProposedAct
from reticent_server.console.looking import Signed
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.pipeline import second_person
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit, posted_for

router = pages_router("console")

Approving = Annotated[Visit, Depends(posted_for(Act.APPROVE))]


@router.get("/proposals")
def show(visit: Signed) -> Response:
    """What waits, then what was decided."""
    holder = cast(Principal, visit.holder)
    datasets = {f.population: f.name for f in visit.services.catalog.list()}
    rows = [
        (proposal, holder.may(second_person.NEEDS[proposal.act]), _form(proposal, datasets))
        for proposal in visit.services.approvals.all()
    ]
    return visit.page("proposals.html", rows=rows, me=holder.name)


def _form(proposal: ProposedAct, datasets: Mapping[str, str]) -> str:
    """The address of the form that does an approved act, filled in exactly as it was proposed;
    empty where it takes more than a form. datasets: one by population.
    """
    if proposal.status != "approved" or not proposal.is_valid:
        return ""
    said = {k: "" if v is None else str(v) for k, v in proposal.document.items()}
    if proposal.act == "cap" and proposal.population in datasets:
        said["dataset"] = datasets[proposal.population]
        return f"/console/budgets?{urlencode(said)}#set"
    if proposal.act == "credit":
        return f"/console/budgets?{urlencode({**said, 'form': 'credit'})}#credit"
    return ""


@router.post("/proposals/{proposal_id}/approve")
def approve(visit: Approving, proposal_id: str) -> Response:
    """Lets the act be done once, as it was proposed."""
    holder = cast(Principal, visit.holder)
    second_person.approve(visit.services.approvals, holder, proposal_id, by=visit.actor)
    return visit.redirect("/console/proposals")


@router.post("/proposals/{proposal_id}/refuse")
def refuse(visit: Approving, proposal_id: str) -> Response:
    """Ends the proposal."""
    holder = cast(Principal, visit.holder)
    second_person.refuse(visit.services.approvals, holder, proposal_id, by=visit.actor)
    return visit.redirect("/console/proposals")
