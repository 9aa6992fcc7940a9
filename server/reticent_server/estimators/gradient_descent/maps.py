"""What one record contributes to a descent: functions of the record and of public values only.

As in estimators.newton.maps, with W = I: score w x̃ ψ_c(z), ‖·‖ ≤ Rc; root x̃ √(w a(z)), ‖·‖ ≤ R.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.maps import (
    Point,
    ScoreMap,
    residuals,
    standardised,
    white_weights,
)
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.psi import Huber


@dataclass(frozen=True, slots=True, eq=False)
class GradientMap:
    """Gives the score: x̃ (q, rows) with weights (rows,)."""

    coding: Coding
    point: Point
    c: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            z = residuals(self.coding, self.point, block, x)
            w = white_weights(self.coding, x)
            if self.coding.design.masked:
                w *= in_use(self.coding.design, block)
            w *= Huber(self.c).psi(z)
        return (Scaled(x, w),)


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureMap:
    """Gives (root,), with the score (for the meat) or a code of the records in use after it.

    reweighted: whether a(z) is ψ(z)/z, else ψ′.
    """

    coding: Coding
    point: Point
    c: float
    reweighted: bool
    meat: bool = False
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        scores = ScoreMap(self.coding, self.point, Huber(self.c), self.reweighted, count=self.count)
        score, root, *more = scores(block)
        rest: tuple[Contribution | FloatArray, ...] = (score,) if self.meat else tuple(more)
        return (root, *rest)
