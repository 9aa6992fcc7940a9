# SPDX-License-Identifier: Apache-2.0
"""Cumulative incidences of competing causes: steps with their intervals, times lost, Gray's
test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import axes_of
from reticent._release import Release
from reticent._text import Text, number, p_value, text_table
from reticent.results.contrasts import Contrast, Z
from reticent.results.contrasts import difference as difference_of
from reticent.results.numbers_at_risk import RiskLine, numbers_under

FloatArray = NDArray[np.float64]

_BAND = 0.2  # opacity: bands of several curves stay visible where they overlap
_STYLES = ("-", "--", ":", "-.")  # of the causes, where a figure has several


@dataclass(frozen=True, slots=True, eq=False)
class IncidenceCurve:
    """One group's cumulative incidence of one cause. level: "" where there are no groups."""

    level: str
    cause: str
    content: Mapping[str, Any]

    @property
    def label(self) -> str:
        """As in a legend."""
        return f"{self.level}: {self.cause}" if self.level else self.cause

    @property
    def times(self) -> FloatArray:
        """(k,) ends of the intervals, up to where the data tell."""
        return self._array("times")

    @property
    def incidence(self) -> FloatArray:
        """(k,) estimated probability that this cause's event came by each time."""
        return self._array("incidence")

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
        """(k,) noisy numbers at risk when each interval begins, the same for every cause."""
        return self._array("at_risk")

    @property
    def events(self) -> FloatArray:
        """(k,) noisy numbers of events of this cause in each interval."""
        return self._array("events")

    def conf_int(self) -> FloatArray:
        """(k, 2) pointwise 95 % intervals of the curve."""
        return np.array(self.content["confidence_intervals"], dtype=np.float64).reshape(-1, 2)

    def at(self, time: float) -> Contrast:
        """Incidence at the last of the times that is not after `time`, with its 95 % interval.
        Raises ValueError for a time before the first or beyond the curve's end.
        """
        if not len(self.times) or time > self.times[-1]:
            raise ValueError("the curve does not reach that time; see times")
        j = int(np.searchsorted(self.times, time, side="right")) - 1
        if j < 0:
            raise ValueError("that time is before the first of the curve; see times")
        low, high = self.conf_int()[j].tolist()
        return Contrast(float(self.incidence[j]), float(self.bse[j]), (low, high))

    def time_lost(self, tau: float) -> Contrast:
        """Mean time lost to this cause up to `tau`, one of the times, with its 95 % interval: the
        area under the curve. Raises ValueError for another time.
        """
        places = np.flatnonzero(np.isclose(self.times, tau, rtol=1e-9, atol=0.0))
        if not len(places):
            raise ValueError(
                "times lost are released up to each of times; ask with this one among the cuts"
            )
        value = float(self._array("times_lost")[places[0]])
        error = float(self._array("times_lost_standard_errors")[places[0]])
        return Contrast(value, error, (max(value - Z * error, 0.0), value + Z * error))

    def _array(self, name: str) -> FloatArray:
        return np.array(self.content[name], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class GrayTest:
    """Do groups have one cumulative incidence of `cause`? observed_minus_expected: by level, noisy
    events beyond what one subdistribution hazard leads to expect, up to the time `until`; None of
    a level that is not compared.
    privacy_share: of the statistic's variance that is noise.
    """

    cause: str
    statistic: float
    df: int
    pvalue: float
    observed_minus_expected: tuple[float | None, ...]
    until: float
    privacy_share: float


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CumulativeIncidences(Release):
    """Released cumulative incidences (Aalen and Johansen's) of competing causes, by group.

    >>> found = ds.cumulative_incidence("days", "ended", by="waterfront", epsilon=1.0)
    >>> found.curve("sold", "1").at(60.0).interval
    >>> found.tests["sold"].pvalue
    >>> found.difference("sold", "1", "0", 60.0)
    """

    @property
    def curves(self) -> tuple[IncidenceCurve, ...]:
        """Of each level and cause, in the order of their levels."""
        return tuple(
            IncidenceCurve(str(each.get("level") or ""), str(each["cause"]), each)
            for each in self.result["curves"]
        )

    def curve(self, cause: str, level: str = "") -> IncidenceCurve:
        """Raises KeyError where there is none."""
        found = {(each.cause, each.level): each for each in self.curves}
        return found[cause, level]

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes that have curves, each once, in the server's order."""
        return tuple(dict.fromkeys(each.cause for each in self.curves))

    @property
    def tests(self) -> Mapping[str, GrayTest]:
        """Gray's test of each cause; empty without `by`, and without a cause for which a group has
        too few persons.
        """
        return {
            str(each["cause"]): GrayTest(
                str(each["cause"]),
                float(each["statistic"]),
                int(each["df"]),
                float(each["p_value"]),
                tuple(each["observed_minus_expected"]),
                float(each["until"]),
                float(each["privacy_share"]),
            )
            for each in self.result.get("tests") or ()
        }

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def difference(self, cause: str, level: str, other: str, time: float) -> Contrast:
        """Incidence of `cause` in `level` less that in `other` by `time`, with its 95 % interval.
        Free. The groups' noise is taken as independent. Raises KeyError for an unknown cause or
        level, ValueError as IncidenceCurve.at.
        """
        found = [self.curve(cause, each).at(time) for each in (level, other)]
        return difference_of(*((each.value, each.standard_error) for each in found))

    def time_lost_difference(self, cause: str, level: str, other: str, tau: float) -> Contrast:
        """Mean time lost to `cause` up to `tau` in `level` less that in `other`, with its 95 %
        interval. Free. Raises KeyError for an unknown cause or level, ValueError as
        IncidenceCurve.time_lost.
        """
        found = [self.curve(cause, each).time_lost(tau) for each in (level, other)]
        return difference_of(*((each.value, each.standard_error) for each in found))

    def summary(self) -> Text:
        header = ("", "up to", "incidence", "[0.025", "0.975]", "time lost", "std err")
        about = (
            f"Time: {self.query['time']}   event: {self.query['event']}   records: {self.nobs:,}"
        )
        lines = [*self._headline(), about, ""]
        lines += text_table(header, [_row(curve) for curve in self.curves])
        lines += self._warned()
        if self.tests:
            rows = [_tested(test) for test in self.tests.values()]
            lines += ["", *text_table(("Gray's test", "χ²", "df", "p", "up to"), rows)]
        return Text("\n".join([*lines, "", *self._footer()]))

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group, cause and time; needs pandas."""
        pandas = _optional.pandas()
        frames = [
            pandas.DataFrame(
                {
                    "group": curve.level,
                    "cause": curve.cause,
                    "time": curve.times,
                    "incidence": curve.incidence,
                    "std_err": curve.bse,
                    "lower": curve.conf_int()[:, 0],
                    "upper": curve.conf_int()[:, 1],
                    "at_risk": curve.at_risk,
                    "events": curve.events,
                }
            )
            for curve in self.curves
        ]
        return pandas.concat(frames, ignore_index=True)

    def plot(self, ax: Any = None, *, cause: str | None = None, at_risk: bool = True) -> Any:
        """Step curves of all causes, or of one, with pointwise 95 % bands, p-values of Gray's test
        in the legend and, under the axis, the numbers at risk (`at_risk`); needs matplotlib, gives
        the Axes.
        """
        axes = axes_of(ax)
        shown = [curve for curve in self.curves if cause in {None, curve.cause}]
        for curve in shown:
            self._draw(axes, curve)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlim(left=0.0)
        axes.set_xlabel(str(self.query["time"]))
        axes.set_ylabel("cumulative incidence, 95 % interval")
        lines = [f"{t.cause}: {p_value(t.pvalue)}" for t in self.tests.values()]
        axes.legend(title="\n".join(["Gray's test", *lines]) if lines else None)
        if at_risk:
            numbers_under(axes, _risk_lines(shown))
        return axes

    def _draw(self, axes: Any, curve: IncidenceCurve) -> None:
        levels = list(dict.fromkeys(each.level for each in self.curves))
        style = {
            "color": f"C{levels.index(curve.level)}",
            "linestyle": _STYLES[self.causes.index(curve.cause) % len(_STYLES)],
        }
        times, values = np.append(0.0, curve.times), np.append(0.0, curve.incidence)
        axes.step(times, values, where="post", label=curve.label, **style)
        ends = np.vstack([[0.0, 0.0], curve.conf_int()])
        band = {"step": "post", "alpha": _BAND, "color": style["color"], "linewidth": 0}
        axes.fill_between(times, ends[:, 0], ends[:, 1], **band)

    def check(self) -> None:
        Release.check(self)
        _ = (self.nobs, self.tests)
        for curve in self.curves:
            columns = (curve.times, curve.incidence, curve.bse, curve.privacy_se, curve.at_risk)
            if {len(v) for v in (*columns, curve.events)} != {len(curve.conf_int())}:
                raise ValueError("a curve has one value for each time")


def _row(curve: IncidenceCurve) -> tuple[str, ...]:
    if not len(curve.times):
        return (curve.label, *[""] * 6)
    last = float(curve.times[-1])
    at, lost = curve.at(last), curve.time_lost(last)
    numbers = (last, at.value, *at.interval, lost.value, lost.standard_error)
    return (curve.label, *map(number, numbers))


def _tested(test: GrayTest) -> tuple[str, ...]:
    return (
        test.cause,
        number(test.statistic),
        str(test.df),
        p_value(test.pvalue),
        number(test.until),
    )


def _risk_lines(curves: Sequence[IncidenceCurve]) -> list[RiskLine]:
    """One for each level: the causes share it."""
    by_level = {curve.level: curve for curve in reversed(curves)}
    return [RiskLine(c.level, c.times, c.at_risk) for c in reversed(by_level.values())]
