"""The records of a fit around a released pilot: functions of the record and of public values only.

With u = Wx̃ (W the pilot's last whitening) and w its Mallows weight, a record is (w, y, o, u):

    Huber      y = (ỹ − x̃ᵀθ₀)/σ,  o = 0,      θ = θ₀ + σWᵀϑ
    logistic   y,                 o = x̃ᵀθ₀,  θ = θ₀ + Wᵀϑ
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.maps import (
    Point,
    coordinates,
    on_lattice,
    residuals,
    standardised,
    white_weights,
)
from reticent_server.numerics.evaluate import evaluate_term


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceMap:
    """Gives the records (q + 3, rows)."""

    coding: Coding
    point: Point
    loss: Literal["huber", "logistic"]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            u = coordinates(self.coding, self.point.transform, x, block.scratch)
            w = white_weights(self.coding, u)
            if self.loss == "huber":
                y, offset = residuals(self.coding, self.point, block, x), np.zeros(block.rows)
            else:
                y = evaluate_term(self.coding.response, block)
                offset = on_lattice(self.point.theta, self.coding.size) @ x
        return (np.vstack([w, y, offset, u]),)
