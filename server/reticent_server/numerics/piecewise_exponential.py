"""The density ∝ exp(−a|S(θ)|), S(θ) = Σ ψ_c(x_i − θ), piece by piece, for exact sampling.

x_i and c are whole numbers of lattice steps. S is continuous, does not increase, and is linear between
the knots x_i − c and x_i + c; at knots it is a whole number, exact in float64 below 2⁵³. With |S| split
at its zero the density is exponential between consecutive points, so that a piece's mass has a closed
form and so has the inverse of its distribution function.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """|S| at increasing points t (k,), linear between them."""

    t: FloatArray
    size: FloatArray

    @property
    def width(self) -> FloatArray:
        """(k − 1,) lengths of the pieces."""
        return np.diff(self.t)


def huber_pieces(x: FloatArray, c: float, points: FloatArray) -> Pieces:
    """|S| from the first to the last of the increasing `points`, at these, its knots and its zero.

    x: (n,) whole numbers, like c. S falls from n c by Σ (number of |x_i − θ| < c) dθ.
    """
    knots = np.concatenate([x - c, x + c])
    turns = np.concatenate([np.ones(len(x)), -np.ones(len(x))])
    order = np.argsort(knots, kind="stable")
    knots, active = knots[order], np.cumsum(turns[order])
    S = len(x) * c - np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(knots))])
    last_of_ties = np.append(np.diff(knots) > 0, True)
    knots, S = knots[last_of_ties], S[last_of_ties]
    t = np.union1d(knots, points)
    t = t[(t >= points[0]) & (t <= points[-1])]
    return _split_at_zero(t, np.interp(t, knots, S))


def _split_at_zero(t: FloatArray, S: FloatArray) -> Pieces:
    """With the root of S among the points, where it lies strictly between two of them."""
    k = int(np.searchsorted(-S, 0.0))
    if 0 < k < len(S) and S[k] < 0 < S[k - 1]:
        root = t[k - 1] + (t[k] - t[k - 1]) * (S[k - 1] / (S[k - 1] - S[k]))
        if t[k - 1] < root < t[k]:
            t, S = np.insert(t, k, root), np.insert(S, k, 0.0)
    return Pieces(t, np.abs(S))


def log_masses(width: FloatArray, first: FloatArray, last: FloatArray) -> FloatArray:
    """ln ∫ e^(−v) over pieces of this width on which v ≥ 0 goes linearly from `first` to `last`."""
    rise = np.abs(last - first)
    safe = np.maximum(rise, 1e-12)
    shape = np.where(rise < 1e-12, 1.0, -np.expm1(-safe) / safe)
    return np.asarray(np.log(width) - np.minimum(first, last) + np.log(shape))


def place_within(u: float, rise: float) -> float:
    """A place in [0, 1] with density ∝ exp(−rise·place), for u uniform in (0, 1): inverse CDF.

    For a negative rise the mirror image, so that nothing overflows.
    """
    size = abs(rise)
    place = u if size < 1e-12 else float(-np.log1p(u * np.expm1(-size)) / size)
    place = min(max(place, 0.0), 1.0)
    return place if rise >= 0 else 1.0 - place
