# SPDX-License-Identifier: Apache-2.0
"""A survival curve from noisy counts: the life-table estimate, its variance, and what is read off
it.

With e_j events among r_j at risk in interval j, and l_j = r_j − e_j who are left, S_j = Π_{i ≤ j}
l_i/r_i. log S_j is a function of the group's counts h, homogeneous of degree 0; with its gradient
G_j the delta method gives

    Var log S_j = Σ_k h_k G_jk² + G_j Σ G_jᵀ

(people, drawn at random; and Σ the noise's covariance). Without noise the first sum is Greenwood's
formula. Noise does not move log S by its bend, however fine the grid: l_j is r_{j+1} but for the
censored, so that the sum telescopes. Intervals are S_j exp(±z sd), cut to [0, 1]. The curve ends
where the number at risk is less than 3 sd of its noise, or where all at risk would have the event:
a later quotient is noise.

The grid is public and fine; the curve is reported at the cuts that were asked for. The median's
interval is where the curve's intervals hold ½ (Brookmeyer & Crowley 1982); the restricted mean is
the area under the curve on the grid, joined by straight lines; where times are whole numbers, the
curve falls at these, so that each of its falls stands half a unit later than such a line puts it.

Post-processing of one release. Source: Kalbfleisch & Prentice (2002), The statistical analysis of
failure time data, sections 1.4 and 4.2.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Interval, OpenInterval
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.follow_up.table import LifeTable

_HALF = 0.5  # the survival at a median

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Survival beyond each of `times`, the ends of the intervals up to where the data tell.

    survival: not increasing. standard_errors: of persons and noise; privacy_standard_errors: of the
    noise alone. at_risk: noisy numbers at risk when the intervals begin; events: noisy numbers in
    them. median: None where the curve stays above one half; its interval's end is None where it is
    not reached. restricted_mean: of time up to the result's horizon; None of a curve without times.
    """

    times: tuple[float, ...]
    survival: tuple[float, ...]
    standard_errors: tuple[float, ...]
    privacy_standard_errors: tuple[float, ...]
    confidence_intervals: tuple[Interval, ...]
    at_risk: tuple[float, ...]
    events: tuple[float, ...]
    median: float | None
    median_interval: OpenInterval
    restricted_mean: float | None
    restricted_mean_standard_error: float | None
    restricted_mean_interval: Interval | None
    restricted_means: tuple[float, ...]
    restricted_mean_standard_errors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """The ends of all intervals; which of them are reported; the unit of times that are whole
    numbers, else 0."""

    times: tuple[float, ...]
    reported: tuple[int, ...]
    unit: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class RawCurve:
    """One group's estimate: log S (k,), its gradient (k, 2, J + 1), and the variances (k, k) of
    both sources."""

    log_survival: FloatArray
    gradient: FloatArray
    sampling: FloatArray
    noise: FloatArray

    @property
    def sd(self) -> FloatArray:
        """(k,) of log S."""
        return np.sqrt(np.diag(self.sampling + self.noise))


def raw_curve(table: LifeTable, group: int) -> RawCurve:
    """The estimate on the whole grid, up to the interval before the first that is noise."""
    e, r = table.events[group], table.at_risk[group]
    tells = (clear(r, table.risk_noise)) & (r > 0) & (e < r)
    k = len(r) if tells.all() else int(np.argmin(tells))
    r, left = r[:k], r[:k] - e[:k]
    slope = table.left_weights[:k] / left[:, None, None] - table.risk_weights[:k] / r[:, None, None]
    gradient = np.cumsum(slope, axis=0)
    people = np.maximum(table.counts[group], 0.0)
    return RawCurve(
        np.cumsum(np.log(left / r)),
        gradient,
        np.tensordot(gradient * people, gradient, axes=((1, 2), (1, 2))),
        table.noise(gradient),
    )


