# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to a jump: functions of the record and of public or released numbers.

With u = |x − c|/h, a = max(0, 1 − u) and y′ = (y − m)/R cut to [−1, 1], m and R public, a record's
moments are, in the five places of its side of the cut-off and 0 in those of the other,

    v = a·(1, p u, q u², κ y′, κ r u y′).

a²(1 + p²u² + q²u⁴ + κ²(1 + r²u²)) has its largest value 2.49 at u = 0, so ‖v‖ ≤ CLIP; the sum
cuts longer ones in any case.

ψ = ± a·(w₀ + w₁u)(y − m − R(b₀ + b₁u)), with the released w and b of the record's side, is what it
adds to the jump: plus at and above the cut-off, minus below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design, Term, TriangleWeight
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.numerics.evaluate import evaluate_term, in_use, shares

P, Q, KAPPA, R_SLOPE = 3.5, 5.3, 1.22, 2.6
"""p, q, κ, r: a search for the least noise that first steps leave in the jump (x uniform)."""
CLIP = 1.58  # of v: its largest length
SIDES, SIZE = 2, 5


@dataclass(frozen=True, slots=True, eq=False)
class Sided:
    """Of a block's records (rows,): whether in use, a, u, whether at or above the cut-off, y."""

    used: NDArray[np.bool_]
    a: FloatArray
    u: FloatArray
    above: NDArray[np.bool_]
    y: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LocalRecords:
    """How records are read. centre, half: m and R, in the units of the response."""

    design: Design
    response: Term
    kernel: TriangleWeight
    centre: float
    half: float

    def of(self, block: Block) -> Sided:
        """Of a block; what is out of use or no number is told by `used`."""
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            y = evaluate_term(self.response, block)
            x = block.columns[self.kernel.column]
            a = shares(self.kernel, block)
            u = np.clip(np.abs(x - self.kernel.centre) / self.kernel.width, 0, 1)
            used = in_use(self.design, block) & np.isfinite(x + y)
        return Sided(used, a, u, x >= self.kernel.centre, y)


@dataclass(frozen=True, slots=True, eq=False)
class MomentMap:
    """(10, rows) v of a record, the places below the cut-off first."""

    records: LocalRecords

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        at = self.records.of(block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            y = np.clip((at.y - self.records.centre) / self.records.half, -1, 1)
            v = at.a * np.stack(
                [np.ones_like(y), P * at.u, Q * at.u**2, KAPPA * y, KAPPA * R_SLOPE * at.u * y]
            )
            both = np.concatenate([np.where(at.above, 0.0, v), np.where(at.above, v, 0.0)])
        return (np.where(at.used, both, np.nan),)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """ψ of records by released numbers. weights, lines: (2, 2) w and b by side, that below first."""

    records: LocalRecords
    weights: FloatArray
    lines: FloatArray

    def of(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """ψ and the residual (rows,); NaN for what is out of use or beyond the bandwidth."""
        at, side = self.records.of(block), self.records
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            w = [np.where(at.above, high, low) for low, high in self.weights.T]
            b = [np.where(at.above, high, low) for low, high in self.lines.T]
            residual = at.y - side.centre - side.half * (b[0] + b[1] * at.u)
            psi = np.where(at.above, 1.0, -1.0) * at.a * (w[0] + w[1] * at.u) * residual
        used = at.used & (at.a > 0)
        return np.where(used, psi, np.nan), np.where(used, residual, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class PieceLengthsMap:
    """(rows,) the positions of |ψ| and of the residual's length on public grids."""

    pieces: Pieces
    grid: LengthGrid
    residuals: LengthGrid

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        psi, residual = self.pieces.of(block)
        lost = ~np.isfinite(psi)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            codes = self.grid.codes(np.abs(psi)), self.residuals.codes(np.abs(residual))
        return tuple(np.where(lost, -1.0, each) for each in codes)


@dataclass(frozen=True, slots=True, eq=False)
class JumpMap:
    """(rows,) ψ/C, which the sum cuts to [−1, 1]."""

    pieces: Pieces
    cut: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (self.pieces.of(block)[0] / self.cut,)
