# SPDX-License-Identifier: Apache-2.0
"""A study's noisy second moments, least squares from them, and errors of any function of them.

z̃ (q,) are the columns, the intercept first, standardised by public centres and scales. S (q, q)
holds Σω z̃z̃ᵀ/n + N with N = CᵀEC, E symmetric Gaussian noise of sd s on the diagonal and s/√2 off
it; Q = CᵀC. For symmetric G, ⟨G, N⟩ has the variance s²‖CGCᵀ‖_F²; in particular cov(Nv) =
(s²/2)[(vᵀQv)Q + (Qv)(Qv)ᵀ].

Least squares of y = aᵀz̃ on x = Xz̃ is θ = S_XX⁻¹S_Xy; with v = a − Xᵀθ its variance is that of
noise, (s²/2)·S_XX⁻¹[(vᵀQv)Q_XX + (XQv)(XQv)ᵀ]S_XX⁻¹, and of sampling, σ²S_XX⁻¹/n for errors of one
variance. The first holds while the gate s√(2p)/λ is at most 1/3, λ the smallest eigenvalue of S_XX
in the frame in which Q_XX is I.

*Clipping.* S₂ are moments at a narrower radius, released with noise of their own, and of what is
missing from S about λ(S − S₂) may be missing where it matters, λ from a released histogram (the
server's kinds.study.leaning). An estimate A·XSv = 0 may thus have moved by b = λAX(S − S₂)v, with
the noise V_b = λ²(s₂²/2)A[…]Aᵀ of S₂. Before b is seen, it has the mean square T = t²·sampling
variance, t from the histogram too; with w = T/(T + V_b), (wb)² + wV_b is added to its variance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._study.interruption import checkpoint

FloatArray = NDArray[np.float64]

GATE = 1 / 3
"""Largest noise relative to the smallest eigenvalue at which errors of first order hold (the
server's).
"""
BARED = 0.10
"""Share of a column's mean square in a doubling of the radius, from which on there are no intervals
(the server's).
"""
_STEP = 1e-5
"""Of a derivative's difference quotient: entries of S are of order 1, so that rounding leaves ten
digits.
"""
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """θ (p,); privacy and sampling (p, p) covariances; leaning: what clipping may have moved;
    inverse (p, p), of S_XX with what is added to it; variance σ²; gate; residual v (q,); weakest
    (p,): the combination of columns that the noise hides most; stretch: as of Moments.
    """

    theta: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    leaning: "Leaning"
    inverse: FloatArray
    variance: float
    gate: float
    residual: FloatArray
    weakest: FloatArray
    stretch: float = 1.0

    @property
    def open(self) -> bool:
        """Whether intervals may be given."""
        return self.gate <= GATE


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Values (k,) of a function of the moments, with the covariances (k, k) of its noise and of
    sampling, and what clipping may have moved.
    """

    values: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    leaning: "Leaning"

    @property
    def bse(self) -> FloatArray:
        """(k,) standard errors: of sampling, privacy noise and what clipping may have moved."""
        total = np.diag(self.privacy + self.sampling) + self.leaning.squares(
            np.eye(len(self.values))
        )
        return np.asarray(np.sqrt(np.maximum(total, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Leaning:
    """b (p,) and its noise (p, p); prior (p, p): t² times the sampling covariance."""

    moved: FloatArray
    noise: FloatArray
    prior: FloatArray

    def of(self, k: int) -> "Leaning":
        """Of the first k estimates."""
        return Leaning(self.moved[:k], self.noise[:k, :k], self.prior[:k, :k])

    def squares(self, L: FloatArray) -> FloatArray:
        """(k,) mean squares of what clipping has moved the values Lθ by, L (k, p)."""
        T, V = (np.maximum(np.diag(L @ C @ L.T), 0.0) for C in (self.prior, self.noise))
        w = T / np.maximum(T + V, _TINY)
        return np.asarray((w * (L @ self.moved)) ** 2 + w * V)


def lengthened(covariance: FloatArray, squares: FloatArray) -> FloatArray:
    """The covariance (k, k) with (k,) added to its variances, and with its own correlations."""
    variances = np.maximum(np.diag(covariance), _TINY)
    stretch = np.sqrt(1 + squares / variances)
    return np.asarray(covariance * np.outer(stretch, stretch))


@dataclass(frozen=True, slots=True, eq=False)
class NoisePart:
    """One release's noise CᵀEC: root C (m, q), E (m, m) symmetric Gaussian of sd s as above."""

    root: FloatArray
    sd: float

    @property
    def overlap(self) -> FloatArray:
        """Q = CᵀC (q, q)."""
        return np.asarray(self.root.T @ self.root)

    def covariance(self, v: FloatArray, X: FloatArray, A: FloatArray) -> FloatArray:
        """(k, k) of AXNv, for A (k, p), X (p, q) and v (q,)."""
        Q = self.overlap
        across = X @ Q @ v
        inner = (v @ Q @ v) * (X @ Q @ X.T) + np.outer(across, across)
        return np.asarray(self.sd**2 / 2 * A @ inner @ A.T)

    def of_slopes(self, slopes: Sequence[FloatArray], at: Sequence[int]) -> FloatArray:
        """(k, k) covariance of ⟨G, N⟩ for symmetric G (c, c) in the columns at places `at`."""
        checkpoint()
        C = self.root[:, at]
        turned = np.array([(C @ G @ C.T).ravel() for G in slopes])
        return np.asarray(self.sd**2 * turned @ turned.T)


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """S₂ and its C₂ (q, q), s₂, λ and t. several: the noise of moments that were added, in place of
    C₂ and s₂.
    """

    sums: FloatArray
    root: FloatArray
    sd: float
    ratio: float
    typical: float
    several: tuple[NoisePart, ...] = ()

    @property
    def parts(self) -> tuple[NoisePart, ...]:
        """The independent parts of the noise, as `Moments.parts`."""
        return self.several or (NoisePart(self.root, self.sd),)

    def noise(self, v: FloatArray, X: FloatArray, A: FloatArray) -> FloatArray:
        """(k, k) covariance of AXN₂v, as of the wider moments."""
        return np.asarray(sum(part.covariance(v, X, A) for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """names (q,), centres and scales (q,), S and C (q, q), s, n the records of the table, moments
    at a narrower radius, where the release has them, and (q,) the tail of each column.

    Where persons have several rows, S/n are sums over rows for each person, and n is the number of
    persons over the release's design effect: sampling covariances are then as large as they can be,
    whatever the rows of a person have in common (the server's kinds.study.persons). effects:
    whether columns are deviations from a person's means; stretch: by what mean squares of residuals
    are multiplied to be those of errors. several: the noise of releases that were added, in place
    of C and s (reticent._pooled.moments).
    """

    names: tuple[str, ...]
    centres: FloatArray
    scales: FloatArray
    sums: FloatArray
    root: FloatArray
    sd: float
    n: float
    narrow: Narrow | None = None
    lost: FloatArray | None = None
    effects: bool = False
    stretch: float = 1.0
    several: tuple[NoisePart, ...] = ()

    @property
    def parts(self) -> tuple[NoisePart, ...]:
        """The noise: independent parts that are added."""
        return self.several or (NoisePart(self.root, self.sd),)

    @classmethod
    def read(cls, result: Mapping[str, Any], of: Mapping[str, Any]) -> "Moments":
        """From a release's result, and the group of it (or the result itself) that holds the
        moments.
        """
        centres, scales = (
            np.array(result[name], dtype=np.float64) for name in ("centres", "scales")
        )
        D = np.diag(scales)
        D[1:, 0] = centres[1:]
        back = np.linalg.inv(D)
        S = np.array(of["moments"], dtype=np.float64)
        inner = of.get("narrow")
        narrow = inner and Narrow(
            back @ np.array(inner["moments"], dtype=np.float64) @ back.T,
            np.array(inner["noise"]["root"], dtype=np.float64) @ back.T,
            float(inner["noise"]["sd"]),
            float(inner["ratio"]),
            float(inner["typical"]),
        )
        return cls(
            names=tuple(map(str, result["terms"])),
            centres=centres,
            scales=scales,
            sums=back @ S @ back.T,
            root=np.array(of["noise"]["root"], dtype=np.float64) @ back.T,
            sd=float(of["noise"]["sd"]),
            n=int(result["n"]) / float(result.get("design_effect", 1.0)),
            narrow=narrow or None,
            lost=np.array(of.get("lost") or [0.0] * len(S), dtype=np.float64),
            effects=result.get("effects") is not None,
            stretch=float(result.get("stretch", 1.0)),
        )

    def of(self, places: Sequence[int]) -> "Moments":
        """The moments of some columns, the intercept first; of one release."""
        at, chosen = np.ix_(places, places), list(places)
        inner = self.narrow and replace(
            self.narrow, sums=self.narrow.sums[at], root=self.narrow.root[:, chosen]
        )
        return replace(
            self,
            names=tuple(self.names[k] for k in chosen),
            centres=self.centres[chosen],
            scales=self.scales[chosen],
            sums=self.sums[at],
            root=self.root[:, chosen],
            narrow=inner,
            lost=None if self.lost is None else self.lost[chosen],
        )

    def bared(self, *matrices: FloatArray) -> tuple[str, ...]:
        """Names of the columns that combinations (…, q) use and of which the radius takes too much
        for intervals.
        """
        if self.lost is None:
            return ()
        used = np.any(np.vstack(matrices) != 0, axis=0) & (self.lost >= BARED)
        return tuple(name for name, x in zip(self.names, used, strict=True) if x)

    @property
    def records(self) -> float:
        """The released weight of the records in use, over the design effect."""
        return self.n * max(float(self.sums[0, 0]), 1 / self.n)

    @property
    def overlap(self) -> FloatArray:
        """Q (q, q); of several parts their mean, each by its s²."""
        largest = max(part.sd for part in self.parts) or 1.0
        weights = [max(part.sd / largest, _STEP) ** 2 for part in self.parts]
        total = sum(w * part.overlap for w, part in zip(weights, self.parts, strict=True))
        return np.asarray(total / sum(weights))

    def deviation(self, v: FloatArray) -> float:
        """The sd of vᵀNv, v (q,)."""
        return sqrt(sum((part.sd * float(v @ part.overlap @ v)) ** 2 for part in self.parts))

    def norm(self, X: FloatArray) -> float:
        """How large the noise XNXᵀ (p, p) is as a matrix: 2v with v² the largest eigenvalue of
        Σ(s²/2)·tr(XQXᵀ)·XQXᵀ, about E[(XNXᵀ)²]; s√(2p) where there is one part and XQXᵀ = I.

        Source: the norm of a sum of independent Gaussian matrices, Tropp (2015), 4.1.
        """
        square = np.zeros((len(X), len(X)))
        for part in self.parts:
            Q = X @ part.overlap @ X.T
            square += part.sd**2 / 2 * np.trace(Q) * Q
        return 2 * sqrt(max(float(np.linalg.eigvalsh(square)[-1]), 0.0))

    def least_squares(
        self, y: FloatArray, X: FloatArray, penalty: FloatArray | None = None
    ) -> LeastSquares:
        """Of yᵀz̃ on Xz̃: y (q,), X (p, q). penalty: (p, p), added to S_XX (a ridge); the target is
        then the ridge's.
        """
        checkpoint()
        S = self.sums
        gram = X @ S @ X.T
        penalised = gram if penalty is None else gram + penalty
        values, vectors, frame = self._spectrum(penalised, X)
        norm = self.norm(frame @ X)
        gate = norm / values[0] if values[0] > 0 else inf
        usable = values if gate <= GATE else np.maximum(values, max(norm, _TINY))
        inverse = frame @ (vectors / usable) @ vectors.T @ frame
        theta = inverse @ (X @ S @ y)
        v = y - X.T @ theta
        variance = self.variance(v)
        spread = inverse if penalty is None else inverse @ gram @ inverse
        sampling = np.asarray(variance * spread / self.n)
        return LeastSquares(
            theta=theta,
            privacy=self.noise(v, X, inverse),
            sampling=sampling,
            leaning=self.leaning(v, X, inverse, sampling),
            inverse=np.asarray(inverse),
            variance=variance,
            gate=float(gate),
            residual=v,
            weakest=frame @ vectors[:, 0],
            stretch=self.stretch,
        )

    def noise(self, v: FloatArray, X: FloatArray, A: FloatArray) -> FloatArray:
        """(k, k) covariance of AXNv, N the moments' noise, for A (k, p), X (p, q) and v (q,)."""
        return np.asarray(sum(part.covariance(v, X, A) for part in self.parts))

    def leaning(self, v: FloatArray, X: FloatArray, A: FloatArray, sampling: FloatArray) -> Leaning:
        """Of an estimate with A (k, p), X (p, q), the residual v (q,) and the sampling covariance
        (k, k).
        """
        if self.narrow is None:
            return _unmoved(len(A))
        moved = A @ (X @ (self.sums - self.narrow.sums) @ v)
        noise = self.narrow.ratio**2 * self.narrow.noise(v, X, A)
        return Leaning(self.narrow.ratio * moved, noise, self.narrow.typical**2 * sampling)

    def _spectrum(
        self, gram: FloatArray, X: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Eigenvalues and -vectors of S_XX in the frame in which Q_XX is I, and Q_XX^(−1/2)."""
        size, axes = np.linalg.eigh(X @ self.overlap @ X.T)
        frame = (axes / np.sqrt(np.maximum(size, _TINY))) @ axes.T
        moved = frame @ gram @ frame
        values, vectors = np.linalg.eigh((moved + moved.T) / 2)
        return values, vectors, frame

    def gate(self, X: FloatArray) -> float:
        """Of the columns Xz̃."""
        values, _, frame = self._spectrum(X @ self.sums @ X.T, X)
        return float(self.norm(frame @ X) / values[0]) if values[0] > 0 else inf

    def variance(self, v: FloatArray) -> float:
        """Mean square of vᵀz̃; no less than the sd of its noise."""
        return max(float(v @ self.sums @ v), self.deviation(v)) / max(
            float(self.sums[0, 0]), 1 / self.n
        )

    def covariance(self, places: Sequence[int]) -> FloatArray:
        """(k, k) of the columns at these places, not repaired."""
        return _centred(self.sums[np.ix_([0, *places], [0, *places])])

    def delta(self, places: Sequence[int], function: Callable[[FloatArray], FloatArray]) -> Delta:
        """A function of the covariance (k, k) of some columns, by the delta method.

        Sampling is by the normal law, 2 tr(GKHK)/n for gradients G, H in K: heavy tails have more.
        """
        K = self.covariance(places)
        return self.carried(places, np.asarray(function(K)), gradients(K, function))

    def carried(
        self, places: Sequence[int], values: FloatArray, slopes: Sequence[FloatArray]
    ) -> Delta:
        """Values (k,) with symmetric gradients in the covariance of some columns: with their
        errors, as of `delta`.
        """
        checkpoint()
        chosen = [0, *places]
        S = self.sums[np.ix_(chosen, chosen)]
        K, inner = _centred(S), [_of_sums(G, S) for G in slopes]
        turned = [G @ K for G in slopes]
        flat, flipped = (
            np.array([M.ravel() for M in Ms]) for Ms in (turned, [M.T for M in turned])
        )
        sampling = np.asarray(2 / self.records * flat @ flipped.T)
        return self.moved(chosen, values, inner, sampling)

    def moved(
        self,
        chosen: Sequence[int],
        values: FloatArray,
        slopes: Sequence[FloatArray],
        sampling: FloatArray,
    ) -> Delta:
        """Values (k,) with symmetric gradients in S at the places `chosen`, the intercept first,
        and their sampling covariance: with their noise, and what clipping may have moved.
        """
        privacy = sum(part.of_slopes(slopes, chosen) for part in self.parts)
        leaning = self._leaning_of(slopes, chosen, sampling)
        return Delta(values, np.asarray(privacy), sampling, leaning)

    def _leaning_of(
        self, slopes: Sequence[FloatArray], chosen: Sequence[int], sampling: FloatArray
    ) -> Leaning:
        """Of values with the gradients `slopes` in S at the places `chosen`, and their sampling
        covariance.
        """
        if self.narrow is None:
            return _unmoved(len(slopes))
        at = np.ix_(chosen, chosen)
        between = self.sums[at] - self.narrow.sums[at]
        moved = np.array([float(np.sum(G * between)) for G in slopes])
        noise = np.asarray(sum(part.of_slopes(slopes, chosen) for part in self.narrow.parts))
        ratio = self.narrow.ratio
        prior = self.narrow.typical**2 * sampling
        return Leaning(ratio * moved, ratio**2 * noise, prior)


def _unmoved(k: int) -> Leaning:
    return Leaning(np.zeros(k), np.zeros((k, k)), np.zeros((k, k)))


def _centred(S: FloatArray) -> FloatArray:
    weight = S[0, 0]
    mean = S[0, 1:] / weight
    return np.asarray(S[1:, 1:] / weight - np.outer(mean, mean))


def _of_sums(G: FloatArray, S: FloatArray) -> FloatArray:
    """The gradient in S of what has the gradient G in _centred(S) = S₁₁/w − mmᵀ, m = s₁/w."""
    w = float(S[0, 0])
    m = S[0, 1:] / w
    K = _centred(S)
    found = np.empty_like(S)
    found[1:, 1:] = G
    found[0, 1:] = found[1:, 0] = -G @ m
    found[0, 0] = m @ G @ m - np.sum(G * K)
    return found / w


def gradients(matrix: FloatArray, function: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
    """For each of the function's k values its symmetric gradient, by central differences."""
    m = len(matrix)
    found = np.zeros((len(np.atleast_1d(function(matrix))), m, m))
    for i in range(m):
        checkpoint()
        for j in range(i + 1):
            step = np.zeros((m, m))
            step[i, j] = step[j, i] = _STEP
            change = (function(matrix + step) - function(matrix - step)) / (2 * _STEP)
            found[:, i, j] = found[:, j, i] = change / (1 if i == j else 2)
    return list(found)
