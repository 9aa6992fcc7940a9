# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to a fit of levels: functions of the record and of public values
only.

    x̃ standardised terms, u = Wx̃ (q,), w = min(1, R²/‖u‖²), η = clip(Θx̃) (P,)
    score        w (s_η ⊗ u, s_λ)                              ‖·‖ ≤ score_bound
    information  w (I_ab u_i u_j, I_ac u_i, I_cd), c, d of λ    ‖·‖ ≤ information_bound

with s and I as in categories.law. The score's sum is the gradient, its Gram sum the meat.

Of the symmetric information each entry is given once: with a ≤ b and i ≤ j, times √2 where a < b
and times √2 where i < j, and so are those of λ, I_ac u_i times √2: the vector's length is the
matrix's Frobenius norm. It has P(P + 1)/2 · q(q + 1)/2 + PqS + S(S + 1)/2 entries. A weight
(Design.weight) multiplies w by a share in [0, 1], and a record that is not in use by 0.

A record's values are bit-identical whatever block it comes in (fitting.maps): W and Θ are on
lattices, all else is elementwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import coordinates, on_lattice, standardised, used_shares
from reticent_server.kinds.glm.categories.law import CategoryLaw, Latent, chosen, information
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.level_places import level_places
from reticent_server.numerics.mallows import mallows_weights

_FARTHEST = 40.0  # |η|: exponentials stay within the floats wherever noise leads


@dataclass(frozen=True, slots=True, eq=False)
class CategoryPoint:
    """A public state. theta: Θ (P, q) of x̃. spacings: λ (S,). transform: W (q, q)."""

    law: CategoryLaw
    theta: FloatArray
    spacings: FloatArray
    transform: FloatArray
    radius_squared: float

    @property
    def radius(self) -> float:
        """R."""
        return sqrt(self.radius_squared)

    @property
    def score_bound(self) -> float:
        """The norm bound of a score."""
        return self.law.score_bound(self.radius, self.spacings)

    @property
    def information_bound(self) -> float:
        """The norm bound of an information."""
        return self.law.information_bound(self.radius, self.spacings)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryMap:
    """Gives (score (D, rows),); with `curvature` the information after it, with `meat` the score
    again.

    column: of the response; stored: the codes of its levels; a record with any other value adds
    nothing.
    """

    coding: TermCoding
    column: str
    stored: tuple[float, ...]
    point: CategoryPoint
    curvature: bool = False
    meat: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        point, law = self.point, self.point.law
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            u = coordinates(point.transform, x, block.scratch)
            w = mallows_weights(squared_lengths(u, np.empty(u.shape[1])), point.radius_squared)
            used = used_shares(self.coding, block)
            if used is not None:
                w *= used
            eta = np.clip(on_lattice(point.theta, len(x)) @ x, -_FARTHEST, _FARTHEST)
            at = Latent(eta, point.spacings)
            level = level_places(self.stored, block.columns[self.column])
            w = np.where(level >= 0, w, 0.0)
            p, table = law.cells(at)
            score = stacked(chosen(table, np.maximum(level, 0)) * w, u, law.predictors)
            vector = Scaled(score, np.ones(block.rows)) if self.meat else score
            parts: tuple[Contribution, ...] = (vector,)
            if self.curvature:
                both = information(p, table)
                parts += (entries(both * w, u, law.predictors),)
        return (*parts, vector) if self.meat else parts


def stacked(s: FloatArray, u: FloatArray, predictors: int) -> FloatArray:
    """(D, rows) of (s_η ⊗ u, s_λ), s (P + S, rows)."""
    return np.vstack([*(row * u for row in s[:predictors]), s[predictors:]])


def places(predictors: int, spacings: int, q: int) -> Iterator[tuple[int, int, int, int, float]]:
    """(a, b, i, j, factor) of each entry of an information, as the vector has them; i or j −1:
    without u."""
    P, latents = predictors, predictors + spacings
    for a in range(latents):
        for b in range(a, latents):
            for i in range(q) if a < P else (-1,):
                for j in range(i, q) if b < P else (-1,):
                    off = (a != b) + (i != j and b < P)
                    yield a, b, i, j, sqrt(2) ** off


def entries(J: FloatArray, u: FloatArray, predictors: int) -> FloatArray:
    """(entries, rows) of an information (P + S, P + S, rows) ⊗ u uᵀ, in the order of `places`."""
    ones = np.ones(u.shape[1])
    found = [
        factor * J[a, b] * (u[i] if i >= 0 else ones) * (u[j] if j >= 0 else ones)
        for a, b, i, j, factor in places(predictors, len(J) - predictors, len(u))
    ]
    return np.vstack(found)


def entry_count(predictors: int, spacings: int, q: int) -> int:
    """How many there are."""
    P, S = predictors, spacings
    return P * (P + 1) // 2 * (q * (q + 1) // 2) + P * q * S + S * (S + 1) // 2


def as_information(values: FloatArray, predictors: int, spacings: int, q: int) -> FloatArray:
    """(D, D) the symmetric matrix of a released vector of entries."""
    D = predictors * q + spacings
    found = np.zeros((D, D))

    def at(a: int, i: int) -> int:
        return a * q + i if a < predictors else predictors * q + a - predictors

    for value, (a, b, i, j, factor) in zip(values, places(predictors, spacings, q), strict=True):
        each = value / factor
        for first, second in {(i, j), (j, i)} if b < predictors else {(i, j)}:
            found[at(a, first), at(b, second)] = each
            found[at(b, second), at(a, first)] = each
    return found
