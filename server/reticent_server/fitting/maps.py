# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to a fit: functions of the record and of public values only.

    u = W x̃,  η = clip(x̃ᵀθ),  v = m(η) u,  w = min(1, R²/‖v‖²)
    rows     u √min(1, ρ²/‖u‖²)   ‖·‖ ≤ ρ        its Gram sum whitens
    score    w v q(y, η)          ‖·‖ ≤ R sup|q|  its sum is the gradient, its Gram sum the meat
    root     v √(w h(y, η))       ‖·‖ ≤ R √sup h  its Gram sum is the Jacobian

A weighted design (Design.weight) multiplies w by the share a ∈ [0, 1] of a record that counts, so
that each of these norms stays below its bound; the meat is Σ a²w²q²vvᵀ, that of the survey's
sandwich. An offset (Design.offset) is added to x̃ᵀθ before η is clipped, and the bounds hold for
every η.

A record's values are bit-identical whatever block it comes in. Everything is elementwise, or exact:
x̃ is put on a lattice (multiples of 2⁻²⁰ within ±2⁸), W and θ on coarser ones, so that all products
and partial sums are integers below 2⁵³ times a power of two, and BLAS may add them in any order.
The points W and θ of the path are thus rounded before the data are read, and are what everything
later is about.
"""

from dataclasses import dataclass
from math import frexp

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled, multiplied
from reticent_server.fitting.coding import (
    LARGEST,
    LATTICE_BITS,
    RANGE_BITS,
    Coding,
    TermCoding,
)
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.score import Joint, Residuals, Score
from reticent_server.numerics.evaluate import evaluate, evaluate_term, in_use, shares
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.person_columns import STRETCH, prepared

# 1.5·2⁵² steps of the lattice: a sum of that size has no bits below a step, and |x̃| < 2⁸ keeps its
# exponent
_ROUND = 1.5 * 2.0 ** (52 - LATTICE_BITS)
# of a float64's 52, those that neither a step of the lattice nor |x̃| < 2⁸ takes: products stay
# exact
_FREE_BITS = 52 - LATTICE_BITS - RANGE_BITS
_KEPT_BITS = (
    5  # of the smallest singular value, above the granule: rounding moves it by √q/2 granules
)
HALF = 0.5  # moves a share of [0, 1] to the middle of ±½: a sum of it changes by 1 at most
_PRODUCT_ROWS = 1 << 12  # what BLAS keeps in the cache; the products are exact however they are cut


@dataclass(frozen=True, slots=True, eq=False)
class RowsMap:
    """Gives (rows,): u (q, rows) with weights; with `count` a code 0 for each record in use after
    it, of a weighted design a − ½ (1, rows) in its place."""

    coding: TermCoding
    transform: FloatArray
    radius_squared: float
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        block = prepared(self.coding.design, block)
        used = used_shares(self.coding, block)
        with np.errstate(all="ignore"):
            u = coordinates(self.transform, standardised(self.coding, block), block.scratch)
            w = mallows_weights(squared_lengths(u, np.empty(u.shape[1])), self.radius_squared)
            if used is not None:
                w *= used
            rows = Scaled(u, np.sqrt(w, out=w))
        return (rows, _count(self.coding, block, used)) if self.count else (rows,)


@dataclass(frozen=True, slots=True, eq=False)
class FitState:
    """A public state of the fit: θ (q,) of x̃, W (q, q), R² and the score."""

    theta: FloatArray
    transform: FloatArray
    radius_squared: float
    score: Score


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMap:
    """Gives (score,) moved by `shift` (q,) for every record; with `curvature` the root, with `meat`
    the unmoved score after it; with `joint` that is (score, wχ), and wχ follows."""

    coding: Coding
    point: FitState
    shift: FloatArray
    curvature: bool = False
    meat: bool = False
    joint: Joint | None = None

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        block = prepared(self.coding.design, block)
        point, used = self.point, used_shares(self.coding, block)
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            v, linear = _with_predictor(point, x, block.scratch)
            eta = _limited(point, self.coding, linear, block)
            if point.score.varies:
                v *= point.score.leverage(eta)
            w = mallows_weights(squared_lengths(v, np.empty(v.shape[1])), point.radius_squared)
            clipped = w < 1
            if used is not None:
                w *= used
            y = response(self.coding, block)
            if not self.curvature:
                w *= point.score.evaluate(y, eta)
                return (self._moved(Scaled(v, w), block),)
            q, h = point.score.with_curvature(y, eta, clipped)
            scores = Scaled(v, w * q)
            parts = (self._moved(scores, block), Scaled(v, _signed_root(w * h)))
            if self.joint is None or not self.meat:
                return (*parts, scores) if self.meat else parts
            chi = (w * self.joint.contribution(point.score, y, eta))[None, :]
            return (*parts, np.vstack([multiplied(scores), chi]), chi)

    def _moved(self, scores: Scaled, block: Block) -> Contribution:
        if not self.shift.any():
            return scores
        out = block.scratch.array("moved", *scores.vectors.shape)
        np.multiply(scores.vectors, scores.weights, out=out)
        out += self.shift[:, None]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class ResidualMap:
    """Gives what the family's residuals contribute to its scale; nothing for records not in use."""

    coding: Coding
    point: FitState
    residuals: Residuals

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        block = prepared(self.coding.design, block)
        with np.errstate(all="ignore"):
            eta = predictor(self.point, self.coding, standardised(self.coding, block), block)
            y = response(self.coding, block)
            if self.coding.design.deviations:
                eta, y = eta * block.columns[STRETCH], y * block.columns[STRETCH]
            contribution = self.residuals.contribution(self.point.score, y, eta)
        used = used_shares(self.coding, block)
        if used is None:
            return (contribution,)
        if self.coding.design.weight is not None:
            return (np.where(used > 0, contribution * used, 0.0),)
        return (np.where(used, contribution, -1.0 if contribution.ndim == 1 else 0.0),)


