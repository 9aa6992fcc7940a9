# SPDX-License-Identifier: Apache-2.0
"""A simplex that lies under a maximum of affine functions, for exact rejection sampling.

O(x) = max_i l_i(x) over the 2K functions ±(u_jᵀx − m_j)/s_j. Take d + 1 affine functions
a_iᵀx − b_i ≤ O with multipliers λ_i > 0, Σλ_i = 1, Σλ_i a_i = 0: functions of O, or convex
combinations of such. Then h = max_i (a_iᵀx − b_i) ≤ O; all of them are h_min = −Σλ_i b_i at one
point c; and {h ≤ h_min + τ} is a simplex with the corners c + τD_m, a_iᵀD_m = 1 for i ≠ m. The law
∝ exp(−ηh) is that of

    x = c + (1/η) Σ_{m≠i} E_m D_m,   h(x) = h_min + (1/η) Σ_{m≠i} E_m,

i with probability λ_i (the facet; the share of the cone over it), E_m independent standard
exponentials: their sum is the level's Gamma(d, 1), and their shares of it are uniform on the facet.
Its mass is

    Z_h = e^(−ηh_min) |det (D_m − D_0)_{m≥1}| η^(−d).

*Any* such functions are right; how many proposals a draw takes depends on them: Z_h/Z_O on average.
Of three simplices the one with the smallest Z_h is taken:

1. The optimal basis of min O (numerics.minimax; where a multiplier is 0, a basis that is one
   whatever the data), and functions exchanged one at a time while ln Z_h falls. It keeps most in
   practice.
2. That basis itself.
3. One with a bound. Let d of the a_j, J, be such that every a_i = Σ_{j∈J} c_ij a_j has |c_ij| ≤
   1.02 (exchanges that make |det a_J| larger end there). The functions βl_j + (1 − β)f*, j ∈ J, and
   −(β/d)Σ_J l_j + (1 − β)f*, 0 < β ≤ 1, are convex combinations, f* being one (by the multipliers
   of min O). With z_j = l_j their simplex is {z_j ≤ r, Σz_j ≥ −dr}, of volume (2dr)^d/(d!|det
   a_J|), so Z_h = e^(−η(1−β)f*) (2d/(ηβ))^d/|det a_J|. On the other side O ≤ f* + N(x − x*), N(y) =
   max|a_jᵀy| ≤ 1.02 Σ_J|a_jᵀy|, so Z_O ≥ e^(−ηf*) (2/(1.02 η))^d/|det a_J|. With β = 1/⌈max(1,
   ηf*/d)⌉

       E (number of proposals) = Z_h/Z_O ≤ (1.02 e (d + ηf*))^d.

It exists on every table whose scales are above 0, as does a draw: nothing here can fail. All that
is returned is exact; float64 is used to choose, and a choice that is not exactly a simplex is
passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.minimax import IntArray, Optimum, Program, products, signed_basis
from reticent_server.numerics.rational_matrices import (
    Matrix,
    Rational,
    Vector,
    dot,
    exchanged,
    inverse,
    times,
)

_SMALLEST_SHARE = 1e-9  # smaller multipliers make simplices that float64 cannot compare
# in ln Z_h: a thousandth fewer proposals is not worth a step
_MOST_EXCHANGES, _LEAST_GAIN = 200, 1e-3
_NEARLY_LARGEST = 1.01  # |c_ij| where exchanges for J end; 1.02 in the bound is room for float64


@dataclass(frozen=True, slots=True, eq=False)
class Simplex:
    """lowest: h_min. centre: c (d,). edges: D_m, m = 0..d, each (d,). shares: λ (d + 1,). All
    exact."""

    lowest: Fraction
    centre: Vector
    edges: Matrix
    shares: Vector

    def log_mass(self, eta: float) -> float:
        """ln Z_h + d ln η, in float64."""
        edges = np.array([[float(v) for v in edge] for edge in self.edges])
        sign, volume = np.linalg.slogdet(edges[1:] - edges[0])
        return float(volume) - eta * float(self.lowest) if sign else inf


def simplex_of(rows: Sequence[Sequence[Rational]], limits: Sequence[Rational]) -> Simplex | None:
    """From rows (s_i a_i, −s_i) and limits s_i b_i; None where these are not a simplex's."""
    solved = inverse(rows)
    if solved is None or not all(v < 0 for v in solved[-1]):
        return None
    *centre, lowest = times(solved, limits)
    edges = [[v / column[-1] for v in column[:-1]] for column in zip(*solved, strict=True)]
    shares = [v * row[-1] for v, row in zip(solved[-1], rows, strict=True)]
    return Simplex(lowest, centre, edges, shares)


def envelope(program: Program, optimum: Optimum, eta: float) -> Simplex:
    """The simplex for min O's program (lower = upper = m) and its optimum."""
    start = _basis_of(program, optimum)
    better = exchanges(functions(program, optimum), start, eta)
    simplices = [_of_basis(program, basis) for basis in (better, start)]
    candidates = [simplex for simplex in simplices if simplex is not None]
    candidates.append(bounded_simplex(program, optimum, eta))
    return min(candidates, key=lambda simplex: simplex.log_mass(eta))


