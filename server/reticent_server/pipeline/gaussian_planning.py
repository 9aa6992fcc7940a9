# SPDX-License-Identifier: Apache-2.0
"""More ρ for the same (ε, δ), for plans whose parts are sums with Gaussian noise and selections,
where accounts add up (ε, δ).

A plan under the rule basic is charged (ε, δ); how much ρ it may spend for that is a matter of the
conversion alone. The one for Gaussian noise (accounting.gaussian) allows 15 % more at (1, 10⁻⁶), so
7 % less noise. Selections cost π/2 times what zCDP takes for them, so a plan gains where they are
less than a fifth of it, as they are in a fit that profiles its own columns. Under the rule zcdp it
is ρ that is charged, and nothing is gained. Under the rule gdp it is ρ, too, and as much more of it
is there. Proof: accounting.gaussian, mechanisms.gaussian_cost; the engine adds up what the steps
cost there, so what is planned here decides how much noise there is and not how private it is.
"""

from dataclasses import replace

from reticent_server.accounting import gaussian, gaussian_account
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.kinds import registry
from reticent_server.mechanisms import gaussian_cost

# one or two for sums; small counts, whose surcharge grows with ρ², halve what the others leave
_ATTEMPTS = 6
_ROOM = 1 << 16
"""Of ρ: a sum's surcharge is below 2⁻²² of its own ρ, and a step costs at least a quarter of what
its parts would alone.
"""

_UNITS = 256  # of ρ, beside that: each step is rounded up; a plan has some dozens of them


def raised(
    facts: DatasetFacts, query: Query, offer: PrivacyCost, privacy: tuple[float, float]
) -> tuple[Planned, int] | None:
    """The plan at more ρ than is offered, and the ρ_G that it may cost (RHO_UNITS); None where
    there is none.

    privacy: (ε, δ) as asked for.
    """
    allowed = gaussian.rho_units(*privacy)
    rho = allowed - allowed // _ROOM - _UNITS
    for _ in range(_ATTEMPTS):
        if rho <= offer.rho:
            return None
        planned = registry.plan(facts, query, replace(offer, rho=rho))
        cost = most(planned)
        if cost is not None and cost <= allowed:
            return planned, allowed
        rho = _less(rho, offer.rho, allowed, cost)
    return None


def _less(rho: int, least: int, allowed: int, cost: int | None) -> int:
    """The ρ to try after one that costs more than is allowed, or has no price (None).

    Scaled down by what it would cost, and by the units that the shares of a plan are rounded by:
    aimed at the limit itself, some plans end a unit above it, again and again. Half-way to `least`
    where that leaves nothing.
    """
    scaled = 0 if cost is None else rho * allowed // cost - _UNITS
    return scaled if scaled > least else (rho + least) // 2


def price(planned: Planned) -> int:
    """What it is charged under the rule gdp (accounting.gaussian_account); 0 where not all of its
    parts are priced.
    """
    cost = most(planned)
    if cost is None:
        return 0
    counted = sum(part.bins for part in planned.gaussian_counts or ())
    return cost + gaussian_account.COUNT_FEE * counted


def most(planned: Planned) -> int | None:
    """An upper bound of what its steps cost together; None where not all of its parts are
    priced.
    """
    counts = planned.gaussian_counts
    if counts is None or sum(part.bins for part in counts) > gaussian_cost.COUNTED:
        return None
    try:
        surcharge = gaussian_cost.surcharge((*counts, *planned.selections))
    except gaussian_cost.Unpriced:
        return None
    return planned.rho + surcharge + planned.rho // _ROOM + _UNITS
