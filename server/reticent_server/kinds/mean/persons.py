# SPDX-License-Identifier: Apache-2.0
"""How far a mean over rows of persons may be off: rows of one person vary together.

With V_u = Σ_t (v_t − v̄) over a person's rows in use, v̄ the released mean of v ∈ [−1, 1] and N the
released number of rows, the sampling variance of v̄ is Σ_u V_u²/N² (a ratio of two sums over
persons; Cochran 1977, §6.3). Rows taken as independent would give Σ (v − v̄)²/N², which is too
small by 1 + (m − 1)ICC for m rows each.

*Release*: Σ_u min(V_u², B²) − B²/2, one bounded number a person, so Δ = B² by a person of any
number of rows (mechanisms.noisy_sum, VectorSum of clip B²/2 with `unit_rows` 1). B = min(2m, 2.5 m
s), s the released standard deviation of v: nothing is cut where a person's m rows are alike and
normal but for 1 %. The variance is never taken to be below that of independent rows.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray, Released, VectorSum
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.person_columns import person_sums

# a tenth of ρ: the noise of a standard error is then below 5 % for 5,000 persons of 8 rows at ε = 1
SHARE = 10
_REACH = 2.5  # standard deviations of a person's mean that count: beyond lies 1 % of a normal law
_LEAST = 0.02  # of the half width: a smaller s is noise


@dataclass(frozen=True, slots=True)
class PersonSpread:
    """The step's part and what is read of it. m: places of a person. persons: N, public. s:
    released."""

    rho: int
    m: int
    persons: int

    def reach(self, s: float) -> float:
        """B."""
        return min(2.0, _REACH * max(s, _LEAST)) * self.m

    def part(self, s: float) -> VectorSum:
        """The sum over persons."""
        return VectorSum(1, self.reach(s) ** 2 / 2, self.rho, 1, self.m)

    def variance(self, released: Released, s: float, rows: float) -> float:
        """The sampling variance of v̄ over `rows` rows."""
        total = float(released.values[0]) + self.persons * self.reach(s) ** 2 / 2
        return max(total, rows * s * s) / rows**2


@dataclass(frozen=True, slots=True)
class PersonSpreadMap:
    """(1, persons): min(V_u², B²) − B²/2."""

    design: Design
    column: str
    centre: float
    half: float
    mean: float
    m: int
    reach: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            v = (block.columns[self.column] - self.centre) / self.half - self.mean
            sums = person_sums(np.where(used, v, 0.0)[None, :], self.m)
            return (np.minimum(sums * sums, self.reach**2) - self.reach**2 / 2,)
