# SPDX-License-Identifier: Apache-2.0
"""Projects from the wish to the budget: what was asked for, what it would cost, and the
decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent_server.access.projects import Charter, Project
from reticent_server.access.requests import ProjectRequest
from reticent_server.domain.principal import Principal
from reticent_server.errors import InvalidRequest
from reticent_server.ledger import budgets
from reticent_server.pipeline.plan_pieces import PlanLine, plan_lines
from reticent_server.pipeline.services import Services

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """A budget for a data set, under the rule of new accounts."""

    dataset: str
    epsilon: float
    delta: float


def file(services: Services, principal: Principal, document: Json) -> Json:
    """Files the caller's request; it is as free as a plan, and touches nothing."""
    return request_json(services.requests.make(principal.id, document))


def shares_of(request: ProjectRequest) -> tuple[Share, ...]:
    """The budgets that were asked for."""
    asked = request.document["budgets"]
    return tuple(Share(b["dataset"], float(b["epsilon"]), float(b["delta"])) for b in asked)


def lines_of(services: Services, request: ProjectRequest) -> tuple[PlanLine, ...]:
    """The attached plan, planned now: what each query would cost, from public facts alone."""
    items = request.document["plan"]
    facts = {facts.name: facts for facts in services.catalog.list()}
    return services.planner.run(plan_lines, items, facts)


def wish(services: Services, request: ProjectRequest) -> Charter:
    """The project that a request asks for; who asks is its first member."""
    asked = request.document
    names = {analyst.id: analyst.name for analyst in services.access.analysts()}
    asking = names[request.analyst_id]
    return Charter(
        name=asked["name"],
        purpose=asked["purpose"],
        members=(asking, *(name for name in asked["members"] if name != asking)),
        datasets=tuple(share.dataset for share in shares_of(request)),
        ends_on=asked["ends_on"],
    )


def approve(
    services: Services,
    request: ProjectRequest,
    charter: Charter,
    shares: Sequence[Share],
    *,
    reason: str,
    by: str,
) -> str:
    """Makes the project with its accounts, all in one transaction; its id.

    charter, shares: as asked, or as whoever decides has changed them, which needs a reason.
    Raises NotFound (a data set, a member), Conflict, InvalidRequest, InvalidPrivacy.
    """
    if (charter, tuple(shares)) != (
        wish(services, request),
        shares_of(request),
    ) and not reason.strip():
        raise InvalidRequest("Say why the request is not approved as it was made.")
    if len(reason) > 400 or not reason.isprintable():
        raise InvalidRequest("A reason has at most 400 characters, in one line.")
    offers = [(s.dataset, services.catalog.facts(s.dataset).population, _offer(s)) for s in shares]
    return services.projects.approve(
        request.id,
        charter,
        reason,
        by=by,
        budgets=lambda c, project_id: services.ledger.open_accounts(c, project_id, offers, by),
    )


def _offer(share: Share) -> budgets.BudgetTerms:
    return budgets.BudgetTerms(share.epsilon, share.delta, None)


def request_json(request: ProjectRequest) -> Json:
    """A request as whoever made it gets it."""
    return {
        "id": request.id,
        "status": request.status,
        "made_at": request.made_at,
        "reason": request.reason,
        **request.document,
    }


def project_json(project: Project) -> Json:
    """A project as its members get it."""
    return {
        "name": project.name,
        "purpose": project.purpose,
        "members": [name for _, name in project.members],
        "datasets": list(project.datasets),
        "ends_on": project.ends_on,
        "live": project.is_live,
    }
