# SPDX-License-Identifier: Apache-2.0
"""Shares, means and quantiles from noisy counts, with intervals that count sampling and noise.

Counts c (B,) have independent noise of sd σ. Where the number T of records that they add up to is
public, they are projected on it, c + (T − Σc)/B, and a·c has the noise variance σ²(‖a‖² − (Σa)²/B),
otherwise σ²‖a‖².

*A ratio* m = a·c/d·c (a share: a the level, d all levels; a mean: a the values, d = 1): a·c − m d·c
has noise of mean 0 and a known variance η at any true counts, so with N = d·c

    Var = s²/N + η(a − m d)/N²,

s² = p̃(1 − p̃) of a share, p̃ = (Np + 2)/(N + 4) (Agresti & Coull), or the counts' variance.

*A quantile* at p by inverting tests of "the share at or below x is p" at the upper end of each bin
k: D_k = (1 − p)Σ_{j≤k}c_j − pΣ_{j>k}c_j has the mean N(F_k − p) and, under the hypothesis, the
variance Np(1 − p) + η. The interval is where |D_k| is at most z of its standard deviations, widest
ends where noise makes D cross more than once, linear inside of a bin. Inside of a bin that holds
more than DENSE times an even share (TAIL in the outermost ones) the place is not known, and an end
goes to the bin's end. Of whole numbers, j fills [j, j + 1) of the line: a quantile is the number
that the place lies in, and an interval goes from the first number to the last that it touches.

All of it is post-processing of released counts. Where N is not above its noise
(fitting.trust.clear), nothing is known and intervals are all that is possible.
"""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Interval
from reticent_server.fitting.trust import clear
from reticent_server.kinds.describe.figures import Figure

