# SPDX-License-Identifier: Apache-2.0
"""Coordinates of a design in which public rows are white: made of public facts, before any release.

u = W x̃ with W from the public rows' second moment, so the coordinates are the same, up to a
rotation, however the analyst has written the model: contrasts, centring, units and bases do not
matter.

The length of a coordinate is fixed by a clipped second moment, mean min(1, 4q/‖u‖²) uuᵀ = κI, κ
being what it is for normal rows: that is what a fit can measure on data (fitting.whitening), with
the same result whatever the profile's noise. It has no solution for a direction that only a few
rows have: with a share p < 1/(4q) of the rows beyond the radius, p·4q stays below κ however long
they are made. Such *rare* directions (a level of a factor, a spike beside a constant) are known by
what they consist of: of the clipped moment of a level's dummy all but 1/(4q + 1) is due to its own
rows. They keep the length of their second moment, √(8q) at most, so that their rows lose no more of
their weight than need be; nothing is to be gained by making them longer. Between a level and a
heavy tail the stretch that is allowed changes gradually.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm
from scipy.linalg.lapack import dtrtri

from reticent_server.domain.patience import checkpoint
from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.mallows import mallows_weights, mean_weighted_norm
from reticent_server.numerics.matrices import eigen, floored, power

WIDE = 4.0  # squared radius per coordinate: clips 1 of 10³ normal rows, and most outlying ones
_RARE_LENGTH = 8.0  # squared length per coordinate of a rare row: twice the wide radius
_LEVEL, _TAIL = (
    1.5,
    2.5,
)  # times 1/(4q + 1): what other rows add to a rare level, and to a heavy tail at least
_SINGULAR = 1e-7  # relative eigenvalue below which the terms as written are collinear
_CONSTANT = 1e-9  # of a standardised column: it does not vary on the public rows
_SETTLING = 25  # steps of the fixed point; each leaves about half of the error on heavy tails
USUAL, _FEWEST = 110, 8
"""Coefficients up to which all steps are made, in double precision; and steps of a design of 256,
in single precision, whose rounding is a hundredth of _SETTLED: .1 s in both cases.
"""
_SETTLED = 1e-4  # of κ: closer than any noise lets a length be known
# designs, of 16 MB each with 256 terms, in every process that plans: a caller asks for the same one
# again and again
_KEPT = 3
_SHRINK, _STRETCH = 1 / 3, 30.0  # bounds of what the fixed point does to a free direction


Single = NDArray[np.float32]
Rows = FloatArray | Single
"""(rows, q), of designs of more than USUAL columns in single precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """u = W x̃ (q, q) and the public rows U (rows, q) there.

    free: the first `free` coordinates have their length from the clipped second moment; the others
    are rare. lost: whether some combination of the terms is constant on the public rows. spread:
    the largest `moment_spread`.
    """

    transform: FloatArray
    rows: FloatArray
    free: int
    lost: bool
    spread: float


def public_coordinates(X: FloatArray) -> Coordinates:
    """Coordinates from public rows X (rows, q) of the standardised design; the last few designs'
    are kept, since a plan is made for the forecast and for the release, and at one ε after the
    other.
    """
    return _coordinates(X.shape, X.tobytes())


@lru_cache(maxsize=_KEPT)
def _coordinates(shape: tuple[int, ...], cells: bytes) -> Coordinates:
    X = np.frombuffer(cells).reshape(shape)
    size = np.sqrt(np.mean(X**2, axis=0))
    size[size < _CONSTANT] = 1.0
    values, vectors = eigen(second_moment(X / size))
    singular = values < _SINGULAR
    W = (vectors / np.sqrt(np.where(singular, 1.0, values))) @ vectors.T / size
    wide = len(W) > USUAL
    U = _single(X @ W.T) if wide else X @ W.T
    basis, others = _axes(U)
    W = np.asarray(basis.T @ W)
    U = U @ _single(basis) if wide else X @ W.T
    rare = others < _LEVEL / (WIDE * len(W) + 1)
    cut = _cuts(U, rare)
    W = np.asarray(W * cut[:, None])
    U = U * _single(cut) if wide else X @ W.T
    W = _settled(W, U, _most_stretch(others, rare))
    rows = X @ W.T
    W.flags.writeable = rows.flags.writeable = False
    spread = float(np.max(moment_spread(rows, WIDE * len(W))))
    return Coordinates(W, rows, int(np.sum(~rare)), bool(singular.any()), spread)


def _single(values: FloatArray) -> Single:
    """In single precision, in which the products of many rows take half the time."""
    return np.asarray(values, dtype=np.float32)


def second_moment(U: FloatArray) -> FloatArray:
    """mean uuᵀ (q, q) of rows U (rows, q)."""
    return np.asarray(U.T @ U / len(U))


def clipped_moment(U: FloatArray, radius_squared: float) -> FloatArray:
    """mean min(1, ρ²/‖u‖²) uuᵀ (q, q) of rows U (rows, q)."""
    w = mallows_weights(np.sum(U**2, axis=1), radius_squared)
    return np.asarray((U * w[:, None]).T @ U / len(U))


