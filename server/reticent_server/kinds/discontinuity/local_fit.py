# SPDX-License-Identifier: Apache-2.0
"""Local polynomials on the two sides of a cut-off, by Gram matrices in an orthonormal basis.

A record in use at the distance v = |x − c|/h < 1 from the cut-off has the weight a = 1 − v. The
polynomials q_0, q_1, … are orthonormal for the weight 2(1 − v) on [0, 1], so that

    q_l(0)² = l + 1,   a Σ_{l≤k} q_l(v)² ≤ (k + 1)(k + 2)/2,

and the Gram matrix of q_0 … q_k on one side, G = Σ a q qᵀ, is about Σa times I where records are
spread evenly. The value at the cut-off of the least-squares polynomial of y is Σ_i ℓ_i y_i, with
ℓ_i = a_i wᵀq(v_i) and w = G⁻¹q(0).

Sources: Fan & Gijbels (1996), chapter 3 (equivalent kernels); Szegő (1975), chapter 4 (Jacobi
polynomials).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_jacobi

from reticent_server.domain.design import Design, TriangleWeight
from reticent_server.domain.steps import Block, FloatArray, Placed
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.numerics.evaluate import in_use, shares

BELOW, ABOVE = 0, 1
"""The sides, by their places."""
_NODES = 16  # of a Gauss rule, exact for products of three polynomials of degree 4 and more


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """q_0 … q_k. powers: (k + 1, k + 1), the coefficients of 1, v, v² … of each. squares: (k + 1,
    k + 1), Σ a² q qᵀ over Σa of evenly spread records. units: (d, k + 1, k + 1), the symmetric
    matrices with a 1 in one place of the upper triangle, and its mirror; on_diagonal: (d,).
    """

    order: int
    powers: FloatArray
    squares: FloatArray
    units: FloatArray
    on_diagonal: NDArray[np.bool_]

    def values(self, v: FloatArray) -> FloatArray:
        """(k + 1, rows)."""
        return np.asarray(self.powers @ v ** np.arange(len(self.powers))[:, None])

    @property
    def squeeze(self) -> float:
        """Σℓ² over wᵀq(0) of evenly spread records."""
        q = self.at_cutoff
        return float(q @ self.squares @ q / (q @ q))

    @property
    def at_cutoff(self) -> FloatArray:
        """q(0) (k + 1,)."""
        return np.asarray(self.powers[:, 0])


@lru_cache(maxsize=8)
def basis(order: int) -> Basis:
    """Of polynomials of degree k = `order` on each side."""
    x, weight = roots_jacobi(_NODES, 1.0, 0.0)  # (1 − x) on [−1, 1]
    v, weight = (1 + x) / 2, weight / 2  # 2(1 − v) on [0, 1]
    monomials = v ** np.arange(order + 1)[:, None]
    root = np.linalg.cholesky((monomials * weight) @ monomials.T)
    powers = np.linalg.inv(root)
    powers *= np.sign(powers[:, :1])  # positive at the cut-off
    q = powers @ monomials
    squares = np.einsum("r,jr,kr->jk", weight * (1 - v), q, q)
    rows, columns = np.triu_indices(order + 1)
    units = np.zeros((len(rows), order + 1, order + 1))
    places = np.arange(len(rows))
    units[places, rows, columns] = units[places, columns, rows] = 1.0
    return Basis(order, powers, squares, units, rows == columns)


@dataclass(frozen=True, slots=True)
class Window:
    """Which records count, on which side, and how much. centre, reach: y is taken as z = (y −
    centre)/reach, cut to ±1, in first sums.
    """

    design: Design
    kernel: TriangleWeight
    response: str
    order: int
    centre: float
    reach: float

    def places(self, block: Block) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """(rows,) v and a, and the side: −1 for a record that does not count."""
        a = shares(self.kernel, block)
        x = block.columns[self.kernel.column]
        used = in_use(self.design, block) & (a > 0) & np.isfinite(x)
        used &= np.isfinite(block.columns[self.response])
        return 1 - a, a, np.where(used, (x >= self.kernel.centre).astype(np.int64), -1)

    def responses(self, block: Block) -> FloatArray:
        """(rows,) y less the centre."""
        return np.asarray(block.columns[self.response] - self.centre)


@dataclass(frozen=True, slots=True)
class SideGramMap:
    """A record's √a (q_0, …, q_k, t z) in the places of its side. weight: t."""

    window: Window
    weight: float

    @property
    def clip(self) -> float:
        """The length of none is larger: that of a record at the cut-off with |z| = 1."""
        k = self.window.order
        return float(np.sqrt((k + 1) * (k + 2) / 2 + self.weight**2))

    def __call__(self, block: Block) -> tuple[Placed]:
        v, a, side = self.window.places(block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = np.clip(self.window.responses(block) / self.window.reach, -1.0, 1.0)
            vectors = np.sqrt(a) * np.vstack(
                [basis(self.window.order).values(v), self.weight * z[None, :]]
            )
        return (Placed(vectors, side, 2),)


@dataclass(frozen=True, slots=True, eq=False)
class JumpInfluence:
    """ψ_i = ±ℓ_i (y_i − the first look's line), + above the cut-off. weights, lines: (2, k + 1) w
    and the lines' coefficients on q, by side.
    """

    window: Window
    weights: FloatArray
    lines: FloatArray

    def of(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """(rows,) ψ and the residual; NaN of a record that does not count."""
        v, a, side = self.window.places(block)
        q = basis(self.window.order).values(v)
        signed = self.weights * np.array([[-1.0], [1.0]])
        at = np.maximum(side, 0)
        with np.errstate(all="ignore"):  # as above
            residual = self.window.responses(block) - np.sum(self.lines[at].T * q, axis=0)
            psi = a * np.sum(signed[at].T * q, axis=0) * residual
        gone = side < 0
        return np.where(gone, np.nan, psi), np.where(gone, np.nan, residual)


@dataclass(frozen=True, slots=True)
class JumpLengthsMap:
    """A record's places among the lengths of influences, a line a sign, and of residuals, a line a
    side and sign.
    """

    influence: JumpInfluence
    influences: LengthGrid
    residuals: LengthGrid

    def __call__(self, block: Block) -> tuple[FloatArray, FloatArray]:
        psi, residual = self.influence.of(block)
        above = self.influence.window.places(block)[2] == ABOVE
        return (
            _on_lines(self.influences, psi, (psi > 0)),
            _on_lines(self.residuals, residual, 2 * above + (residual > 0)),
        )


def _on_lines(grid: LengthGrid, values: FloatArray, line: NDArray[Any]) -> FloatArray:
    """(rows,) codes of lengths on lines; −1 of none."""
    code = grid.codes(np.abs(np.nan_to_num(values, nan=0.0)))
    return np.where(code < 0, -1.0, line * len(grid.edges) + code)


@dataclass(frozen=True, slots=True)
class JumpInfluenceMap:
    """A record's ψ over the length at which influences are cut; NaN of one that does not count."""

    influence: JumpInfluence
    length: float

    def __call__(self, block: Block) -> tuple[FloatArray]:
        return (self.influence.of(block)[0] / self.length,)
