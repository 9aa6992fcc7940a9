# SPDX-License-Identifier: Apache-2.0
"""Coordinates in which a pair of columns is about white, and what a record adds in them.

    w = W((x, y)ᵀ standardised by public figures − m)

m and W are public: (0, I) at first, then from what was released before. A record that is not in use
adds nothing. Each map is a function of one record and of public numbers, and is bounded:

    WhitePairMap      (a, w min(1, C/‖w‖))    ‖·‖² ≤ a² + C²
    PairLengthsMap    the place of ‖w‖² on a public grid (fitting.row_tail)
    InfluenceSquaresMap    min(ψ², B²) − B²/2      ψ = vᵀGv, v = w min(1, C/‖w‖) − centre
"""

from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.matrices import eigen, rebuild


@dataclass(frozen=True, slots=True, eq=False)
class PairFrame:
    """columns: two names; centres, spreads (2,): public. m (2,), W (2, 2)."""

    design: Design
    columns: tuple[str, str]
    centres: FloatArray
    spreads: FloatArray
    m: FloatArray
    W: FloatArray

    def of(self, block: Block) -> FloatArray:
        """(2, rows) w; NaN of a record that is not in use."""
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            raw = np.stack([block.columns[name] for name in self.columns])
            z = (raw - self.centres[:, None]) / self.spreads[:, None] - self.m[:, None]
            w = self.W @ z
        return np.where(used & np.isfinite(w).all(axis=0), w, np.nan)

    def varies(self, covariance: FloatArray, least: float) -> bool:
        """Whether both columns vary, by released moments of w: least, of a variance of w."""
        back = np.linalg.inv(self.W)
        variances = np.diag(back @ covariance @ back.T)
        return bool((variances > least * np.sum(back**2, axis=1)).all())

    def whitened(self, mean: FloatArray, covariance: FloatArray, least: float) -> "PairFrame":
        """By released moments of w; eigenvalues count `least` at least."""
        values, vectors = eigen(covariance)
        root = rebuild(np.maximum(values, least) ** -0.5, vectors)
        return replace(self, m=self.m + np.linalg.solve(self.W, mean), W=root @ self.W)


def drawn_in(w: FloatArray, C: float) -> FloatArray:
    """(2, rows) w min(1, C/‖w‖)."""
    with np.errstate(all="ignore"):
        return np.asarray(w * np.minimum(1.0, C / np.maximum(np.hypot(*w), np.finfo(float).tiny)))


@dataclass(frozen=True, slots=True, eq=False)
class WhitePairMap:
    """(3, rows)."""

    frame: PairFrame
    C: float
    a: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        w = drawn_in(self.frame.of(block), self.C)
        one = np.where(np.isnan(w[0]), 0.0, self.a)
        return (np.concatenate([one[None, :], np.nan_to_num(w)]),)


@dataclass(frozen=True, slots=True, eq=False)
class PairLengthsMap:
    """(rows,)."""

    frame: PairFrame
    grid: LengthGrid

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            squared = np.sum(self.frame.of(block) ** 2, axis=0)
        return (self.grid.codes(np.where(np.isfinite(squared), squared, 0.0)),)


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceSquaresMap:
    """(1, rows)."""

    frame: PairFrame
    C: float
    centre: FloatArray
    G: FloatArray
    B: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        v = drawn_in(self.frame.of(block), self.C) - self.centre[:, None]
        psi = np.sum(v * (self.G @ v), axis=0)
        added = np.minimum(psi**2, self.B**2) - self.B**2 / 2
        return (np.where(np.isnan(psi), 0.0, added)[None, :],)
