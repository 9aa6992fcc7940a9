# SPDX-License-Identifier: Apache-2.0
"""Which combinations of coefficients the releases tell from not identified: from released matrices
only.

Along each axis of the last coordinates two releases say how much information there is relative to
what is expected: the last Gram matrix and the last Jacobian, pooled by precision. Axes are taken up
one by one, each time the one of which most is left, in standard deviations of its noise, once what
it shares with those taken up is taken off (a pivoted Cholesky decomposition). What is left when
none is three standard deviations above 0 is *unresolved*: the data's information about it is below
the noise. So is an axis that fewer than 20 records tell of (a record adds at most R² sup h of a
unit vector's information): no normal law holds there.

A linear combination is *estimable* unless unresolved directions carry more than .3 of its variance:
of a collinear pair neither coefficient is, but what they do together is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.trust import clear
from reticent_server.fitting.trust.thresholds import LEAST_RECORDS, RESOLVED, UNRESOLVED_SHARE
from reticent_server.fitting.whitening import Whitening
from reticent_server.numerics.matrices import eigen, rounded

_SMALLEST_NOISE = 1e-12  # keeps the precision 1/sd of a release without noise within the floats

# of a direction's entries: shares of variance are compared with UNRESOLVED_SHARE, to far fewer
SHOWN_DIGITS = 9


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The directions of a fit with q coefficients. vectors: (q, q), column i such that the variance
    of a combination c is Σᵢ (cᵀvᵢ)²; resolved: (q,)."""

    vectors: FloatArray
    resolved: NDArray[np.bool_]

    def mapped(self, A: FloatArray) -> "Directions":
        """The directions of the coefficients Aθ, A (q, q)."""
        return Directions(A @ self.vectors, self.resolved)

    @property
    def none(self) -> "Directions":
        """The same, none of them resolved."""
        return Directions(self.vectors, np.zeros_like(self.resolved))

    def share(self, R: FloatArray) -> float:
        """The largest share of variance in unresolved directions, over all combinations of R's rows
        (k, q)."""
        if not self.unresolved:
            return 0.0
        basis = np.linalg.qr((R @ self.vectors).T)[0]
        return float(np.linalg.norm(basis[~self.resolved], 2) ** 2)

    def estimable(self, R: FloatArray) -> bool:
        """Whether Rθ is: whether all combinations of R's rows (k, q) are."""
        return self.share(R) <= UNRESOLVED_SHARE.value

    @property
    def flags(self) -> NDArray[np.bool_]:
        """(q,) whether each coefficient is estimable: `share` of one row is a quotient of two sums
        of squares."""
        if not self.unresolved:
            return np.ones(len(self.vectors), dtype=bool)
        squared = self.vectors**2
        lost = np.sum(squared[:, ~self.resolved], axis=1)
        return np.asarray(lost <= UNRESOLVED_SHARE.value * np.sum(squared, axis=1))

    def unsure(self, J: FloatArray, W: FloatArray, sd: float) -> float:
        """The operator norm of a Jacobian's noise relative to its smallest eigenvalue, at most 1:
        of J (q, q) in u = Wx̃, outside the unresolved directions, about which no interval is given
        anyway. sd: of an entry's noise."""
        lost = np.linalg.solve(W.T, self.vectors[:, ~self.resolved])
        kept = np.linalg.qr(lost, mode="complete")[0][:, lost.shape[1] :]
        if not kept.size:
            return 1.0
        blur = sd * float(np.sqrt(2 * kept.shape[1]))
        return blur / max(float(np.linalg.eigvalsh(kept.T @ J @ kept)[0]), blur)

    def off(self, W: FloatArray) -> float:
        """How far the predictor of a typical record may be off, along the resolved directions
        (in x̃; u = Wx̃)."""
        return float(np.linalg.norm(np.linalg.solve(W.T, self.vectors[:, self.resolved])))

    @property
    def unresolved(self) -> int:
        """How many directions are."""
        return int(np.sum(~self.resolved))

    @property
    def shown(self) -> list[dict[str, Any]]:
        """As a release shows them: none where all are resolved, as nothing is decided by them then.

        Of the resolved ones, and of the others, only Σ (cᵀv)² counts, which triangular vectors with
        the same Σ vvᵀ have, too: half as many numbers.
        """
        if not self.unresolved:
            return []
        resolved = self.resolved
        vectors = np.zeros_like(self.vectors)
        for kind in (resolved, ~resolved):
            vectors[:, kind] = np.linalg.qr(self.vectors[:, kind].T)[1].T
        pairs = zip(rounded(vectors.T, SHOWN_DIGITS), resolved.tolist(), strict=True)
        return [{"vector": vector, "resolved": own} for vector, own in pairs]