def moment_spread(U: FloatArray, radius_squared: float) -> FloatArray:
    """(q,) relative standard deviation of what a row adds to the clipped second moment along each
    axis, at least 1: of n rows chosen at random it is spread/√n. A level that a share p of the rows
    has comes to about 1/√p.
    """
    w = mallows_weights(np.sum(U**2, axis=1), radius_squared)
    added = U**2 * w[:, None]
    mean = np.maximum(np.mean(added, axis=0), _SINGULAR)
    return np.asarray(np.maximum(np.std(added, axis=0) / mean, 1.0))


def normal_size(factor: float, q: int) -> float:
    """κ: the clipped second moment of a normal row (1, N(0, I)) at the squared radius factor·q."""
    return mean_weighted_norm(q - 1, factor * q)


def _axes(U: Rows) -> tuple[FloatArray, FloatArray]:
    """Axes (q, q), in columns, of which clipped rows carry more and more; (q,) what other rows add,
    decreasing.
    """
    q = U.shape[1]
    norms = np.sum(U**2, axis=1)
    w = mallows_weights(norms, WIDE * q)
    carried = _weighted_moment(U, np.where(norms > WIDE * q, w, 0.0))
    root = power(_weighted_moment(U, w), -0.5, _SINGULAR)
    shares, directions = eigen(root @ carried @ root)
    basis = np.linalg.qr((root @ directions)[:, ::-1])[0][:, ::-1]
    return basis, np.asarray(1 - shares)


def _weighted_moment(U: Rows, w: Rows) -> FloatArray:
    """mean w uuᵀ (q, q), w ≥ 0 (rows,); of rows in single precision as a product of a matrix with
    itself, which takes half the time.
    """
    if U.dtype != np.float32:
        return np.asarray((U * w[:, None]).T @ U / len(U))
    V = U * np.sqrt(w)[:, None]
    return np.asarray(V.T @ V, dtype=np.float64) / len(U)


def _cuts(U: Rows, rare: NDArray[np.bool_]) -> FloatArray:
    """(q,) by what rare directions are cut to their largest length; 1 for the others."""
    along = U**2
    squared = np.mean(along * along, axis=0) / np.maximum(np.mean(along, axis=0), _SINGULAR)
    cut = np.sqrt(np.minimum(1.0, _RARE_LENGTH * len(rare) / np.maximum(squared, _SINGULAR)))
    return np.where(rare, cut, 1.0)


def _most_stretch(others: FloatArray, rare: NDArray[np.bool_]) -> FloatArray:
    """(q,) by what each axis may be stretched: 1 for a rare one, _STRETCH from a heavy tail on."""
    q = len(others)
    place = (others * (WIDE * q + 1) - _LEVEL) / (_TAIL - _LEVEL)
    return np.where(rare, 1.0, _STRETCH ** np.clip(place, 0.0, 1.0))


def _settled(W: FloatArray, rows: Rows, most: FloatArray) -> FloatArray:
    """W stretched until the clipped second moment of the free axes is κI, as far as each may be.
    rows: X Wᵀ.

    S = AAᵀ for the stretch A of the free axes is κM(S)⁻¹, M being what weights under S leave of
    their second moment (Maronna 1976, with Huber's weights); W gets the symmetric root of S.
    """
    free, q = most > 1.0, len(W)
    if not free.any():
        return W
    still = np.sum(rows[:, ~free] ** 2, axis=1)
    U: Rows = np.asarray(np.take(rows, np.flatnonzero(free), axis=1), order="C")
    A = _stretch(U, still, most[free], q)
    out = W.copy()
    out[free] = power(A @ A.T, 0.5) @ W[free]
    return out


def _stretch(U: Rows, still: FloatArray, limit: FloatArray, q: int) -> FloatArray:
    """A (free, free) for the free axes of rows U (rows, free). still: (rows,) squared lengths along
    the others. limit: (free,) what each axis may be stretched by. M is taken of the rows as they
    are, so that a step has one product of half a matrix with the rows, and one of rows with
    themselves; and it takes a decomposition only where a limit is reached.
    """
    kappa, A = normal_size(WIDE, q), np.eye(len(limit))
    V = U
    for _ in range(_rounds(q)):
        checkpoint()
        w = mallows_weights(still + np.einsum("ij,ij->i", V, V), WIDE * q)
        M = _weighted_moment(U, w) / kappa
        if np.abs(A.T @ M @ A - np.eye(len(A))).max() < _SETTLED:
            break
        A = _root_within(M, limit)
        V = U @ A if q <= USUAL else strmm(1.0, _single(A), U.T, lower=0, trans_a=1).T
    return A


def _root_within(M: FloatArray, limit: FloatArray) -> FloatArray:
    """An upper triangular A with AAᵀ = M⁻¹, as far as each axis may be stretched."""
    P, most = M * np.outer(limit, limit), (_STRETCH / _SHRINK) ** 2
    try:
        np.linalg.cholesky(P - np.eye(len(P)))
        np.linalg.cholesky(most * np.eye(len(P)) - P)
    except np.linalg.LinAlgError:
        P = floored(P, 1.0, most)
    inverse, _ = dtrtri(np.linalg.cholesky(P), lower=1)
    return np.asarray(limit[:, None] * inverse.T)


def _rounds(q: int) -> int:
    """Of the fixed point: all of them for usual designs, and of large ones as many as bound the
    time of a plan.
    """
    return int(np.clip(_SETTLING * (USUAL / q) ** 2, _FEWEST, _SETTLING))
