# SPDX-License-Identifier: Apache-2.0
"""Structural models fitted to a covariance by normal maximum likelihood, and how fits move with it.

Factors and columns v obey v = Av + e, cov(e) = P (the reticular action model of McArdle & McDonald
1984), so that all have the covariance C = BPBᵀ, B = (I − A)⁻¹, and the columns have Σ, a part of C.
The estimate θ̂ minimises F = log|Σ| − log|K| + tr(KΣ⁻¹) − m over the free entries θ of A and P
(Jöreskog 1969).

With Σ_i = ∂Σ/∂θ_i the score is g_i = tr(Σ⁻¹(Σ − K)Σ⁻¹Σ_i), and J_ij = tr(Σ⁻¹Σ_iΣ⁻¹Σ_j) its expected
slope. g(θ̂(K), K) = 0 gives by implicit differentiation ∂θ̂/∂K = H⁻¹Σ⁻¹Σ_iΣ⁻¹, H the slope of g in
θ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._errors import NotEstimable
from reticent._study.interruption import checkpoint
from reticent._study.moments import FloatArray
from reticent._study.path_text import COVARIANCE, LOADING, Path, PathModel

Array = NDArray[Any]
IntArray = NDArray[np.int64]
_ROUNDS = 500
"""Most steps of scoring; fits that exist settle within 50, the rest halve their steps."""
_SETTLED = 1e-22
"""Square of a step by the expected slope, at which a fit has arrived: eleven digits of θ."""
_STEP = 1e-30
"""Of a complex step, whose quotient has no rounding."""
_HALVINGS = 30
"""Of a step: below 10⁻⁹ of it nothing is to be gained."""
_ROUNDING = 1e-13
"""Of F, which is a difference of numbers of order m."""
_COMMON = 0.5
"""Share of an indicator's variance that a start gives to its factor."""
_LEAST = 1e-6
"""Least variance that a factor starts with, in units of the data: only its sign matters."""
_FLAT = 1e-9
"""Least eigenvalue of J with a unit diagonal, below which parameters are not told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A0 and P0 (v, v) are what is fixed of A and P; the columns are the last m of v. A, P (k, 3):
    entries that are free, as row, column and the place of θ (t,) that stands there. parameter: of
    each path, which θ_i it is, or −1 where it is fixed.
    """

    names: tuple[str, ...]
    m: int
    t: int
    A0: FloatArray
    P0: FloatArray
    A: IntArray
    P: IntArray
    parameter: tuple[int, ...]

    @property
    def df(self) -> int:
        """Degrees of freedom: m(m + 1)/2 covariances less the t free parameters."""
        return self.m * (self.m + 1) // 2 - self.t

    def matrices(self, theta: Array) -> tuple[Array, Array]:
        """A and P (v, v) at θ (t,), with the free entries filled in; complex where θ is."""
        A, P = self.A0.astype(theta.dtype), self.P0.astype(theta.dtype)
        A[self.A[:, 0], self.A[:, 1]] = theta[self.A[:, 2]]
        P[self.P[:, 0], self.P[:, 1]] = theta[self.P[:, 2]]
        return A, P

    def total(self, theta: Array) -> Array:
        """C (v, v)."""
        A, P = self.matrices(theta)
        B = np.linalg.inv(np.eye(len(A)) - A)
        return np.asarray(B @ P @ B.T)

    def implied(self, theta: Array) -> Array:
        """Σ (m, m)."""
        return self.total(theta)[-self.m :, -self.m :]

    def slopes(self, theta: Array) -> Array:
        """Σ_i (t, m, m)."""
        A, P = self.matrices(theta)
        B = np.linalg.inv(np.eye(len(A)) - A)
        rest, C = B[-self.m :], B @ P @ B.T
        found = np.zeros((self.t, self.m, self.m), dtype=theta.dtype)
        for row, column, i in self.A:
            moved = np.outer(rest[:, row], C[column, -self.m :])
            found[i] += moved + moved.T
        for row, column, i in self.P:
            found[i] += np.outer(rest[:, row], rest[:, column])
        return found

    def score(self, theta: Array, K: FloatArray) -> Array:
        """g (t,)."""
        inverse = np.linalg.inv(self.implied(theta))
        middle = inverse - inverse @ K @ inverse
        return np.asarray(self.slopes(theta).reshape(self.t, -1) @ middle.ravel())

    def information(self, theta: Array) -> FloatArray:
        """J (t, t)."""
        inverse = np.linalg.inv(self.implied(theta))
        turned = inverse @ self.slopes(theta)
        flipped = np.swapaxes(turned, 1, 2).reshape(self.t, -1)
        return np.asarray(turned.reshape(self.t, -1) @ flipped.T)


def structure(model: PathModel) -> Structure:
    """Of a model: each free path or label is one parameter."""
    names = (*model.factors, *model.columns)
    at = {name: k for k, name in enumerate(names)}
    keys: dict[object, int] = {}
    parameter = tuple(
        keys.setdefault(p.label or (p.op, p.left, p.right), len(keys)) if p.fixed is None else -1
        for p in model.paths
    )
    v = len(names)
    A0, P0 = np.zeros((v, v)), np.zeros((v, v))
    free: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
    for path, i in zip(model.paths, parameter, strict=True):
        which = path.op == COVARIANCE
        for row, column in _places(path, at):
            if i < 0:
                (P0 if which else A0)[row, column] = path.fixed or 0.0
            else:
                free[which].append((row, column, i))
    A, P = (np.array(entries, dtype=np.int64).reshape(-1, 3) for entries in free)
    return Structure(names, len(model.columns), len(keys), A0, P0, A, P, parameter)