def any_present(count: Released) -> bool:
    """Whether a released number of records in use is three standard deviations of its noise above
    0."""
    return bool(clear(count.values[0], count.sd))


def fit_directions(
    whitening: Whitening,
    back: FloatArray,
    jacobian: FloatArray,
    noise: FloatArray,
    covariance: FloatArray,
    records: float,
    *,
    present: bool,
) -> Directions:
    """The directions of a fit, in x̃. back: B⁻¹ (q, q) of the expected curvature. jacobian (q, q):
    as released, in u; noise (q,): its own, in the frame B. covariance (q, q): of the fit, in u.
    records: n/(R² sup h). present: any_present.
    """
    B = np.linalg.inv(back)
    seen, sd = _pooled(whitening, B @ jacobian @ B, noise)
    taken = _resolved(seen, sd, _enough(seen, back, records))
    X = np.eye(len(B))
    X[np.ix_(taken, ~taken)] = -np.linalg.solve(
        seen[np.ix_(taken, taken)], seen[np.ix_(taken, ~taken)]
    )
    M = np.linalg.solve(X, back)
    vectors = split_variance(M @ covariance @ M.T, ~taken)
    return Directions(whitening.transform.T @ B @ X @ vectors, taken & present)


def _pooled(
    whitening: Whitening, E: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Information (q, q) relative to what is expected, from the last Gram matrix and the Jacobian's
    E, by precision; and its noise (q,)."""
    moment, sd = whitening.seen
    gram, jacobian = (1 / np.maximum(x, _SMALLEST_NOISE) for x in (sd, noise))
    first, second = np.outer(gram, gram), np.outer(jacobian, jacobian)
    pooled = (first * moment + second * E) / (first + second)
    return pooled, 1 / np.sqrt(gram**2 + jacobian**2)


def _enough(seen: FloatArray, back: FloatArray, records: float) -> NDArray[np.bool_]:
    """(q,) whether LEAST_RECORDS tell of each axis.

    Only the axis' part outside the directions of which fewer tell counts, and it must be the larger
    part. Such a direction is never quite along an axis and B stretches it without bound: counted
    in, it would hide what is known of the axis.
    """
    lengths, turn = eigen(back)
    told = np.sum(turn * (seen @ turn), axis=0) * records * lengths**2
    known = told >= LEAST_RECORDS.value
    parts = turn[:, known]
    stretched = np.sum((parts / lengths[known]) ** 2, axis=1)
    own = np.sum(parts**2, axis=1) > 1 / 2
    told = np.diag(seen) * records / np.where(own, stretched, np.inf)
    return np.asarray(told >= LEAST_RECORDS.value)


def _resolved(seen: FloatArray, sd: FloatArray, enough: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(q,) the axes that are taken up."""
    q = len(sd)
    left, noise = np.diag(seen).copy(), sd.copy()
    L = np.zeros((q, q))  # column k: what axis k shares with the one that was taken up k-th
    taken = np.zeros(q, dtype=bool)
    for k in range(q):
        clear = np.where(taken | ~enough, -np.inf, left / noise)
        at = int(np.argmax(clear))
        if clear[at] < RESOLVED.value:
            break
        taken[at] = True
        shared = (seen[:, at] - L[:, :k] @ L[at, :k]) / np.sqrt(left[at])
        L[:, k] = np.where(taken, 0.0, shared)
        left -= L[:, k] ** 2
        noise += L[:, k] ** 2 / left[at] * sd[at]
    return taken


def split_variance(C: FloatArray, unresolved: NDArray[np.bool_]) -> FloatArray:
    """(q, q) V with VVᵀ ≈ C: a root of the unresolved block in its columns, of the rest in the
    others."""
    q, vectors = len(C), np.zeros_like(C)
    bad = np.flatnonzero(unresolved)
    values, own = eigen(C[np.ix_(bad, bad)]) if len(bad) else (np.zeros(0), np.zeros((0, 0)))
    vectors[np.ix_(bad, bad)] = own * np.sqrt(np.maximum(values, 0.0))
    values, rest = eigen(C - vectors @ vectors.T)
    kept = slice(len(bad), q)
    vectors[:, np.flatnonzero(~unresolved)] = (rest * np.sqrt(np.maximum(values, 0.0)))[:, kept]
    return vectors
