# SPDX-License-Identifier: Apache-2.0
"""What clipping may still have moved, judged by what a narrower radius has moved. Everything here
is post-processing.

The last whitening round has released the moments S₂ = Σω₂z̃z̃ᵀ + N₂ at a narrower radius r² < R².
Of S = Σωz̃z̃ᵀ what is missing is T = Σ(1 − ω)z̃z̃ᵀ, and D = S − S₂ is what lies between the radii.
With the traces of both, τ_R and τ_r − τ_R in the frame of u, from a released histogram, T is about
λD in the directions that matter,

    λ = .7·τ_R/(τ_r − τ_R),       0 ≤ λ ≤ 5.

A coefficient θ = A·X S(…) with the residual v moves by AXTv to first order, so that its clipping
bias is about

    b = λ AX(S − S₂)v,       with the noise  V_b = λ²·(s₂²/2)·A[(vᵀQ₂v)XQ₂Xᵀ + (XQ₂v)(XQ₂v)ᵀ]Aᵀ.

Least squares has XSv = 0. Where b's noise is large, b alone says little, and a bias may hide in it.
So b is weighed against what clipping moves coefficients by on real tables: root mean square
t·(sampling error), t from the released histogram (radius.Radius.typical). With the prior N(0, T),
T = t²·sampling variance, and w = T/(T + V_b), the mean square of the bias given b is

    (wb)² + wV_b:        b² where b is known well, T where it is not.

b is not taken off, as it is no more than a guess of size and direction: each standard error e is
lengthened to √(e² + that). With a known bias b intervals of the variance e² + b² hold a coefficient
in at least 95 % of samples, whatever b/e. Correlations of coefficients stay.

*Where it is not enough.* λ is one number for all directions, and a column with a tail of its own
has more beyond the radius than that: on visits to a doctor, prices in dollars and capital gains
intervals so lengthened held the coefficients of all records in .75 to .86 of the samples. Such a
column is known by two signs: its declared bounds reach beyond the radius (one column's square
alone, `COLUMN_REACH` times; thresholds: fitting.trust), and of its released mean square at least
`BARED` lies in each doubling of the radius between the two. Formulas with it get no intervals. The
far quantiles of a profile are no such sign: of eight profiles (ε = .5) of the visits four had lost
the tail in the noise of the counts.

*Where noise hides it.* At ε ≤ 1 the second sign has to be clear of its noise, and is missed on
visits to a doctor in 40 % of the samples, which then have wrong intervals. The middle of a profile
is known well, and tells which columns may have such a tail: where the 95 % quantile is farther from
the median than `SKEWED` interquartile ranges (fitting.heavy_terms.skewness), a column within reach
is taken to have a tail unless its noise excludes it, `_EXCLUDED` deviations below `BARED`.

*Persons.* Lengths of persons with many rows spread little, so that many of them may lie between the
radii and all columns have a share there (balanced panels .06 to .2, unbalanced ones .05). A column
is known by what it has beyond the share of all white directions, tr WDWᵀ/tr WSWᵀ, which rows have
about `_BULK` of. On persons of up to 8 rows with lognormal errors of σ = 1, whose intercept is off
by 1.4 to 3.4 standard errors, this finds the response; normal columns keep their intervals, also
where they are the same in all rows of a person.
"""

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.trust.thresholds import (
    COLUMN_REACH,
    LIGHT_COLUMN,
    TAIL_EXCLUDED,
    TAIL_SEEN,
    TAIL_SEEN_OF_PERSONS,
)

