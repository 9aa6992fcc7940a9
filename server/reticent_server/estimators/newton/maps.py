"""What one record contributes: functions of the record and of public values only.

    u = W x̃,  w = min(1, R_c²/‖u_c‖²),  z = r/s,  r = ỹ − x̃ᵀθ
    score    w u ψ(z)            ‖·‖ ≤ R sup|ψ|   its sum is the gradient, its Gram sum the meat
    root     u √(w a(z))         ‖·‖ ≤ R          its Gram sum is the Jacobian, 0 ≤ a ≤ 1
    code     bin of |z|                           its counts give the next residual scale

A record's values are bit-identical whatever block it comes in. Everything is elementwise, or exact:
x̃ is put on a lattice (multiples of 2⁻²⁰ within ±2⁸), W and θ on coarser ones, so that all products and
partial sums are integers below 2⁵³ times a power of two, and BLAS may add them in any order. A point θ
of the path is thus rounded before the data are read, which moves the point and not the solution.
"""

from dataclasses import dataclass
from math import frexp

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Term
from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.standardise import Location
from reticent_server.numerics.biweight import Biweight
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.psi import Huber
from reticent_server.numerics.scale_histogram import scale_codes

LATTICE_BITS, RANGE_BITS = 20, 8
LARGEST = 2.0**RANGE_BITS
_ROUND = 1.5 * 2.0 ** (52 - LATTICE_BITS)
_FREE_BITS = 52 - LATTICE_BITS - RANGE_BITS
_PRODUCT_ROWS = 1 << 12  # what BLAS keeps in the cache; the products are exact however they are cut


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A public state of the fit: θ (q,) and the scale s in standardised units, W_c (q_c, q_c)."""

    theta: FloatArray
    scale: float
    transform: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMap:
    """Gives (score, root) or, with `meat`, (score, root, score): u (q, rows) with weights (rows,).

    family: ψ. reweighted: whether a(z) is the reweighting ψ(z)/z (else ψ′, which only Huber's may
    have). count: appends a code 0 for each record in use.
    """

    coding: Coding
    point: Point
    family: Huber | Biweight
    reweighted: bool
    meat: bool = False
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        family, used = self.family, _used(self.coding, block)
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            z = residuals(self.coding, self.point, block, x)
            u = coordinates(self.coding, self.point.transform, x, block.scratch)
            w = white_weights(self.coding, u)
            if used is not None:
                w *= used
            a = family.weight(z) if self.reweighted else family.derivative(z)
            a *= w
            root = Scaled(u, np.sqrt(a, out=a))
            w *= family.psi(z)
            score = Scaled(u, w)
        parts = (score, root, score) if self.meat else (score, root)
        return (*parts, _count_codes(block, used)) if self.count else parts


@dataclass(frozen=True, slots=True, eq=False)
class ScaleMap:
    """Gives the bins (rows,) of |r|/s."""

    coding: Coding
    point: Point

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            codes = scale_codes(residuals(self.coding, self.point, block, x))
        used = _used(self.coding, block)
        if used is not None:
            codes[~used] = -1.0
        return (codes,)


def standardised(coding: Coding, block: Block) -> FloatArray:
    """(q, rows) x̃ on the lattice, in the coding's order."""
    x = block.scratch.array("standardised", coding.size, block.rows)
    head = int(coding.design.intercept)
    x[:head] = 1.0
    for row, (term, where) in zip(x[head:], coding.columns, strict=True):
        _to_lattice(evaluate_term(term, block), where.centre, where.scale, row)
        if not _within(term, where):
            np.clip(row, -LARGEST, LARGEST, out=row)
    return x


def _within(term: Term, where: Location) -> bool:
    """Whether the declared bounds keep a standardised term within ±LARGEST."""
    reach = max(abs(term.lower - where.centre), abs(term.upper - where.centre))
    return reach <= LARGEST * where.scale


def _to_lattice(values: FloatArray, centre: float, scale: float, out: FloatArray) -> None:
    """(x − centre)/scale rounded: adding _ROUND leaves LATTICE_BITS bits behind the point."""
    np.multiply(values, 1 / scale, out=out)
    out += _ROUND - centre / scale
    out -= _ROUND


def on_lattice(matrix: FloatArray, size: int) -> FloatArray:
    """Rounded to so many bits below the power of two above its largest entry that sums of `size`
    products with x̃ are exact."""
    largest = float(np.abs(matrix).max(initial=0.0))
    bits = _FREE_BITS - max(size - 1, 0).bit_length()
    granule = 2.0 ** (frexp(largest)[1] - bits)
    return np.asarray(np.rint(matrix / granule) * granule)


def residuals(coding: Coding, point: Point, block: Block, x: FloatArray) -> FloatArray:
    """(rows,) z = (ỹ − x̃ᵀθ)/s."""
    y = coding.response_location
    z = evaluate_term(coding.response, block) * (1 / y.scale)
    z -= y.centre / y.scale
    z -= on_lattice(point.theta, coding.size) @ x
    z *= 1 / point.scale
    return z


def coordinates(
    coding: Coding, transform: FloatArray, x: FloatArray, scratch: Scratch = FRESH
) -> FloatArray:
    """(q, rows) u: the white block through W_c; rare dummies as they are."""
    white = coding.white_size
    u = scratch.array("coordinates", *x.shape)
    W = on_lattice(transform, white)
    for start in range(0, x.shape[1], _PRODUCT_ROWS):
        piece = slice(start, start + _PRODUCT_ROWS)
        np.matmul(W, x[:white, piece], out=u[:white, piece])
    u[white:] = x[white:]
    return u


def white_weights(coding: Coding, u: FloatArray) -> FloatArray:
    """(rows,) w from the white coordinates, added in a fixed order."""
    white = u[: coding.white_size]
    if not len(white):
        return np.ones(u.shape[1])
    norms = squared_lengths(white, np.empty(u.shape[1]))
    return mallows_weights(norms, coding.white_radius_squared)


def _used(coding: Coding, block: Block) -> NDArray[np.bool_] | None:
    return in_use(coding.design, block) if coding.design.masked else None


def _count_codes(block: Block, used: NDArray[np.bool_] | None) -> FloatArray:
    return np.zeros(block.rows) if used is None else np.where(used, 0.0, -1.0)