DENSE = 2.0  # even shares in a bin, beyond which a straight line inside of it is no likely law
TAIL = 0.35  # in the first or last bin: a quarter, where no finer quantile was released, and noise
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Released counts (B,); sigma: the noise of one; total: the number that they add up to, where
    it is public."""

    released: FloatArray
    sigma: float
    total: float | None = None

    @property
    def counts(self) -> FloatArray:
        """(B,), projected on a public total."""
        if self.total is None:
            return self.released
        return np.asarray(self.released + (self.total - self.released.sum()) / len(self.released))

    @property
    def sd(self) -> float:
        """The noise of one of `counts`."""
        return float(np.sqrt(self.noise(np.eye(len(self.released))[0])))

    def noise(self, a: FloatArray) -> float:
        """The variance of the noise of a·c."""
        centred = 0.0 if self.total is None else float(a.sum()) ** 2 / len(a)
        return self.sigma**2 * max(float(a @ a) - centred, 0.0)

    def number(self, d: FloatArray) -> float:
        """d·c, at least 1."""
        return max(float(d @ self.counts), 1.0)

    def sure(self, d: FloatArray) -> bool:
        """Whether d·c is above its noise (fitting.trust.clear)."""
        return bool(clear(float(d @ self.counts), float(np.sqrt(self.noise(d)))))


def share(cells: Cells, a: FloatArray, d: FloatArray) -> Figure:
    """The share a·c/d·c of indicators a ≤ d (B,)."""
    N = cells.number(d)
    p = min(1.0, max(0.0, float(a @ cells.counts) / N))
    near = (N * p + 2) / (N + 4)
    error = float(np.sqrt(near * (1 - near) / N + cells.noise(a - p * d) / N**2))
    if not cells.sure(d):
        return Figure(value=p, standard_error=max(error, 0.5), confidence_interval=(0.0, 1.0))
    interval = normal_interval(p, error, 0.0, 1.0)
    return Figure(value=p, standard_error=error, confidence_interval=interval)


def quartiles(
    cells: Cells, d: FloatArray, edges: FloatArray, bounds: Interval, *, whole: bool = False
) -> tuple[Figure, Figure, Figure]:
    """The quartiles of numbers in bins; d (B,): which cells are bins, the first of them; edges:
    (bins + 1,); bounds: of all values; whole: whether they are whole numbers."""
    places = edges.copy()
    if whole:  # the last bin ends after its last number
        places[0], places[-1] = np.floor(edges[0]), np.floor(edges[-1]) + 1
        bounds = bounds[0], bounds[1] + 1
    found = (_quantile(cells, d, places, bounds, p) for p in QUARTILES)
    q1, q2, q3 = (_whole_figure(q) if whole else _shown_figure(q, edges) for q in found)
    return q1, q2, q3


def _whole_figure(found: Figure) -> Figure:
    """Of places on the line of which a whole number j fills [j, j + 1)."""
    low, high = found.confidence_interval
    value, low, high = ceil(found.value) - 1.0, float(floor(low)), ceil(high) - 1.0
    return Figure(value=max(value, low), confidence_interval=(low, max(high, low)))


def _shown_figure(found: Figure, edges: FloatArray) -> Figure:
    """Where a bin holds one number alone, its other end is that number, not the next one."""
    ends = shown_edges(edges)
    own = dict(zip(edges.tolist(), ends, strict=True))
    low, high = (own.get(end, end) for end in found.confidence_interval)
    single = {end for end, before in zip(ends[1:], ends[:-1], strict=True) if end == before}
    value = next((e for e in single if e <= found.value <= np.nextafter(e, np.inf)), found.value)
    return Figure(value=value, confidence_interval=(min(low, value), max(high, value)))


def shown_edges(edges: FloatArray) -> list[float]:
    """The edges, of a bin that holds one number alone both that number."""
    after = np.nextafter(edges[:-1], np.inf) == edges[1:]
    shown = np.where(np.append(False, after), np.append(edges[0], edges[:-1]), edges)
    return [float(edge) for edge in shown]


def whole_quartiles(
    cells: Cells, d: FloatArray, values: FloatArray
) -> tuple[Figure, Figure, Figure]:
    """The quartiles of whole numbers that are counted one by one; values (bins,), increasing."""
    q1, q2, q3 = (_whole_quantile(cells, d, values, p) for p in QUARTILES)
    return q1, q2, q3


def _quantile(cells: Cells, d: FloatArray, edges: FloatArray, bounds: Interval, p: float) -> Figure:
    z, F = _scores(cells, d, p), _distribution(cells, d)
    k = int(np.searchsorted(F[1:-1], p))
    value = float(edges[k] + _part(F[k], F[k + 1], p) * (edges[k + 1] - edges[k]))
    if not cells.sure(d):
        return Figure(value=value, confidence_interval=bounds)
    outer = np.concatenate([bounds[:1], edges[1:-1], bounds[1:]])
    low, high = _ends(z, edges, outer, _dense(np.diff(F)))
    return Figure(value=value, confidence_interval=(min(low, value), max(high, value)))


def _whole_quantile(cells: Cells, d: FloatArray, values: FloatArray, p: float) -> Figure:
    z, F = _scores(cells, d, p)[1:], _distribution(cells, d)[1:]
    last = len(values) - 1
    value = float(values[min(int(np.searchsorted(F, p)), last)])
    if not cells.sure(d):
        return Figure(value=value, confidence_interval=(float(values[0]), float(values[-1])))
    reach = float(ndtri((1 + CONFIDENCE) / 2))
    low = float(values[min(int(np.argmax(np.append(z, np.inf) > -reach)), last)])
    clear = np.flatnonzero(z < reach)
    high = float(values[min(int(clear[-1]) + 1 if len(clear) else 0, last)])
    return Figure(value=value, confidence_interval=(min(low, value), max(high, value)))


def _distribution(cells: Cells, d: FloatArray) -> FloatArray:
    """(bins + 1,) F at the bins' ends, from 0 to 1: the mean of the least increasing line above the
    released one and the greatest below it."""
    bins = int(d.sum())
    F = np.clip(np.cumsum(cells.counts[:bins]) / cells.number(d), 0.0, 1.0)
    F[-1] = 1.0
    above, below = np.maximum.accumulate(F), np.minimum.accumulate(F[::-1])[::-1]
    return np.concatenate([[0.0], (above + below) / 2])


def _scores(cells: Cells, d: FloatArray, p: float) -> FloatArray:
    """(bins + 1,) D over its standard deviation under the hypothesis, at every end of a bin."""
    bins, N = int(d.sum()), cells.number(d)
    below = np.tri(bins + 1, len(d), -1)
    a = (below - p) * d
    noise = np.array([cells.noise(row) for row in a])
    return np.asarray(a @ cells.counts / np.sqrt(N * p * (1 - p) + noise))


def _dense(shares: FloatArray) -> NDArray[np.bool_]:
    """Of the bins. In the first and the last one density falls outwards, so that a straight line is
    on the safe side."""
    limits = np.full(len(shares), DENSE / len(shares))
    limits[[0, -1]] = max(TAIL, DENSE / len(shares))
    return np.asarray(shares > limits)


def _ends(
    z: FloatArray, edges: FloatArray, outer: FloatArray, dense: NDArray[np.bool_]
) -> Interval:
    """Where a line through z (bins + 1,) first exceeds −reach and last falls below reach; in a
    dense bin, its outer end."""
    reach, last = float(ndtri((1 + CONFIDENCE) / 2)), len(edges) - 2
    inside, outside = np.flatnonzero(z > -reach), np.flatnonzero(z < reach)
    low = max(int(inside[0]) - 1, 0) if len(inside) else last
    high = min(int(outside[-1]), last) if len(outside) else 0
    lower = outer[low] if dense[low] else _crossing(z, edges, low, -reach)
    upper = outer[high + 1] if dense[high] else _crossing(z, edges, high, reach)
    return float(lower), float(upper)


def _crossing(z: FloatArray, edges: FloatArray, k: int, at: float) -> float:
    """Where the line crosses `at` in bin k, or the end that is nearer to it."""
    return float(edges[k] + _part(z[k], z[k + 1], at) * (edges[k + 1] - edges[k]))


def _part(low: float, high: float, at: float) -> float:
    """(at − low)/(high − low) in [0, 1]; a half where the two are equal."""
    return min(1.0, max(0.0, float((at - low) / (high - low)))) if high > low else 0.5
