# SPDX-License-Identifier: Apache-2.0
"""The planned numbers of a location–scale fit: the tuning constant, the number of steps, what part
of ρ goes where.

The default is c = 1.5, as in Huber's (1964) examples and in R's `hubers`: 96.4 % efficient for the
location of a normal law, and Proposal 2 has a root as long as no value holds more than
1 − κ/c² = 65 % of the records. It depends on neither ε nor n, so that what is estimated does not.
`tuning="planned"` takes of a public menu the constant with the smallest forecast variance of the
location, which moves the estimand.

The number of steps is fixed: a start whose scale is off by 8, or whose centre is off by several
scales, takes four or five limited steps, and three more to converge. Early steps are cheap: far
from the solution a step's score is large. Where noise is most of the error no ρ is lost by many
steps, since the filter (step) adds them up.
"""

from dataclasses import dataclass
from math import sqrt

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, Part, PowerSum
from reticent_server.fitting.budget import allocate
from reticent_server.kinds.location_scale.maps import JACOBIAN, MEAT, SCORE
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.numerics.psi import Huber

# c: 96 % efficient for the location at the normal law; R's MASS::hubers has 1.5 as well
DEFAULT_TUNING = 1.5
MENU = (1.0, 1.25, 1.5, 2.0, 2.5)  # of tuning="planned"
STEPS = (0.04, 0.04, 0.04, 0.04, 0.05, 0.05, 0.07, 0.17, 0.50)  # of the steps' ρ; Σ = 1
_JACOBIAN = 0.25  # of a step's ρ: an entry of A has then the noise of the score
_COUNT = 0.08  # of ρ, of a masked design: its noise in the scale is then below the score's


@dataclass(frozen=True, slots=True)
class LocationScaleSettings:
    """c, and ρ (RHO_UNITS) of the scores (the last with the meat) and Jacobians (T,), and of the
    count (0: none).

    expected_n: of the n records, those that are expected to be in use. planned: whether c was
    chosen.
    """

    c: float
    planned: bool
    scores: tuple[int, ...]
    jacobians: tuple[int, ...]
    count: int
    n: int
    expected_n: float
    unit_rows: int

    @property
    def steps(self) -> int:
        """The fixed number of Newton steps."""
        return len(self.scores)

    @property
    def rho(self) -> int:
        """The ρ of all steps and of the count, in RHO_UNITS."""
        return sum((*self.scores, *self.jacobians, self.count))

    @property
    def counts(self) -> tuple[CountSum, ...]:
        """The parts that are counts, in all steps."""
        return (CountSum(1, self.count, self.unit_rows),) if self.count else ()

    def parts(self, step: int) -> tuple[Part, ...]:
        """What a step releases: score (in the last step with the meat), Jacobian[, count in the
        first of a masked design]."""
        m, last = self.unit_rows, step == self.steps - 1
        parts: list[Part] = [
            PowerSum((*SCORE, *MEAT) if last else SCORE, self.scores[step], m),
            PowerSum(JACOBIAN, self.jacobians[step], m),
        ]
        if step == 0 and self.count:
            parts += self.counts
        return tuple(parts)


def plan_settings(
    n: int, unit_rows: int, rho: int, query: LocationScale, *, masked: bool, expected_n: float
) -> LocationScaleSettings:
    """Splits `rho` (RHO_UNITS); the parts' sum is exactly rho."""
    planned = isinstance(query.tuning, str)
    c = DEFAULT_TUNING if isinstance(query.tuning, str) else query.tuning or DEFAULT_TUNING
    if planned:
        c = min(MENU, key=lambda c: sum(v * v for v in forecast(expected_n, unit_rows, rho, c)))
    count = _COUNT if masked else 0.0
    moves = 1 - count
    weights = (
        *((count,) if masked else ()),
        *(_JACOBIAN * moves * f for f in STEPS),
        *((1 - _JACOBIAN) * moves * f for f in STEPS),
    )
    parts, T = allocate(rho, weights), len(STEPS)
    return LocationScaleSettings(
        c=c,
        planned=planned,
        scores=parts[-T:],
        jacobians=parts[-2 * T : -T],
        count=parts[0] if masked else 0,
        n=n,
        expected_n=expected_n,
        unit_rows=unit_rows,
    )


def forecast(expected_n: float, unit_rows: int, rho: int, c: float) -> tuple[float, float]:
    """Sampling and privacy standard error of the location in scales, at the normal law."""
    family, share = Huber(c), 1 - _JACOBIAN
    noise = 2 * c * unit_rows / (expected_n * sqrt(2 * share * rho / RHO_UNITS))
    sampling = sqrt(family.mean_square / expected_n) / family.mean_derivative
    return sampling, noise / family.mean_derivative
