"""What one record contributes to Proposal 2: functions of the record and of public values only.

With u = (y − μ)/σ, ψ = ψ_c(u), t = ψ/c, 1 = 1{|u| < c}, for a record in use (others contribute 0):

    score      (ψ, aψ²/c − R)              ‖·‖² = R² − a²ψ²(c² − ψ²)/c² ≤ R²,  R = c(1 + a²)/(2a), a = 1.4
    jacobian   (1 − s, t1, t²1 − s)        ‖·‖² ≤ S² = 9/8,  s = 3/4

Both shifts centre what a record can contribute in its smallest ball, which has no price: the number of records
in use, times the shift, is added back. The score lies on the arc (ψ, aψ²/c): at a = 1 both
coordinates would cost no more than ψ alone, R = c; a = 1.4 takes 6 % more noise for the location and 25 % less
for the scale. The Jacobian's entries are 0 or (1, t, t²), |t| < 1; the points 0 and (1, ±1, 1) are at
the distance S of (s, 0, s), all others nearer: 1/16 + t² + (t² − 3/4)² has its largest value at |t| = 1.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.psi import Huber

STRETCH = 1.4  # a
JACOBIAN_SHIFT = 0.75  # s
JACOBIAN_RADIUS = sqrt(9 / 8)  # S


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
            entries = np.where(inner, np.vstack([np.ones(block.rows), ratio, ratio * ratio]), 0.0)
        shift = np.array([[JACOBIAN_SHIFT], [0.0], [JACOBIAN_SHIFT]])
        score, jacobian = np.where(used, score, 0.0), np.where(used, entries - shift, 0.0)
        parts = (score, jacobian, score) if self.meat else (score, jacobian)
        return (*parts, np.where(used, 0.0, -1.0)) if self.count else parts
