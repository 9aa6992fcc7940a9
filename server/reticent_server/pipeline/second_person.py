# SPDX-License-Identifier: Apache-2.0
"""Which acts wait for a second person, and who may approve them."""

from collections.abc import Mapping
from typing import Any

from reticent_server.access.approvals import Approvals, ProposedAct
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act

NEEDS: Mapping[str, Act] = {
    "cap": Act.SET_BUDGETS,
    "credit": Act.SET_BUDGETS,
    "policy": Act.SET_POLICY,
    "load": Act.LOAD,
    "rollback": Act.SET_BUDGETS,
}
"""What whoever approves must be allowed to do: what whoever proposed was."""


def require(
    catalog: Catalog,
    approvals: Approvals,
    act: str,
    population: str,
    document: Mapping[str, Any],
    *,
    by: str,
) -> None:
    """Passes where no policy of the population asks for a second person, or one has approved
    exactly this. Raises SecondPerson, PolicyRefused."""
    if catalog.asks_for_second(population):
        approvals.take(act, population, document, by=by)


def approve(approvals: Approvals, holder: Principal, proposal_id: str, *, by: str) -> None:
    """Raises WrongRole, NotFound, Conflict, PolicyRefused."""
    holder.require(_needs(approvals.one(proposal_id)))
    approvals.approve(proposal_id, by=by)


def refuse(approvals: Approvals, holder: Principal, proposal_id: str, *, by: str) -> None:
    """Raises as `approve`."""
    holder.require(_needs(approvals.one(proposal_id)))
    approvals.refuse(proposal_id, by=by)


def _needs(proposal: ProposedAct) -> Act:
    return NEEDS[proposal.act]
