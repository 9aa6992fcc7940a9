"""A simplex that lies under a maximum of affine functions, for exact rejection sampling.

O(x) = max_i l_i(x), l_i(x) = a_iᵀx − b_i, over the 2K functions ±(u_jᵀx − m_j)/s_j. Take d + 1 of them, B, with
multipliers λ_i > 0, Σλ_i = 1, Σλ_i a_i = 0. Then h = max_{i∈B} l_i ≤ O; Σλ_i l_i = h_min = −Σλ_i b_i is constant,
and {h ≤ h_min + τ} is a simplex that grows like τ^d. The law ∝ exp(−ηh) is therefore: τ ~ Gamma(d, 1)/η; facet
i ∈ B, on which l_i = h_min + τ, with probability λ_i (the share of the cone over it from the minimiser, since
the barycentric coordinate of x for the opposite corner is λ_i(h_min + τ − l_i(x))/τ); and a uniform point on
that facet, whose barycentric coordinates γ_j, j ≠ i, are Dirichlet(1, …, 1): l_j = h_min + τ − γ_jτ/λ_j.

*Any* such B is right; how often a draw is kept depends on it, as it is kept with probability Z_O/Z_h and

    ln Z_h = −ηh_min − ln|det M| − Σ ln λ_i + const,   M = [a_i; 1]_{i∈B}.

The start is the optimal basis of the linear program min O with b perturbed by a fixed generic vector (an
unperturbed one can have fewer than d + 1 positive multipliers on symmetric or tied data; should no
solution qualify, d + 1 of the directions with public signs do). From there functions are exchanged one at
a time, keeping λ > 0 by the ratio test, while ln Z_h falls: 10–100 times more is kept at d = 8.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from reticent_server.domain.steps import FloatArray

IntArray = NDArray[np.int64]

_PERTURBATIONS = (1e-9, 1e-7, 1e-5, 1e-3)
_SMALLEST_SHARE = 1e-9
_MOST_EXCHANGES, _LEAST_GAIN = 200, 1e-3
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """l_i(x) = a_iᵀx − b_i: a (2K, d), b (2K,)."""

    a: FloatArray
    b: FloatArray

    def largest(self, points: FloatArray) -> FloatArray:
        """(m,) O at points (d, m)."""
        return np.asarray((self.a @ points - self.b[:, None]).max(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Simplex:
    """a (d + 1, d), b (d + 1,), shares λ (d + 1,) of the functions in B; inverse (d, d + 1) of a."""

    a: FloatArray
    b: FloatArray
    shares: FloatArray
    inverse: FloatArray

    @property
    def lowest(self) -> float:
        """h_min."""
        return -float(self.shares @ self.b)

    def points(self, tau: FloatArray, facets: IntArray, weights: FloatArray) -> FloatArray:
        """(d, m) points on the facets of {h ≤ h_min + τ}.

        tau (m,); facets (m,) indices into B; weights (d + 1, m) positive, of which those of other
        corners than the facet's own are used, up to a factor.
        """
        gamma = weights.copy()
        gamma[facets, np.arange(len(tau))] = 0.0
        gamma /= gamma.sum(axis=0)
        levels = self.lowest + tau - gamma * (tau / self.shares[:, None])
        return np.asarray(self.inverse @ (levels + self.b[:, None]))


def affine_functions(directions: FloatArray, location: FloatArray, scale: FloatArray) -> Affine:
    """The 2K functions, the K with sign + first."""
    a, b = directions / scale[:, None], location / scale
    return Affine(np.concatenate([a, -a]), np.concatenate([b, -b]))


def envelope(functions: Affine, eta: float) -> Simplex:
    """A simplex under O that keeps many of the draws at this η."""
    simplex = first_simplex(functions)
    for _ in range(_MOST_EXCHANGES):
        better = _exchanged(functions, simplex, eta)
        if better is None:
            break
        simplex = better
    return simplex


def _exchanged(functions: Affine, simplex: Simplex, eta: float) -> Simplex | None:
    """The best exchange of one function of B; None where ln Z_h does not fall.

    With w = M⁻¹[a_i; 1] and θ = min_{w_j > 0} λ_j/w_j, attained at j, the new multipliers are λ − θw and θ (of
    i, in the place of j), and det M is multiplied by w_j.
    """
    columns = np.vstack([functions.a.T, np.ones(len(functions.b))])
    M = np.vstack([simplex.a.T, np.ones(len(simplex.b))])
    W, shares = np.linalg.solve(M, columns), simplex.shares
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(W > _SMALLEST_SHARE, shares[:, None] / W, np.inf)
        leaving, theta = ratios.argmin(axis=0), ratios.min(axis=0)
        every = np.arange(W.shape[1])
        new = shares[:, None] - theta * W
        new[leaving, every] = theta
        lowest = -(shares @ simplex.b - theta * (simplex.b @ W) + theta * functions.b)
        gain = eta * (lowest - simplex.lowest) + np.log(np.abs(W[leaving, every]))
        gain += np.log(new).sum(axis=0) - np.log(shares).sum()
    gain = np.where(np.isfinite(gain) & (new.min(axis=0) > _SMALLEST_SHARE), gain, -np.inf)
    i = int(gain.argmax())
    if gain[i] < _LEAST_GAIN:
        return None
    a, b = simplex.a.copy(), simplex.b.copy()
    a[leaving[i]], b[leaving[i]] = functions.a[i], functions.b[i]
    return _simplex(a, b)


def first_simplex(functions: Affine) -> Simplex:
    """The simplex of the linear program's basis, or of public signs."""
    generic = np.arange(1, len(functions.b) + 1) * _GOLDEN % 1.0
    for size in _PERTURBATIONS:
        multipliers = _multipliers(functions.a, functions.b + size * generic)
        if multipliers is not None:
            basis = np.argsort(-multipliers)[: functions.a.shape[1] + 1]
            simplex = _simplex(functions.a[basis], functions.b[basis])
            if simplex is not None:
                return simplex
    return public_simplex(functions)


def _multipliers(a: FloatArray, b: FloatArray) -> FloatArray | None:
    """(2K,) the multipliers of min_x max_i a_iᵀx − b_i; None where the solver fails."""
    d = a.shape[1]
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.column_stack([a, -np.ones(len(a))]),
        b_ub=b,
        bounds=[(None, None)] * (d + 1),
        method="highs-ds",
    )
    return None if found.x is None else np.asarray(-found.ineqlin.marginals)


def _simplex(a: FloatArray, b: FloatArray) -> Simplex | None:
    """The simplex of d + 1 functions; None unless its multipliers are positive."""
    d = a.shape[1]
    size = float(np.abs(a).max())
    system = np.vstack([a.T / size, np.ones(d + 1)])
    if np.linalg.cond(system) > 1e12:
        return None
    shares = np.linalg.solve(system, np.append(np.zeros(d), 1.0))
    if shares.min() < _SMALLEST_SHARE:
        return None
    return Simplex(a, b, shares / shares.sum(), np.asarray(np.linalg.pinv(a), np.float64))


def public_simplex(functions: Affine) -> Simplex:
    """From the first d directions and one more, u_{d+1} = Σ c_j u_j with all c_j ≠ 0, signed against c."""
    K, d = len(functions.a) // 2, functions.a.shape[1]
    first = functions.a[:d]
    for k in range(d, K):
        c = np.linalg.solve(first.T, functions.a[k])
        signs = np.where(c > 0, K, 0) + np.arange(d)
        basis = np.append(signs, k)
        simplex = _simplex(functions.a[basis], functions.b[basis])
        if simplex is not None:
            return simplex
    raise ValueError("the directions have no simplex")
