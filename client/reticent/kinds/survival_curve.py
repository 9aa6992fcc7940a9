# SPDX-License-Identifier: Apache-2.0
"""Survival curves: steps with their intervals, numbers at risk, medians and restricted means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import axes_of
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent.results.contrasts import Contrast, Z
from reticent.results.contrasts import difference as difference_of
from reticent.results.contrasts import ratio as ratio_of
from reticent.results.numbers_at_risk import RiskLine, numbers_under

FloatArray = NDArray[np.float64]
Ends = tuple[float | None, float | None]

_SAME = 1e-9  # relative distance of times that are the same
_BAND = 0.2  # opacity: bands of several groups stay visible where they overlap


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One group's curve. label: its level, "" where there are no groups."""

    label: str
    content: Mapping[str, Any]

    @property
    def times(self) -> FloatArray:
        """(k,) ends of the intervals, up to where the data tell."""
        return self._array("times")

    @property
    def survival(self) -> FloatArray:
        """(k,) estimated probability of no event up to each time."""
        return self._array("survival")

    @property
    def bse(self) -> FloatArray:
        """(k,) standard errors: persons and privacy noise."""
        return self._array("standard_errors")

    @property
    def privacy_se(self) -> FloatArray:
        """(k,) standard errors of the noise alone."""
        return self._array("privacy_standard_errors")

    @property
    def at_risk(self) -> FloatArray:
        """(k,) noisy numbers at risk when each interval begins: after the time before, 0 for the
        first.
        """
        return self._array("at_risk")

    @property
    def events(self) -> FloatArray:
        """(k,) noisy numbers of events in each interval."""
        return self._array("events")

    @property
    def median(self) -> float:
        """When half have had the event; nan where the curve does not come down to one half."""
        median = self.content.get("median")
        return nan if median is None else float(median)

    @property
    def median_interval(self) -> Ends:
        """Its 95 % interval; None for an end that is not reached."""
        low, high = self.content["median_interval"]
        return low, high

    @property
    def restricted_mean(self) -> float:
        """Mean time without the event, up to the horizon of the release; nan of a curve without
        times."""
        return _or_nan(self.content["restricted_mean"])

    @property
    def restricted_mean_se(self) -> float:
        """Standard error of the restricted mean, in units of time; it includes the privacy
        noise."""
        return _or_nan(self.content["restricted_mean_standard_error"])

    def rmst(self, tau: float) -> Contrast:
        """Restricted mean survival time up to `tau`, with its 95 % interval. Free.

        Between two of the times it is interpolated by a cubic through both means and with both
        survivals as its slopes; the standard error is interpolated, and the interval is wider by
        how far the mean can be from it, since survival only falls. Raises ValueError beyond the
        curve's end, and where that distance is more than half a standard error.
        """
        if "restricted_means" not in self.content:
            raise ValueError("this release is of a server that gave the horizon's mean alone")
        if not len(self.times) or not 0 < tau <= self.times[-1] * (1 + _SAME):
            raise ValueError("the curve does not reach that time; see times")
        j = int(np.searchsorted(self.times * (1 + _SAME), tau))
        ends = [self._knot(i) for i in (j - 1, j)]
        value, error, apart = _between(ends, float(tau))
        if apart > error / 2:
            raise ValueError(
                f"between {number(ends[0][0])} and {number(ends[1][0])} survival falls by too much "
                f"for a mean up to {number(tau)}; ask with this time among the cuts, or take one "
                "of times"
            )
        width = Z * error + apart
        return Contrast(value, error, (max(value - width, 0.0), min(value + width, float(tau))))

    def _knot(self, i: int) -> tuple[float, float, float, float]:
        """Time, restricted mean, its standard error, and survival at one of the times; -1: at 0."""
        if i < 0:
            return 0.0, 0.0, 0.0, 1.0
        names = ("times", "restricted_means", "restricted_mean_standard_errors", "survival")
        time, mean, error, survival = (float(self._array(name)[i]) for name in names)
        return time, mean, error, survival

    def survival_at(self, time: float) -> Contrast:
        """Survival at the last of the times that is not after `time`, with its 95 % interval. Free.
        Raises ValueError for a time before the first or beyond the curve's end.
        """
        value, error = _at(self, time)
        _, low, high = self.at(time)
        return Contrast(value, error, (low, high))

    def conf_int(self) -> FloatArray:
        """(k, 2) pointwise 95 % intervals of the curve."""
        return np.array(self.content["confidence_intervals"], dtype=np.float64).reshape(-1, 2)

    def at(self, time: float) -> tuple[float, float, float]:
        """(survival, lower, upper) at the last of the times that is not after `time`; (1, 1, 1)
        before the first.

        Raises ValueError beyond the curve's end.
        """
        if not len(self.times) or time > self.times[-1]:
            raise ValueError("the curve does not reach that time; see times")
        j = int(np.searchsorted(self.times, time, side="right")) - 1
        if j < 0:
            return 1.0, 1.0, 1.0
        low, high = self.conf_int()[j].tolist()
        return float(self.survival[j]), low, high

    def _array(self, name: str) -> FloatArray:
        return np.array(self.content[name], dtype=np.float64)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SurvivalCurves(Release):
    """Released survival curves; without groups the release has the one curve's properties in
    `curve`.

    >>> found = ds.survival_curve("days", "sold", by="waterfront", epsilon=1.0)
    >>> found.curves["1"].median, found.curves["1"].at(60.0), found.plot()
    """

    @property
    def curves(self) -> Mapping[str, Curve]:
        """The curves by level; of a question without `by` under ""."""
        groups = self.result.get("groups")
        if groups is None:
            return {"": Curve("", self.result)}
        return {str(group["level"]): Curve(str(group["level"]), group) for group in groups}

    @property
    def curve(self) -> Curve:
        """The one curve. Raises ValueError where there are groups."""
        if "" not in self.curves:
            raise ValueError("there is a curve for each group; see curves")
        return self.curves[""]

    @property
    def horizon(self) -> float:
        """The time that restricted means go up to; nan where no curve has a time."""
        found = self.result["horizon"]
        return nan if found is None else float(found)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def summary(self) -> Text:
        header = ("", "median", "[0.025", "0.975]", "mean to horizon", "std err", "at risk last")
        rows = [_row(curve) for curve in self.curves.values()]
        about = (
            f"Time: {self.query['time']}   event: {self.query['event']}   records: {self.nobs:,}"
        )
        lines = [*self._headline(), about, f"Horizon: {number(self.horizon)}", ""]
        lines += text_table(header, rows)
        lines += self._warned()
        return Text("\n".join([*lines, "", *self._footer()]))

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group and time; needs pandas."""
        pandas = _optional.pandas()
        frames = [
            pandas.DataFrame(
                {
                    "group": curve.label,
                    "time": curve.times,
                    "survival": curve.survival,
                    "std_err": curve.bse,
                    "lower": curve.conf_int()[:, 0],
                    "upper": curve.conf_int()[:, 1],
                    "at_risk": curve.at_risk,
                    "events": curve.events,
                }
            )
            for curve in self.curves.values()
        ]
        return pandas.concat(frames, ignore_index=True)

    def difference(self, level: str, other: str, time: float) -> Contrast:
        """Survival of `level` less that of `other` up to `time`, with its 95 % interval. Free.

        The groups' persons are different ones; their noise is taken as independent, though knowing
        the number of all records ties it by a share of one in the number of cells. Raises KeyError
        for an unknown level, ValueError for a time before the first or beyond an end of a curve.
        """
        return difference_of(*(_at(self.curves[each], time) for each in (level, other)))

    def survival_ratio(self, level: str, other: str, time: float) -> Contrast:
        """Survival of `level` over that of `other` up to `time`, with its 95 % interval; its
        standard error is of its logarithm. Free. Raises as `difference`, and ValueError where one
        of them is 0.
        """
        return ratio_of(*(_at(self.curves[each], time) for each in (level, other)))

    def restricted_mean_difference(
        self, level: str, other: str, tau: float | None = None
    ) -> Contrast:
        """The restricted mean of `level` less that of `other`, up to `tau` (see
        Curve.rmst) or the horizon, with its 95 % interval. Free. Raises KeyError for an unknown
        level, ValueError as Curve.rmst.
        """
        return difference_of(*(_rmst(self.curves[each], tau) for each in (level, other)))

    def restricted_mean_ratio(self, level: str, other: str, tau: float | None = None) -> Contrast:
        """The restricted mean of `level` over that of `other`, up to `tau` (see
        Curve.rmst) or the horizon; its standard error is of its logarithm. Free. Raises KeyError
        for an unknown level, ValueError as Curve.rmst.
        """
        return ratio_of(*(_rmst(self.curves[each], tau) for each in (level, other)))

    def plot(self, ax: Any = None, *, at_risk: bool = True) -> Any:
        """Step curves with pointwise 95 % bands, medians with their intervals in the legend and,
        under the axis, the numbers at risk (`at_risk`); needs matplotlib, gives the Axes.
        """
        axes = axes_of(ax)
        for curve in self.curves.values():
            times = np.append(0.0, curve.times)
            (line,) = axes.step(
                times, np.append(1.0, curve.survival), where="post", label=_legend(curve)
            )
            ends = np.vstack([[1.0, 1.0], curve.conf_int()])
            band = {"step": "post", "alpha": _BAND, "color": line.get_color(), "linewidth": 0}
            axes.fill_between(times, ends[:, 0], ends[:, 1], **band)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlim(left=0.0)
        axes.set_xlabel(str(self.query["time"]))
        axes.set_ylabel(f"without {self.query['event']}, 95 % interval")
        if "" not in self.curves:
            axes.legend(title=str(self.query["by"]))
        if at_risk:
            lines = [RiskLine(c.label, c.times, c.at_risk) for c in self.curves.values()]
            numbers_under(axes, lines)
        return axes

    def check(self) -> None:
        Release.check(self)
        _ = (self.nobs, self.horizon)
        for curve in self.curves.values():
            _ = (curve.median, curve.median_interval, curve.restricted_mean, curve.events)
            lengths = {len(v) for v in (curve.times, curve.survival, curve.bse, curve.at_risk)}
            if lengths != {len(curve.conf_int())}:
                raise ValueError("a curve has one value for each time")


def _or_nan(value: float | None) -> float:
    return nan if value is None else float(value)


def _legend(curve: Curve) -> str | None:
    """The level and its median with interval; no reached end: NR."""
    if not curve.label:
        return None
    low, high = ("NR" if end is None else f"{end:.3g}" for end in curve.median_interval)
    median = "NR" if isnan(curve.median) else f"{curve.median:.3g}"
    return f"{curve.label}: median {median} ({low} to {high})"


def _row(curve: Curve) -> tuple[str, ...]:
    low, high = curve.median_interval
    last = curve.at_risk[-1] if len(curve.at_risk) else nan
    numbers = (curve.median, low, high, curve.restricted_mean, curve.restricted_mean_se, last)
    return (curve.label, *map(number, numbers))


def _at(curve: Curve, time: float) -> tuple[float, float]:
    """Survival and its standard error at the last of the times that is not after `time`."""
    survival, _, _ = curve.at(time)
    j = int(np.searchsorted(curve.times, time, side="right")) - 1
    if j < 0:
        raise ValueError("that time is before the first of the curve; see times")
    return survival, float(curve.bse[j])


def _between(
    ends: Sequence[tuple[float, float, float, float]], tau: float
) -> tuple[float, float, float]:
    """Restricted mean up to tau, its standard error, and how far it can be from what it is with
    the survival between that of both ends."""
    (a, low, low_error, s), (b, high, high_error, t) = ends
    h, x = b - a, min((tau - a) / (b - a), 1.0)
    cubic = low * (1 + 2 * x) * (1 - x) ** 2 + high * x**2 * (3 - 2 * x)
    value = cubic + h * x * (1 - x) * (s * (1 - x) - t * x)
    least = max(low + h * x * t, high - h * (1 - x) * s)
    most = min(low + h * x * s, high - h * (1 - x) * t)
    apart = max(value - least, most - value, 0.0) if 0 < x < 1 else 0.0
    return value, low_error * (1 - x) + high_error * x, apart


def _rmst(curve: Curve, tau: float | None) -> tuple[float, float]:
    """A restricted mean and its standard error, up to tau or the horizon."""
    if tau is None:
        return curve.restricted_mean, curve.restricted_mean_se
    found = curve.rmst(tau)
    return found.value, found.standard_error
