"""What the ledger hands out for a charge."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent_server.domain.cost import PrivacyCost

if TYPE_CHECKING:
    from reticent_server.domain.plan import Plan


@dataclass(frozen=True, slots=True)
class Reservation:
    """A committed debit: the permission to compute a plan once. Made by the ledger only."""

    id: str
    version_id: str
    cost: PrivacyCost
    created_at: str
    lease: str = ""

    def pays_for(self, plan: "Plan") -> bool:
        """Whether this is the charge of the plan: asked here only, before anything is computed."""
        return (plan.cost, plan.facts.version_id) == (self.cost, self.version_id)
