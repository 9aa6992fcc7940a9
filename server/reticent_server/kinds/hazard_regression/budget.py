# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes to which release of a hazard regression, and where follow-up stops: from
public sizes alone."""

from dataclasses import astuple, dataclass
from math import exp, sqrt

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import GramSum, VectorSum
from reticent_server.fitting.budget import allocate
from reticent_server.kinds.hazard_regression.maps import BASELINE_SCALE
from reticent_server.mechanisms import tail_meat

RADIUS = (
    1.2  # R² for each of the k + 1 whitened regressors: 1.6 made slopes a tenth worse (simulated)
)
_STOPS = (1.0, 1.5, 2.0, 2.5, 3.0)
"""c: from 1, below which |Σm| is bounded by 1 all the same; beyond 3 less than 5 % of events are
lost."""
_WITH_EVENT = 0.5
"""Of the records, those that have the event, where nobody knows: c depends on it a little only."""
_COUNT_SHARE = 0.02  # of ρ, where records may be out of use: their number

SHARES = {
    "whitening": 0.05,
    "exposure": 0.06,
    "first_score": 0.10,
    "first_curvature": 0.05,
    "baseline": 0.06,
    "score": 0.48,
    "curvature": 0.10,
    "cross": 0.10,
}
"""Of ρ: what is left of one half more or less changes the slopes' errors by less than a
tenth (simulated). The score's is of its meat, too, which is free (mechanisms.tail_meat)."""


@dataclass(frozen=True, slots=True)
class HazardBudget:
    """ρ of each release (RHO_UNITS); count: 0 where all records are in use. meat: what it would
    cost without the score; together: what it costs with it.
    """

    count: int
    whitening: int
    exposure: int
    first_score: int
    first_curvature: int
    baseline: int
    score: int
    curvature: int
    cross: int
    meat: int
    together: int

    @property
    def rho(self) -> int:
        """Of all together."""
        return sum(self.amounts.values()) - self.score - self.meat + self.together

    @property
    def amounts(self) -> dict[str, int]:
        """By name."""
        names = ("records_in_use", *SHARES, "meat")
        return dict(zip(names, astuple(self)[:-1], strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """Of what the releases would cost one by one, which is more than ρ."""
        whole = sum(self.amounts.values())
        return {name: amount / whole for name, amount in self.amounts.items()}


def plan_budget(rho: int, terms: int, *, masked: bool) -> HazardBudget:
    """Splits `rho`. terms: k."""
    count = max(1, int(rho * _COUNT_SHARE)) if masked else 0
    alone = dict(zip(SHARES, allocate(rho - count, tuple(SHARES.values())), strict=True))
    radius_squared = RADIUS * (terms + 1)
    parts = (
        VectorSum(1 + terms, sqrt(BASELINE_SCALE**2 + radius_squared), alone["score"]),
        GramSum(terms, sqrt(radius_squared), alone["score"]),
    )
    together = alone["score"]
    alone["score"], meat = tail_meat.with_free_meat(*parts, together)
    return HazardBudget(count, **alone, meat=meat, together=together)


def planned_stop(n: int, terms: int, rho: int, unit_rows: int) -> float:
    """c: where the slopes' variance, of events before c and of noise in proportion to c, is
    expected to be smallest."""
    return min(_STOPS, key=lambda stop: expected_variance(n, terms, rho, unit_rows, stop)[0])


def expected_variance(
    n: int, terms: int, rho: int, unit_rows: int, stop: float
) -> tuple[float, float]:
    """Of a slope in whitened units: in all, and what sampling makes alone. rho: of the last
    score."""
    information = n * _WITH_EVENT * (1 - exp(-stop))
    noise = 2 * stop * sqrt(RADIUS * (terms + 1)) * unit_rows / sqrt(2 * rho / RHO_UNITS)
    return (information + noise**2) / information**2, 1 / information