# of a mean square in a doubling of the radius, where no column has a tail: what rows have of it at
# the least
_BULK = 0.05
# in a doubling: normal columns that are the same in a person's rows have .08 to .12 beyond the
# share of all directions
_SAME = 0.08
_LEAST_DOUBLING = 1.0  # of log₂(R²/r²): below, noise divided by less looks like a tail
# of the traces' ratio: columns without a tail of their own have less beyond a radius than the trace
# says. On wages, houses with logarithms and census incomes coverage was .93 to .97 from ε = 1 on
# with .7 (.94 to .97 with 1, .92 to .97 with .5), intervals 4 % narrower
DIRECTED = 0.7
# λ: beyond, the histogram says that nearly all of the tail is missing, and D hardly knows where it
# is
MOST = 5.0
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class NarrowMoments:
    """S₂ (q, q), its root C₂ (q, q) and sd s₂, as of Moments; ratio λ; typical t."""

    sums: FloatArray
    root: FloatArray
    sd: float
    ratio: float
    typical: float

    def tails(
        self,
        sums: FloatArray,
        noise: FloatArray,
        reach: FloatArray,
        widening: float,
        skewed: NDArray[np.bool_],
        usual: FloatArray | None = None,
    ) -> FloatArray:
        """(q,) of each column the share of its mean square in the moments `sums` that lies in a
        doubling of the radius; 0 within reach, and where noise may have made it. Of columns that
        are publicly `skewed` (q,) the most that noise leaves possible. noise: (q,) sd of the
        diagonal of `sums`. reach: (q,) largest squares over R²; widening: R²/r². usual: of persons,
        whose lengths are so alike that many may lie between the radii, (q,) the share that columns
        without a tail have there."""
        whole, between = np.diag(sums), np.diag(sums) - np.diag(self.sums)
        shares = np.ones(len(whole))
        np.divide(between, whole, out=shares, where=whole > np.abs(between))
        doublings = max(log2(max(widening, 1.0)), _LEAST_DOUBLING)
        own = self.sd * np.einsum("ij,ij->j", self.root, self.root)
        error = np.hypot(noise, own)
        most = np.ones(len(whole))
        np.divide(
            between + TAIL_EXCLUDED.value * error, whole, out=most, where=whole > np.abs(between)
        )
        common, clear = (0.0, TAIL_SEEN) if usual is None else (usual, TAIL_SEEN_OF_PERSONS)
        seen = np.where(between - common * whole > clear.value * error, shares, 0.0)
        found = np.where(skewed, np.minimum(most, 1.0), seen) / doublings
        if usual is not None:
            found = np.maximum(found - np.maximum(usual / doublings - _BULK, 0.0), 0.0)
        return np.asarray(np.where(reach >= COLUMN_REACH.value, found, 0.0))

    def usual(
        self, sums: FloatArray, overlap: FloatArray, skewness: FloatArray, widening: float
    ) -> FloatArray:
        """(q,) of persons the share between the radii of columns without a tail: that of the mean
        square in the moments `sums` (q, q) of all white directions together, and more of columns
        whose profiles, of this `skewness` (q,), are no longer than a normal law's: they may be the
        same in all rows of a person. overlap: Q of the wider moments. widening: R²/r²."""
        weights = np.linalg.inv(overlap)
        whole, between = float(np.sum(weights * sums)), float(np.sum(weights * (sums - self.sums)))
        share = min(max(between / whole, 0.0), 1.0) if whole > 0 else 0.0
        doublings = max(log2(max(widening, 1.0)), _LEAST_DOUBLING)
        return np.asarray(share + np.where(skewness < LIGHT_COLUMN.value, _SAME * doublings, 0.0))

    def leaning(
        self, sums: FloatArray, v: FloatArray, X: FloatArray, A: FloatArray, sampling: FloatArray
    ) -> "Leaning":
        """For a residual v (q,), columns X (p, q) and A (p, p) of the moments `sums`, and the
        sampling covariance."""
        Q = self.root.T @ self.root
        across = X @ Q @ v
        inner = (v @ Q @ v) * (X @ Q @ X.T) + np.outer(across, across)
        moved = self.ratio * (A @ (X @ (sums - self.sums) @ v))
        noise = self.ratio**2 * self.sd**2 / 2 * A @ inner @ A.T
        return Leaning(moved, noise, self.typical**2 * sampling)


@dataclass(frozen=True, slots=True, eq=False)
class Leaning:
    """b (p,) and its noise (p, p); prior (p, p): t² times the sampling covariance."""

    moved: FloatArray
    noise: FloatArray
    prior: FloatArray

    def squares(self, L: FloatArray) -> FloatArray:
        """(k,) mean squares of what clipping has moved the coefficients Lθ by, L (k, p)."""
        T, V = (np.maximum(np.diag(L @ C @ L.T), 0.0) for C in (self.prior, self.noise))
        w = T / np.maximum(T + V, _TINY)
        return np.asarray((w * (L @ self.moved)) ** 2 + w * V)


def lengthened(covariance: FloatArray, squares: FloatArray) -> FloatArray:
    """The covariance (k, k) with (k,) added to its variances, and with its own correlations."""
    variances = np.maximum(np.diag(covariance), _TINY)
    stretch = np.sqrt(1 + squares / variances)
    return np.asarray(covariance * np.outer(stretch, stretch))


def ratio(missing: float, narrow: float) -> float:
    """λ from τ_R and τ_r."""
    if missing <= 0:
        return 0.0
    between = narrow - missing
    return min(DIRECTED * missing / between, MOST) if between > 0 else 1.0
