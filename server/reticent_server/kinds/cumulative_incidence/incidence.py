# SPDX-License-Identifier: Apache-2.0
"""Cumulative incidences of competing causes from noisy counts: Aalen and Johansen's estimate, its
variance, and the mean time lost to each cause.

With e_cj events of cause c and e_j of all causes among r_j at risk in interval j of a fine grid,
S_j = Π_{i ≤ j} (1 − e_i/r_i) and

    F_cj = Σ_{i ≤ j} S_{i−1} e_ci/r_i,        Σ_c F_cj = 1 − S_j.

F_c is a function of the group's counts h, homogeneous of degree 0; with its gradient G_cj the delta
method gives

    Var F_cj = Σ_k h_k G_cjk² + G_cj Σ G_cjᵀ

(people, drawn at random; and Σ the noise's covariance). The counts of single cells are mostly noise
and may be below 0; their sums are not, so that the first sum takes them as they are. With one cause
and without noise it is Greenwood's formula. Noise does not move F by its bend, however fine the
grid: S_{i−1}/r_i changes from one interval to the next by those alone who are censored. An interval
is that of log(1 − F), as of the survival curve, cut to [0, 1]. Curves end where the number at risk
is less than 3 sd of its noise, or where all at risk would have an event.

The time lost to cause c up to τ is the area under F_c (Andersen 2013), on the grid, joined by
straight lines; where times are whole numbers each rise stands half a unit later than such a line
puts it. The times lost to all causes and the restricted mean survival time add up to τ.

Post-processing of one release. Sources: Aalen & Johansen (1978); Kalbfleisch & Prentice (2002), The
statistical analysis of failure time data, section 8.2; Andersen (2013), Statistics in Medicine 32.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Interval
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.follow_up.table import LifeTable
from reticent_server.kinds.survival_curve.curve import Positions, TimeGrid

_WIDEST = 100.0  # of an interval of log(1 − F): its ends are then 0 and 1
_ALMOST_ALL = 1e-9  # left without an event, at the least: keeps a logarithm finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidence:
    """Cumulative incidence of one `cause` up to each of `times`, in the group `level` (None: all).

    incidence: not decreasing. standard_errors: of persons and noise; privacy_standard_errors: of
    the noise alone. at_risk: noisy numbers at risk when the intervals begin; events: noisy numbers
    of this cause in them. times_lost: mean time lost to the cause up to each time.
    """

    level: str | None
    cause: str
    times: tuple[float, ...]
    incidence: tuple[float, ...]
    standard_errors: tuple[float, ...]
    privacy_standard_errors: tuple[float, ...]
    confidence_intervals: tuple[Interval, ...]
    at_risk: tuple[float, ...]
    events: tuple[float, ...]
    times_lost: tuple[float, ...]
    times_lost_standard_errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One group's course on the grid, as far as its data tell, k intervals. log_survival (k,) of no
    event of any cause and its slope (k, A, J + 1); at_risk (k,) and risk_slope; incidence (C, k) by
    cause and its slope (C, k, A, J + 1)."""

    log_survival: FloatArray
    survival_slope: FloatArray
    at_risk: FloatArray
    risk_slope: FloatArray
    incidence: FloatArray
    slope: FloatArray

    @property
    def length(self) -> int:
        """k."""
        return len(self.log_survival)


def course_of(table: LifeTable, group: int) -> Course:
    """The estimate on the grid, up to the interval before the first that is noise."""
    e, r = table.events[group], table.at_risk[group]
    tells = clear(r, table.risk_noise) & (r > 0) & (e < r)
    k = len(r) if tells.all() else int(np.argmin(tells))
    r, left = r[:k], r[:k] - e[:k]
    at_risk, stayed = table.risk_weights[:k], table.left_weights[:k]
    fall = stayed / left[:, None, None] - at_risk / r[:, None, None]
    log_s, slope = np.cumsum(np.log(left / r)), np.cumsum(fall, axis=0)
    before = np.exp(log_s - np.log(left / r)) / r
    rate = slope - fall - at_risk / r[:, None, None]
    causes = table.counts[group, :-1, :k]
    rises = before[:, None, None] * (causes[..., None, None] * rate + _own(table, k))
    return Course(
        log_s, slope, r, at_risk, np.cumsum(before * causes, axis=1), np.cumsum(rises, axis=1)
    )