def described(table: LifeTable, group: int, raw: RawCurve, grid: TimeGrid, horizon: int) -> Curve:
    """The curve as it is reported; horizon: how many of the cuts the restricted mean is over."""
    ends = np.asarray([i for i in grid.reported if i < len(raw.log_survival)], dtype=np.int64)
    begins = np.append(-1, ends[:-1]) + 1 if len(ends) else ends
    sd = raw.sd
    survival = monotone(np.exp(raw.log_survival[ends]))
    low, high = _intervals(raw.log_survival[ends], sd[ends], survival)
    areas = [_restricted_mean(raw, grid, int(end) + 1) for end in ends]
    reached = 0 < horizon <= len(areas)
    mean, error = areas[horizon - 1] if reached else (None, None)
    return Curve(
        times=tuple(np.asarray(grid.times)[ends].tolist()),
        survival=tuple(survival.tolist()),
        standard_errors=_scaled(raw, sd, ends),
        privacy_standard_errors=_scaled(raw, np.sqrt(np.maximum(np.diag(raw.noise), 0)), ends),
        confidence_intervals=tuple(zip(low.tolist(), high.tolist(), strict=True)),
        at_risk=tuple(table.entering[group, begins].tolist()),
        events=tuple(np.add.reduceat(table.events[group], begins).tolist()) if len(ends) else (),
        **_median(raw, grid),
        restricted_mean=mean,
        restricted_mean_standard_error=error,
        restricted_mean_interval=_above_zero(*areas[horizon - 1]) if reached else None,
        restricted_means=tuple(area for area, _ in areas),
        restricted_mean_standard_errors=tuple(sd for _, sd in areas),
    )


def _above_zero(mean: float, error: float) -> Interval:
    return max(mean - half_width(error), 0.0), mean + half_width(error)


def monotone(survival: FloatArray) -> FloatArray:
    """(k,) the nearest curve that does not increase, within [0, 1]."""
    if not len(survival):
        return survival
    return np.asarray(np.clip(isotonic_regression(survival, increasing=False).x, 0.0, 1.0))


def crossing(times: FloatArray, survival: FloatArray, unit: float = 0.0) -> float | None:
    """When a curve (k,), joined by straight lines from (0, 1), is at one half first, or at the
    first whole time of a `unit` where it is at most that; None: not before its end."""
    below = np.flatnonzero(survival <= _HALF)
    if not len(below):
        return None
    j = int(below[0])
    t, s = np.append(0.0, times), np.append(1.0, survival)
    found = float(t[j] + (t[j + 1] - t[j]) * (s[j] - _HALF) / (s[j] - s[j + 1]))
    return min(ceil(found / unit) * unit, float(t[j + 1])) if unit else found


def _median(raw: RawCurve, grid: TimeGrid) -> dict[str, Any]:
    """When the curve on the whole grid is at one half, and the ends of its interval."""
    times = np.asarray(grid.times[: len(raw.log_survival)])
    survival = monotone(np.exp(raw.log_survival))
    low, high = _intervals(raw.log_survival, raw.sd, survival)
    median, *ends = (crossing(times, curve, grid.unit) for curve in (survival, low, high))
    return {"median": median, "median_interval": tuple(ends)}


def _intervals(
    log_survival: FloatArray, sd: FloatArray, survival: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(k,) ends, which hold the reported curve."""
    width = half_width(1.0, CONFIDENCE) * sd
    low = np.minimum(np.exp(log_survival - width), survival)
    high = np.maximum(np.exp(np.minimum(log_survival + width, 0.0)), survival)
    return low, high


def _scaled(raw: RawCurve, sd: FloatArray, ends: Positions) -> tuple[float, ...]:
    return tuple((np.exp(raw.log_survival) * sd)[ends].tolist())


def _restricted_mean(raw: RawCurve, grid: TimeGrid, k: int) -> tuple[float, float]:
    """The area over the first k ≥ 1 intervals of the grid, and its standard error."""
    width = np.diff(grid.times[:k], prepend=0.0)
    survival = np.exp(raw.log_survival[:k])
    weights = (width + np.append(width[1:], 0.0)) / 2
    first = (float(width[0]) + grid.unit) / 2
    weights[-1] -= grid.unit / 2
    slope = weights * survival
    variance = slope @ (raw.sampling + raw.noise)[:k, :k] @ slope
    return first + float(weights @ survival), float(np.sqrt(max(float(variance), 0.0)))
