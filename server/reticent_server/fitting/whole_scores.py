# SPDX-License-Identifier: Apache-2.0
"""What one record adds where its score is cut as a whole: no weight of its own, and no bound of its
parts.

    score      v q(y, η)       v = m(η) u;  cut at ‖·‖ ≤ C by its sum (mechanisms.quantise)
    root       v √h            cut at ‖·‖ ≤ L in the same way
    lengths    ‖v‖|q|, ‖v‖√h   one code each on a public grid (fitting.row_tail)

A record that is not in use, and a value that is not finite, adds nothing.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtr

from reticent_server.domain.steps import Block, Contribution, FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.maps import (
    FitState,
    ScoreMap,
    coordinates,
    predictor,
    response,
    standardised,
    used_shares,
)
from reticent_server.fitting.residual_score import ResidualScore
from reticent_server.fitting.row_tail import LEANING, LengthGrid, leaning
from reticent_server.fitting.score import Ball, BoolArray, whole_ball
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.person_columns import prepared

# of freedom of the t law that plans take residuals of: real tables' tails are about as heavy
TAIL_DEGREES = 5.0
UNLIKE = 0.35
"""Relative error of a second moment of rows that public rows lead to expect. With .15 intervals of
least squares on tables of 1,400 to 3,000 records covered .83 at epsilon = 1, with .35 .90; of
20,000 records no width depends on it, as the moment is measured.
"""
UNBOUNDED = 1e300  # squared radius at which every weight is 1, within the floats


class UnboundedScore:
    """What scores of the textbook's targets have in common, in units of their scale: only the sum
    that they go into bounds them.
    """

    __slots__ = ()

    @property
    def bound(self) -> float:
        """None: the sum is cut instead."""
        return np.inf

    @property
    def curvature_bound(self) -> float:
        """sup of the expected h; the sum of roots is cut instead."""
        return 1.0

    @property
    def most(self) -> float:
        """1, the expected h where the model holds."""
        return 1.0

    @property
    def mean_square(self) -> float:
        """1: q is in units of its own root mean square."""
        return 1.0

    def leaning(self, size: int, share: float) -> float:  # noqa: ARG002 - one interface
        """As of scores of an unknown law."""
        return LEANING

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """The ball about 0."""
        return whole_ball(len(direction), radius)


@dataclass(frozen=True, slots=True)
class PlainScore(UnboundedScore, ResidualScore):
    """Least squares: q = z = (y − η)/s, h = 1. The sum that it goes into bounds it."""

    scale: float
    varies: bool = False
    signed: bool = False
    unlike: float = UNLIKE
    distances: FloatArray | None = field(default=None, repr=False, compare=False)

    def events(self, eta: FloatArray, error: FloatArray) -> None:
        """None: each record counts."""

    def leaning(self, size: int, share: float) -> float:  # noqa: ARG002 - one interface
        """As of scores that are symmetric about 0."""
        return leaning(size)

    def turned(self, eta: FloatArray) -> None:
        """None: the mean score is linear."""

    def beyond(self, length: FloatArray) -> FloatArray:
        """The two tails of a t law with TAIL_DEGREES degrees of freedom."""
        return np.asarray(2 * stdtr(TAIL_DEGREES, -length))

    def shape(self, lengths: FloatArray, eta: FloatArray) -> None:
        """None: nothing is known of residuals."""

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) (y − η)/s."""
        return np.asarray((y - eta) * (1 / self.scale))

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        """(y − η)/s and 1, each (rows,)."""
        return self.evaluate(y, eta), np.ones_like(eta)

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """(rows,) 1."""
        return np.ones_like(eta)


@dataclass(frozen=True, slots=True, eq=False)
class WholeLengthsMap:
    """Gives (rows,) the position of each record's ‖v‖|q| on one grid, and of its ‖v‖√h on
    another.
    """

    coding: Coding
    point: FitState
    scores: LengthGrid
    rows: LengthGrid

    def __call__(self, block: Block) -> tuple[FloatArray, FloatArray]:
        block = prepared(self.coding.design, block)
        used, point = used_shares(self.coding, block), self.point
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            eta = predictor(point, self.coding, x, block)
            v = coordinates(point.transform, x, block.scratch)
            if point.score.varies:
                v *= point.score.leverage(eta)
            lengths = np.sqrt(squared_lengths(v, np.empty(v.shape[1])))
            y = response(self.coding, block)
            q, h = point.score.with_curvature(y, eta, np.zeros(len(y), dtype=bool))
            scores, rows = lengths * np.abs(q), lengths * np.sqrt(np.abs(h))
            if used is not None:
                scores, rows = scores * used, rows * np.sqrt(used)
        return self.scores.codes(_finite(scores)), self.rows.codes(_finite(rows))


def _finite(lengths: FloatArray) -> FloatArray:
    """A contribution that is not finite is 0 to a sum."""
    return np.where(np.isfinite(lengths), lengths, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreWithMeat:
    """Gives the score for the gradient, and again for the meat, which is made of the gradient's own
    integers.
    """

    scores: ScoreMap

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        (score,) = self.scores(block)
        return score, score