def described(
    table: LifeTable, group: int, course: Course, cause: int, grid: TimeGrid, names: tuple[str, str]
) -> Incidence:
    """One cause's curve as it is reported; names: the group's level ("" for all) and the cause."""
    ends = np.asarray([i for i in grid.reported if i < course.length], dtype=np.int64)
    begins = np.append(-1, ends[:-1]) + 1 if len(ends) else ends
    raw, slope = course.incidence[cause][ends], course.slope[cause]
    noise = np.sqrt(_noise(table, slope[ends]))
    sd = np.sqrt(_sampling(table, group, slope[ends]) + noise**2)
    shown = increasing(raw)
    areas = _areas(ends, grid, course.length)
    lost = areas @ course.incidence[cause]
    moved = np.tensordot(areas, slope, axes=1)
    lost_sd = np.sqrt(_sampling(table, group, moved) + _noise(table, moved))
    return Incidence(
        level=names[0] or None,
        cause=names[1],
        times=tuple(np.asarray(grid.times)[ends].tolist()),
        incidence=tuple(shown.tolist()),
        standard_errors=tuple(sd.tolist()),
        privacy_standard_errors=tuple(noise.tolist()),
        confidence_intervals=_intervals(raw, sd, shown),
        at_risk=tuple(table.entering[group, begins].tolist()),
        events=_sums(table.counts[group, cause, :-1], begins, ends),
        times_lost=tuple(lost.tolist()),
        times_lost_standard_errors=tuple(lost_sd.tolist()),
    )


def increasing(incidence: FloatArray) -> FloatArray:
    """(k,) the nearest curve that does not decrease, within [0, 1]."""
    if not len(incidence):
        return incidence
    return np.asarray(np.clip(isotonic_regression(incidence).x, 0.0, 1.0))


def _own(table: LifeTable, k: int) -> FloatArray:
    """(C, k, A, J + 1) the slope of the events of each cause."""
    C = table.counts.shape[1] - 1
    own = np.einsum("ca,ki->ckai", np.eye(C, C + 1), np.eye(k, table.intervals + 1))
    return np.asarray(own)


def _sampling(table: LifeTable, group: int, slope: FloatArray) -> FloatArray:
    """(k,) variance of persons of functions of the slope (k, A, J + 1)."""
    variance = np.einsum("kai,ai->k", slope**2, table.counts[group])
    return np.asarray(np.maximum(variance, 0.0))


def _noise(table: LifeTable, slope: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.diag(table.noise(slope)), 0.0))


def _areas(ends: Positions, grid: TimeGrid, k: int) -> FloatArray:
    """(reported, k) weights of a curve's values on the grid that give the area up to each end."""
    width = np.diff(grid.times[:k], prepend=0.0)
    half = np.append(width, 0.0) / 2
    weights = np.tile(half[:-1] + half[1:], (len(ends), 1))
    weights[np.arange(len(width)) > ends[:, None]] = 0.0
    weights[np.arange(len(ends)), ends] = (width[ends] - grid.unit) / 2
    return weights


def _intervals(raw: FloatArray, sd: FloatArray, shown: FloatArray) -> tuple[Interval, ...]:
    """Ends of log(1 − F), which hold the reported curve."""
    left = np.maximum(1 - raw, _ALMOST_ALL)
    width = np.minimum(half_width(1.0, CONFIDENCE) * sd / left, _WIDEST)
    low = np.minimum(np.maximum(1 - left * np.exp(width), 0.0), shown)
    high = np.maximum(1 - left * np.exp(-width), shown)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _sums(events: FloatArray, begins: Positions, ends: Positions) -> tuple[float, ...]:
    """Of the events in each reported interval."""
    return tuple(float(events[a : b + 1].sum()) for a, b in zip(begins, ends, strict=True))