def _basis_of(program: Program, optimum: Optimum) -> tuple[int, ...]:
    positive = all(v < 0 for v in optimum.inverse[-1])
    return optimum.basis if positive else signed_basis(program.directions) or optimum.basis


def _of_basis(program: Program, basis: Sequence[int]) -> Simplex | None:
    return simplex_of([program.row(i) for i in basis], [program.limit(i) for i in basis])


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """l_i(x) = a_iᵀy − b_i, y = (x − x*)/unit: a (2K, d), b (2K,)."""

    a: FloatArray
    b: FloatArray


def functions(program: Program, optimum: Optimum) -> Affine:
    """In coordinates in which they are of the order of 1; float64."""
    scale = np.array([float(s) for s in program.scale])
    unit = float(np.median(scale)) / float(np.abs(program.directions).max())
    a = program.directions * unit / scale[:, None]
    at, common = products(program.directions, optimum.point)
    b = [
        (m * common - v) / (s * common)
        for m, v, s in zip(program.lower, at, program.scale, strict=True)
    ]
    return Affine(np.concatenate([a, -a]), np.concatenate([b, np.negative(b)]))


def exchanges(functions: Affine, start: Sequence[int], eta: float) -> tuple[int, ...]:
    """A basis whose ln Z_h no exchange of one function lowers by much."""
    basis = np.array(start)
    for _ in range(_MOST_EXCHANGES):
        exchange = _best_exchange(functions, basis, eta)
        if exchange is None:
            break
        left, taken = exchange
        basis[left] = taken
    return tuple(basis.tolist())


def _best_exchange(functions: Affine, basis: IntArray, eta: float) -> tuple[int, int] | None:
    """(place in the basis, function) of the best exchange; None where ln Z_h does not fall.

    With M = [a_i; 1], w = M⁻¹[a_q; 1] and θ = min_{w_j > 0} λ_j/w_j, attained at j, the new
    multipliers are λ − θw and θ (of q, in the place of j), and det M is multiplied by w_j: ln
    Z_h = −ηh_min − ln|det M| − Σ ln λ_i + const.
    """
    a, b = functions.a[basis], functions.b[basis]
    M = np.vstack([a.T, np.ones(len(basis))])
    columns = np.vstack([functions.a.T, np.ones(len(functions.b))])
    try:
        W = np.linalg.solve(M, columns)
        shares = np.linalg.solve(M, np.append(np.zeros(a.shape[1]), 1.0))
    except np.linalg.LinAlgError:
        return None
    with np.errstate(all="ignore"):
        ratios = np.where(W > _SMALLEST_SHARE, shares[:, None] / W, np.inf)
        leaving, theta = ratios.argmin(axis=0), ratios.min(axis=0)
        every = np.arange(W.shape[1])
        new = shares[:, None] - theta * W
        new[leaving, every] = theta
        gain = eta * theta * (b @ W - functions.b) + np.log(np.abs(W[leaving, every]))
        gain += np.log(new).sum(axis=0) - np.log(shares).sum()
        gain = np.where(np.isfinite(gain) & (new.min(axis=0) > _SMALLEST_SHARE), gain, -np.inf)
    q = int(gain.argmax())
    return (int(leaving[q]), q) if gain[q] >= _LEAST_GAIN else None


def bounded_simplex(program: Program, optimum: Optimum, eta: float) -> Simplex:
    """The simplex whose number of proposals has the bound of the module."""
    d = program.directions.shape[1]
    beta = Fraction(1, max(1, ceil(eta * float(optimum.value) / d)))
    level = (1 - beta) * optimum.value
    slopes, offsets = [], []  # of βl_j
    for j in largest_volume(program):
        share = beta / program.scale[j]
        slopes.append([share * v for v in program.directions[j].tolist()])
        offsets.append(share * program.lower[j])
    slopes.append([-sum(column) / d for column in zip(*slopes, strict=True)])
    offsets.append(-sum(offsets, Fraction(0)) / d)
    simplex = simplex_of([[*a, -1] for a in slopes], [b - level for b in offsets])
    if simplex is None:
        raise ArithmeticError("independent directions have a simplex")
    return simplex


def largest_volume(program: Program) -> tuple[int, ...]:
    """J: d directions, independent, of which |det a_J| no exchange makes much larger."""
    signed = signed_basis(program.directions)
    if signed is None:
        raise ArithmeticError("directions are planned to have a basis")
    J = [i % program.count for i in signed[:-1]]
    scale = np.array([float(s) for s in program.scale])
    solved = inverse([program.directions[j].tolist() for j in J]) or []
    for _ in range(_MOST_EXCHANGES):
        G = np.array([[float(v) for v in row] for row in solved])
        c = np.abs(program.directions @ G) * scale[J] / scale[:, None]
        i, place = (int(v) for v in np.unravel_index(c.argmax(), c.shape))
        if c[i, place] <= _NEARLY_LARGEST:
            break
        share = [
            dot(program.directions[i].tolist(), column) for column in zip(*solved, strict=True)
        ]
        solved = exchanged(solved, place, share)
        J[place] = i
    return tuple(J)