def _places(path: Path, at: dict[str, int]) -> set[tuple[int, int]]:
    """Entries of A (to, from) or of P, which is symmetric."""
    left, right = at[path.left], at[path.right]
    if path.op == COVARIANCE:
        return {(left, right), (right, left)}
    return {(right, left) if path.op == LOADING else (left, right)}


def discrepancy(S: Structure, theta: FloatArray, K: FloatArray) -> float:
    """F; infinite where Σ is not positive definite."""
    with np.errstate(all="ignore"):
        sigma = S.implied(theta)
    if not np.isfinite(sigma).all() or np.linalg.eigvalsh((sigma + sigma.T) / 2)[0] <= 0:
        return float("inf")
    ratio = np.linalg.solve(sigma, K)
    return float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - S.m)


def start(S: Structure, model: PathModel, K: FloatArray) -> FloatArray:
    """θ (t,) to begin at: loadings on an indicators' first component, half of each variance
    left."""
    column = {name: k for k, name in enumerate(model.columns)}
    sd = np.sqrt(np.diag(K))
    size: dict[str, float] = {}
    loadings: dict[tuple[str, str], float] = {}
    for factor in model.factors:
        known = [column[x] for x in model.indicators(factor) if x in column]
        R = K[np.ix_(known, known)] / np.outer(sd[known], sd[known])
        first = np.linalg.eigh(R)[1][:, -1] if known else np.ones(0)
        first = first * (1.0 if not len(first) or first[0] >= 0 else -1.0)
        raw = {
            x: float(v) for x, v in zip(known, first * sd[known] * np.sqrt(_COMMON), strict=True)
        }
        one = next(
            (p for p in model.paths if p.op == LOADING and p.left == factor and p.fixed), None
        )
        unit = raw.get(column.get(one.right, -1), 1.0) / (one.fixed or 1.0) if one else 1.0
        size[factor] = max(unit**2 * max(len(known), 1), _LEAST)
        for name in model.indicators(factor):
            loadings[factor, name] = raw.get(column.get(name, -1), unit) / unit
    theta = np.zeros(S.t)
    for path, k in zip(model.paths, S.parameter, strict=True):
        if k >= 0:
            theta[k] = _begin(path, K, column, size, loadings, model.outside)
    return theta


def _begin(
    path: Path,
    K: FloatArray,
    column: dict[str, int],
    size: dict[str, float],
    loadings: dict[tuple[str, str], float],
    outside: Sequence[str],
) -> float:
    if path.op == LOADING:
        return loadings[path.left, path.right]
    if path.op != COVARIANCE:
        return 0.0
    if path.left in column and path.right in column:
        entry = float(K[column[path.left], column[path.right]])
        if path.left in outside and path.right in outside:
            return entry
        return entry / 2 if path.left == path.right else 0.0
    return size.get(path.left, 0.0) if path.left == path.right else 0.0


def fitted(S: Structure, theta: FloatArray, K: FloatArray) -> FloatArray:
    """θ̂ (t,) by Fisher scoring with halved steps. Raises NotEstimable where it does not arrive."""
    value = discrepancy(S, theta, K)
    for _ in range(_ROUNDS):
        checkpoint()
        g, J = S.score(theta, K), S.information(theta)
        scale = np.sqrt(np.diag(J))
        if not np.all(scale > 0) or np.linalg.eigvalsh(J / np.outer(scale, scale))[0] < _FLAT:
            raise NotEstimable(
                "The model is not identified: these columns leave a parameter open. Fix a "
                "parameter, or give each factor two or three columns of its own."
            )
        step = -np.linalg.solve(J, g)
        length = 1.0
        if float(step @ J @ step) < _SETTLED:
            return theta + step
        for _ in range(_HALVINGS):
            after = discrepancy(S, theta + length * step, K)
            if after <= value + abs(value) * _ROUNDING + _ROUNDING:
                break
            length /= 2
        theta, value = theta + length * step, after
    raise NotEstimable(
        "The model does not fit these moments: its likelihood has no maximum within reach. Leave "
        "parameters out, or ask a study at a larger epsilon."
    )


def jacobian(function: Callable[[Array], Array], theta: FloatArray) -> FloatArray:
    """(k, t) by complex steps: exact to rounding for functions of arithmetic and roots."""
    columns = []
    for i in range(len(theta)):
        checkpoint()
        moved = theta.astype(complex)
        moved[i] += 1j * _STEP
        columns.append(np.imag(function(moved)) / _STEP)
    return np.array(columns).T.reshape(-1, len(theta))


def movement(S: Structure, theta: FloatArray, K: FloatArray) -> Array:
    """∂θ̂/∂K (t, m, m), symmetric in its last two places."""
    H = jacobian(lambda moved: S.score(moved, K), theta)
    inverse = np.linalg.inv(S.implied(theta))
    G = inverse @ S.slopes(theta) @ inverse
    return np.tensordot(np.linalg.inv(H), G, 1)
