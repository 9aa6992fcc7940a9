# SPDX-License-Identifier: Apache-2.0
"""The negative binomial whose dispersion is estimated: α takes the place of a scale, s² = α.

Between steps α is moved by the mean of its own bounded score (kinds.glm.dispersion_score) at the
coefficients of the step, by one bounded sum; the coefficients' score is that of the family at the α
of its step.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray, Released, VectorSum
from reticent_server.fitting.score import Residuals, Score
from reticent_server.kinds.glm.dispersion_score import DispersionScore, moved, planned_cut, within
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.families.negative_binomial import NegativeBinomialFamily
from reticent_server.kinds.glm.families.poisson import count_start

_EXPLAINED = 0.7  # of the responses' variance beyond a Poisson law's, left by a typical model
_LEAST_START = 0.05  # α that a start assumes: from there it falls by a factor of four a step


@dataclass(frozen=True, slots=True)
class DispersionSteps(Residuals):
    """α by its own score. cut, upper: of the score; start: √α₀; eta: where a step
    takes its slope."""

    start: float
    eta: float
    upper: float
    cut: float

    @property
    def words(self) -> str:
        """√α, and the cut of its score."""
        return f"the square root of alpha, whose score is cut at {self.cut:.3g}"

    def at(self, alpha: float) -> DispersionScore:
        """The dispersion's score."""
        return DispersionScore(within(alpha), self.cut, self.upper)

    @property
    def bound(self) -> float:
        """sup |χ| at any α: |m| < c."""
        return 2 * self.cut

    def part(self, rho: int, unit_rows: int) -> VectorSum:
        """A sum of one number, as large as the cut score."""
        return VectorSum(1, self.bound, rho, unit_rows)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(1, rows) the cut score of α."""
        return self.at(score.scale**2).value(y, eta)[None, :]

    def scale(self, score: Score, released: Released, count: float) -> float:
        """√α after one step by the released mean score."""
        alpha = score.scale**2
        slope = float(self.at(alpha).slope(np.array([self.eta]))[0])
        return sqrt(moved(alpha, float(released.values[0]) / count, slope))

    def expected(self, start: float, left: float) -> float:  # noqa: ARG002 - one interface
        """The start: a typical dispersion is not known to move."""
        return start


class EstimatedNegativeBinomialFamily(NegativeBinomialFamily):
    """Negative binomial regression with its dispersion."""

    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:  # noqa: ARG002
        mean, variance = count_start(term, values)
        beyond = _EXPLAINED * (variance - mean) / mean**2
        begun = super().start(term, values, within(max(beyond, _LEAST_START)))
        return Start(begun.eta, begun.scale, begun.upper)

    def residuals(self, start: Start) -> DispersionSteps:
        cut = planned_cut(start.scale**2, start.eta, start.upper)
        return DispersionSteps(start.scale, start.eta, start.upper, cut)


ESTIMATED = EstimatedNegativeBinomialFamily()