def standardised(coding: TermCoding, block: Block) -> FloatArray:
    """(q, rows) x̃ on the lattice."""
    x = block.scratch.array("standardised", coding.size, block.rows)
    head = int(coding.design.intercept)
    x[:head] = 1.0
    for row, term, where in zip(x[head:], coding.design.terms, coding.locations, strict=True):
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
    """A matrix (any shape) rounded to so many bits below the power of two above its largest entry
    that sums of `size` products with x̃ are exact."""
    largest = float(np.abs(matrix).max(initial=0.0))
    granule = 2.0 ** (frexp(largest)[1] - lattice_bits(size))
    return np.asarray(np.rint(matrix / granule) * granule)


def lattice_bits(size: int) -> int:
    """Bits of an entry on the lattice."""
    return _FREE_BITS - max(size - 1, 0).bit_length()


def invertible_on_lattice(matrix: FloatArray) -> FloatArray:
    """A square matrix (q, q) on the lattice, whose largest singular values are cut so that rounding
    to it leaves the smallest: an exactly collinear direction would be stretched beyond what the
    lattice can hold beside others."""
    left, values, right = np.linalg.svd(matrix)
    most = float(values[-1]) * 2.0 ** (lattice_bits(len(matrix)) - _KEPT_BITS)
    return on_lattice((left * np.minimum(values, most)) @ right, len(matrix))


def response(coding: Coding, block: Block) -> FloatArray:
    """(rows,) the standardised response, a contiguous array."""
    where = coding.response_location
    y = evaluate_term(coding.response, block) * (1 / where.scale)
    if where.centre:
        y -= where.centre / where.scale
    return np.ascontiguousarray(y)


def predictor(point: FitState, coding: Coding, x: FloatArray, block: Block) -> FloatArray:
    """(rows,) η with the design's offset, clipped to the score's public range."""
    return _limited(point, coding, on_lattice(point.theta, coding.size) @ x, block)


def _limited(point: FitState, coding: Coding, eta: FloatArray, block: Block) -> FloatArray:
    """η of x̃ᵀθ (rows,)."""
    if coding.design.offset is not None:
        eta = eta + evaluate(coding.design.offset, block)
    low, high = point.score.limits
    return eta if np.isneginf(low) and np.isposinf(high) else np.clip(eta, low, high)


def coordinates(transform: FloatArray, x: FloatArray, scratch: Scratch = FRESH) -> FloatArray:
    """(q, rows) u = W x̃."""
    u = scratch.array("coordinates", *x.shape)
    return _product(on_lattice(transform, len(x)), x, u)


def _with_predictor(
    point: FitState, x: FloatArray, scratch: Scratch
) -> tuple[FloatArray, FloatArray]:
    """u and x̃ᵀθ (rows,): one product, as it is as exact for the rows of each lattice."""
    size, rows = x.shape
    both = np.vstack([on_lattice(point.transform, size), on_lattice(point.theta, size)])
    u = _product(both, x, scratch.array("coordinates", size + 1, rows))
    return u[:size], u[size]


def _product(left: FloatArray, x: FloatArray, out: FloatArray) -> FloatArray:
    for start in range(0, x.shape[1], _PRODUCT_ROWS):
        piece = slice(start, start + _PRODUCT_ROWS)
        np.matmul(left, x[:, piece], out=out[:, piece])
    return out


def _signed_root(values: FloatArray) -> FloatArray:
    """sign(x)√|x|."""
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)))


def used_shares(coding: TermCoding, block: Block) -> FloatArray | None:
    """(rows,) by what w is multiplied: whether a record is in use, and its weight; None where that
    is 1 for all."""
    design = coding.design
    mask = in_use(design, block).astype(np.float64) if design.masked else None
    if design.weight is None:
        return mask
    share = shares(design.weight, block)
    return share if mask is None else share * mask


def _count(coding: TermCoding, block: Block, used: FloatArray | None) -> FloatArray:
    """Of each record: the code of a count, or of a weighted design a − ½, which is within ±½."""
    if used is None:
        return np.zeros(block.rows)
    if coding.design.weight is not None:
        return (used - HALF)[None, :]
    return np.where(used > 0, 0.0, -1.0)
