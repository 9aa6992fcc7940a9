"""What one record contributes to Proposal 2: functions of the record and of public values only.

With u = (y − μ)/σ, ψ = ψ_c(u), 1 = 1{|u| < c}:

    score      (ψ, aψ²/c − R)         ‖·‖² = R² − a²ψ²(c² − ψ²)/c² ≤ R²,  R = c(1 + a²)/(2a), a = 1.4
    jacobian   (1, u1/c, u²1/c²)      ‖·‖ ≤ √3

The shift centres the arc (t, at²/c), |t| ≤ c, in its smallest ball: at a = 1 the joint score would cost
no more than ψ alone, R = c; a = 1.4 takes 6 % more noise for the location and 25 % less for the scale.
Both are elementwise.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.psi import Huber

STRETCH = 1.4


def score_radius(c: float) -> float:
    """R."""
    return c * (1 + STRETCH**2) / (2 * STRETCH)


@dataclass(frozen=True, slots=True)
class LocationScaleMap:
    """Gives (score (2, rows), jacobian (3, rows)[, score][, code 0 for each record in use])."""

    design: Design
    column: str
    location: float
    scale: float
    c: float
    meat: bool = False
    count: bool = False

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):
            u = (block.columns[self.column] - self.location) * (1 / self.scale)
            psi = Huber(self.c).psi(u)
            square = psi * psi * (STRETCH / self.c)
            score = np.vstack([psi, square - score_radius(self.c)])
            ratio = u / self.c
            inner = np.abs(ratio) < 1
            jacobian = np.where(inner, np.vstack([np.ones(block.rows), ratio, ratio * ratio]), 0.0)
        score, jacobian = np.where(used, score, 0.0), np.where(used, jacobian, 0.0)
        parts = (score, jacobian, score) if self.meat else (score, jacobian)
        return (*parts, np.where(used, 0.0, -1.0)) if self.count else parts
