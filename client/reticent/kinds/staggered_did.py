# SPDX-License-Identifier: Apache-2.0
"""Group–time effects of a treatment that starts at different times, their averages and plots."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._hypotheses import WaldTest
from reticent._release import Release
from reticent._simultaneous import critical_value
from reticent._text import Text, number, probability, text_table
from reticent.results.contrasts import Contrast
from reticent.results.honest import DynamicEffects, relative_interval, smoothness_interval

FloatArray = NDArray[np.float64]
Control = Literal["never", "not_yet"]
Average = Literal["dynamic", "by_cohort", "calendar"]
Trends = Literal["smoothness", "relative"]
_INTERVALS = {"smoothness": smoothness_interval, "relative": relative_interval}
_NAMES = {"never": "never treated", "not_yet": "not yet treated"}
_NO_EFFECTS = (
    "no effect could be distinguished from the noise with these controls: see warnings, or take "
    "the other ones"
)
_STEPS = 24
"""Halvings of the bracket of a breakdown value."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StaggeredDidResults(Release):
    """Released effects by cohort and period (Callaway & Sant'Anna), with all their averages.

    Everything is there for both sets of controls, `never` treated and `not_yet` treated; without
    one named, the never treated where the release has them. All methods are free of charge.

    >>> found = ds.staggered_did("log(price)", "station", "quarter", epsilon=4.0)
    >>> found.effect(), found.table(), found.averages("dynamic"), found.pretrend()
    >>> found.plot(); found.honest(0.5, "relative"); found.breakdown("relative")
    """

    def controls(self, control: Control | None = None) -> Control:
        """The set of controls: the named one, else the never treated where there are effects with
        them. Raises ValueError where no effect can be estimated.
        """
        names: tuple[Control, ...] = ("never", "not_yet") if control is None else (control,)
        for name in names:
            if self.result[name] is not None:
                return name
        raise ValueError(_NO_EFFECTS)

    def effect(self, control: Control | None = None) -> Contrast:
        """The simple average over all treated cohorts and periods, with its interval."""
        return _contrast(self._of(control)["simple"])

    def overall(self, by: Average, control: Control | None = None) -> Contrast:
        """The average of averages: over times since treatment, cohorts (weighted by size), or
        periods."""
        return _contrast(self._of(control)[by]["overall"])

    def averages(self, by: Average = "dynamic", control: Control | None = None) -> Any:
        """A pandas.DataFrame of effects by time since treatment (without the reference −1), cohort
        or period; needs pandas.
        """
        found = self._of(control)[by]
        return _frame(found["effects"], found["at"])

    def table(self, control: Control | None = None) -> Any:
        """A pandas.DataFrame of every group–time effect, by cohort and period; needs pandas."""
        rows = self._of(control)["group_time"]
        places = [(each["cohort"], each["period"]) for each in rows]
        frame = _frame([each["effect"] for each in rows], range(len(rows)))
        frame.index = _optional.pandas().MultiIndex.from_tuples(places, names=["cohort", "period"])
        return frame

    def to_frame(self) -> Any:
        """As `table`, or `cohorts` where no effect can be estimated; needs pandas."""
        told = any(self.result[name] is not None for name in _NAMES)
        return self.table() if told else self.cohorts()

    def cohorts(self) -> Any:
        """A pandas.DataFrame of the cohorts' noisy numbers, and which are used; needs pandas."""
        rows = self.result["cohorts"]
        names = ["never" if row["start"] is None else row["start"] for row in rows]
        values = {name: [row[name] for row in rows] for name in ("size", "used")}
        return _optional.pandas().DataFrame(values, index=names)

    def pretrend(self, control: Control | None = None) -> WaldTest | None:
        """The joint test that every effect before treatment is 0; None where there is none."""
        rows = self._of(control)
        found = rows["pretrend"]
        if found["p_value"] is None:
            return None
        texts = tuple(
            f"ATT({each['cohort']}, {each['period']}) = 0"
            for each in rows["group_time"]
            if each["period"] < each["cohort"]
        )
        return WaldTest(texts, float(found["statistic"]), int(found["df"]), float(found["p_value"]))

    @property
    def warnings(self) -> list[str]:
        """Which cohorts are left out, and why."""
        return list(self.result["warnings"])

    def simultaneous(self, alpha: float = 0.05, control: Control | None = None) -> FloatArray:
        """(k, 2) a band by time since treatment that holds all effects with probability
        1 − alpha."""
        effects = self._dynamic(control)
        half = critical_value(effects[2], 1 - alpha) * np.sqrt(np.diag(effects[2]))
        return np.column_stack([effects[1] - half, effects[1] + half])

    def honest(
        self,
        M: float,
        trends: Trends = "smoothness",
        at: int | None = None,
        alpha: float = 0.05,
        control: Control | None = None,
    ) -> tuple[float, float]:
        """An interval of the effect `at` a time since treatment (None: the mean of all) that allows
        for trends which are not parallel (Rambachan & Roth 2023): `smoothness`, whose slope changes
        by up to M from period to period; `relative`, which change by up to M times the largest
        change before treatment. Raises ValueError for M < 0 or where a time is left out.
        """
        if not M >= 0:
            raise ValueError("M must not be negative")
        effects = DynamicEffects(*self._dynamic(control))
        return _INTERVALS[trends](effects, at, M, alpha)

    def breakdown(
        self,
        trends: Trends = "smoothness",
        at: int | None = None,
        alpha: float = 0.05,
        control: Control | None = None,
    ) -> float:
        """The largest M at which the interval of `honest` leaves 0 out; 0 where none does."""

        def tells(M: float) -> bool:
            low, high = self.honest(M, trends, at, alpha, control)
            return low > 0 or high < 0

        low, high = 0.0, float(np.sqrt(np.diag(self._dynamic(control)[2])).max())
        if not tells(0.0):
            return 0.0
        while tells(high):
            low, high = high, 2 * high
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if tells(middle) else (low, middle)
        return low

    def plot(self, ax: Any = None, control: Control | None = None) -> Any:
        """Effects by time since treatment with 95 % intervals, and their simultaneous band (thin),
        the reference at 0; needs matplotlib, gives the Axes. Without effects it says so.
        """
        axes = axes_of(ax)
        if control is None and all(self.result[name] is None for name in _NAMES):
            axes.text(0.5, 0.5, "No effect can be distinguished from the noise", ha="center")
            return axes
        times, values, covariance = self._dynamic(control)
        half = float(ndtri(0.975)) * np.sqrt(np.diag(covariance))
        bands = self.simultaneous(control=control)
        for k, value, h, (low, high) in zip(times, values, half, bands, strict=True):
            axes.plot([k, k], [low, high], color=SAMPLING, linewidth=1.0)
            ends = [value - h, value + h]
            axes.plot([k, k], ends, color=TOTAL, linewidth=4, solid_capstyle="butt")
            axes.plot([k], [value], "o", color=SAMPLING)
        axes.plot([-1], [0.0], "o", color="white", markeredgecolor=SAMPLING)
        axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.axvline(-0.5, color="black", linewidth=0.8, linestyle="--")
        axes.set_xlabel("periods since treatment (thin: all together)")
        axes.set_ylabel(f"effect on {self.query['y']}")
        return axes

    def summary(self) -> Text:
        """The averages with both sets of controls, the guarantee and the charge."""
        lines = [*self._headline(), f"Effects on {self.query['y']}: {self.result['estimand']}"]
        for name in ("never", "not_yet"):
            if self.result[name] is not None:
                lines += ["", f"Controls: {_NAMES[name]}", *self._lines(name)]
        notes = (f"Note: {each}" for each in self.warnings)
        return Text("\n".join([*lines, *notes, "", *self._footer()]))

    def _lines(self, control: Any) -> list[str]:
        found = self._of(control)
        rows = [("simple average", found["simple"])]
        rows += [
            (f"{k:+d} since treatment", each)
            for k, each in zip(found["dynamic"]["at"], found["dynamic"]["effects"], strict=True)
        ]
        rows += [("mean over times", found["dynamic"]["overall"])]
        header = ("", "effect", "std. error", "noise", "interval")
        table = text_table(header, [_row(name, each) for name, each in rows])
        test = self.pretrend(control)
        said = "none" if test is None else f"p = {probability(test.pvalue)}"
        return [*table, f"Effects before treatment are 0 (joint Wald test): {said}"]

    def _dynamic(self, control: Control | None) -> tuple[tuple[int, ...], FloatArray, FloatArray]:
        found = self._of(control)["dynamic"]
        values = np.array([each["value"] for each in found["effects"]])
        return tuple(found["at"]), values, np.array(found["covariance"])

    def _of(self, control: Control | None) -> Any:
        return self.result[self.controls(control)]

    def check(self) -> None:
        Release.check(self)
        _ = self.warnings
        for name in ("never", "not_yet"):
            if self.result[name] is not None:
                times, values, covariance = self._dynamic(name)
                if not len(times) == len(values) == len(covariance):
                    raise ValueError("effects by time since treatment have a covariance each")
                _ = (self.effect(name), self.pretrend(name))


def _contrast(effect: Any) -> Contrast:
    low, high = effect["confidence_interval"]
    return Contrast(float(effect["value"]), float(effect["standard_error"]), (low, high))


def _row(name: str, effect: Any) -> tuple[str, ...]:
    low, high = (number(end) for end in effect["confidence_interval"])
    keys = ("value", "standard_error", "privacy_standard_error")
    return (name, *(number(effect[key]) for key in keys), f"[{low}, {high}]")


def _frame(effects: Any, index: Any) -> Any:
    columns = {
        "effect": [each["value"] for each in effects],
        "bse": [each["standard_error"] for each in effects],
        "privacy_bse": [each["privacy_standard_error"] for each in effects],
        "lower": [each["confidence_interval"][0] for each in effects],
        "upper": [each["confidence_interval"][1] for each in effects],
    }
    return _optional.pandas().DataFrame(columns, index=list(index))
