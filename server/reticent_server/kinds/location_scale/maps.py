# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to Proposal 2: functions of the record and of public values only.

With u = (y − μ)/σ, ψ = ψ_c(u), t = u/c, 1 = 1{|u| < c}, a record in use gives two numbers, and
others none:

    score      τ = ψ/c     sums of (τ, aτ²), in the last step also (b(τ³ − τ), e(τ² − τ⁴))   Δ = 2
    jacobian   t where 1   sums of (1, t, t²) over the records within the cut                Δ = 2

Either Δ is that of the first power alone (mechanisms.power_sum): the scale's equation, its meat and
the whole Jacobian come with the noise of the location's equation. a = 1.4 is the largest that
leaves room for the meat, which is made of what is 0 at τ = ±1, and of which b = 1.5 and e = 2 are
the most (D > 2 at 1.75 and 2, or 1.5 and 2.5).
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.psi import Huber

STRETCH = 1.4  # a
THIRD, FOURTH = 1.5, 2.0  # b, e
SCORE = ((0.0, 1.0), (0.0, 0.0, STRETCH))  # powers of v = ψ/c from v⁰ on: v and a v²
# the third and fourth moments as b(v³ − v) and e(v² − v⁴): 0 at |v| = 1, so they add little to the
# clip
MEAT = ((0.0, -THIRD, 0.0, THIRD), (0.0, 0.0, FOURTH, 0.0, -FOURTH))
JACOBIAN = ((1.0,), (0.0, 1.0), (0.0, 0.0, 1.0))  # 1, v and v² of the records inside the cut


@dataclass(frozen=True, slots=True)
class LocationScaleMap:
    """Gives (τ (rows,), t (rows,)[, code 0 for each record in use])."""

    design: Design
    column: str
    location: float
    scale: float
    c: float
    count: bool = False

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):
            u = (block.columns[self.column] - self.location) * (1 / self.scale)
            score = np.where(used, Huber(self.c).psi(u) / self.c, np.nan)
            ratio = u / self.c
            jacobian = np.where(used & (np.abs(ratio) < 1), ratio, np.nan)
        parts = (score, jacobian)
        return (*parts, np.where(used, 0.0, -1.0)) if self.count else parts
