# SPDX-License-Identifier: Apache-2.0
"""Correlations and partial correlations of a study's columns, with intervals that count noise.

With Fisher's z = artanh(r): Var(z) = 1/(N − k − 3) + (Var_noise(r) + b²)/(1 − r²)², k columns being
held fixed, b what clipping may have moved r by. Where few records decide a column's variance
(Moments.bared) there is neither an interval nor a test. Source: Fisher (1921); the noise by the
delta method.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent import _drawing, _optional
from reticent._study.moments import FloatArray, Moments
from reticent._text import Text, paragraph

_MOST = 0.9999
"""Largest |r| of which an interval is made: noise can make an estimate larger than 1."""
BARED_PAIRS = (
    "A correlation without an interval has a column whose variance a few records far out decide: "
    "make its logarithm, or an indicator of the few, a variable of the study."
)
_CLEAR = 3.0
"""Standard deviations of its noise that a variance must be above 0 for a correlation to mean
something.
"""


@dataclass(frozen=True, slots=True)
class PairwiseCorrelation:
    """r with standard errors, its p-value of "0" and a 1 − alpha interval by `conf_int`; NaN where
    a column hardly varies beside the noise, all but r where few records decide it.

    >>> study.partial_corr("price", "grade", ["sqft_living"]).conf_int()
    """

    names: tuple[str, str]
    given: tuple[str, ...]
    value: float
    privacy_bse: float
    z_error: float

    @property
    def bse(self) -> float:
        """Standard error of r: sampling and noise together."""
        return self.z_error * (1 - min(self.value**2, _MOST**2))

    @property
    def pvalue(self) -> float:
        """Two-sided, of no correlation: by Fisher's z, whose standard error includes the noise."""
        return float(2 * ndtr(-abs(_artanh(self.value)) / self.z_error))

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) of the 1 − alpha interval."""
        half = float(ndtri(1 - alpha / 2)) * self.z_error
        centre = _artanh(self.value)
        return float(np.tanh(centre - half)), float(np.tanh(centre + half))

    def __repr__(self) -> str:
        low, high = self.conf_int()
        given = f" given {', '.join(self.given)}" if self.given else ""
        return (
            f"Correlation of {' and '.join(self.names)}{given}: {self.value:.3f} "
            f"[{low:.3f}, {high:.3f}], p = {self.pvalue:.3g}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """All pairwise correlations of k columns; values, bse, privacy_bse, lower, upper (k, k), 95 %
    intervals.
    """

    names: tuple[str, ...]
    values: FloatArray
    bse: FloatArray
    privacy_bse: FloatArray
    lower: FloatArray
    upper: FloatArray

    def to_frame(self) -> Any:
        """The values as a pandas.DataFrame; needs pandas."""
        return _optional.pandas().DataFrame(self.values, index=self.names, columns=self.names)

    def summary(self) -> Text:
        """One line a pair: r and its interval."""
        lines = ["Correlations with 95 % intervals (sampling and privacy noise)", ""]
        for i, name in enumerate(self.names):
            lines += [
                f"{self.names[j]}, {name}: {self.values[i, j]:.3f} "
                f"[{self.lower[i, j]:.3f}, {self.upper[i, j]:.3f}]"
                for j in range(i)
            ]
        if np.isnan(self.bse[np.isfinite(self.values)]).any():
            lines += ["", *paragraph(BARED_PAIRS)]
        return Text("\n".join(lines))

    def __repr__(self) -> str:
        return str(self.summary())

    def plot(self, ax: Any = None) -> Any:
        """A map of the values; needs matplotlib, gives the Axes."""
        axes, k = _drawing.axes_of(ax), len(self.names)
        image = axes.imshow(self.values, vmin=-1, vmax=1, cmap="RdBu")
        axes.set_xticks(range(k), self.names, rotation=60, ha="right")
        axes.set_yticks(range(k), self.names)
        axes.figure.colorbar(image, ax=axes, label="correlation")
        return axes


def correlation(moments: Moments, x: int, y: int, given: Sequence[int] = ()) -> PairwiseCorrelation:
    """Of the columns at places x and y, others held fixed."""
    estimate = moments.delta((x, y, *given), _partial)
    noise = sqrt(max(float(estimate.privacy[0, 0]), 0.0))
    moved = float(estimate.leaning.squares(np.eye(1))[0])
    value = float(estimate.values[0])
    if not (_varies(moments, x) and _varies(moments, y) and np.isfinite(value)):
        value, noise = float("nan"), float("nan")
    degrees = max(moments.records - len(given) - 3, 1.0)
    error = sqrt(1 / degrees + (noise**2 + moved) / (1 - min(value**2, _MOST**2)) ** 2)
    if moments.bared(np.eye(len(moments.names))[[x, y, *given]]):
        error = nan
    names = moments.names
    return PairwiseCorrelation(
        (names[x], names[y]), tuple(names[k] for k in given), value, noise, error
    )


def correlations(moments: Moments, places: Sequence[int]) -> Correlations:
    """Of all pairs of columns."""
    k = len(places)
    values, bse, noise = np.eye(k), np.zeros((k, k)), np.zeros((k, k))
    lower, upper = np.eye(k), np.eye(k)
    for i in range(k):
        for j in range(i):
            pair = correlation(moments, places[j], places[i])
            low, high = pair.conf_int()
            for a, b in ((i, j), (j, i)):
                values[a, b], bse[a, b], noise[a, b] = pair.value, pair.bse, pair.privacy_bse
                lower[a, b], upper[a, b] = low, high
    return Correlations(tuple(moments.names[p] for p in places), values, bse, noise, lower, upper)


def _varies(moments: Moments, place: int) -> bool:
    """Whether a column's variance is clear of its noise."""
    noise = moments.deviation(np.eye(len(moments.names))[place])
    return bool(moments.covariance((place,))[0, 0] > _CLEAR * noise)


def _partial(K: FloatArray) -> FloatArray:
    """(1,) the correlation of the first two columns given the rest."""
    if len(K) > 2:
        A, B = K[:2, 2:], K[2:, 2:]
        K = K[:2, :2] - A @ np.linalg.solve(B, A.T)
    with np.errstate(all="ignore"):
        return np.array([K[0, 1] / np.sqrt(K[0, 0] * K[1, 1])])


def _artanh(value: float) -> float:
    return float(np.arctanh(np.clip(value, -_MOST, _MOST)))
