# SPDX-License-Identifier: Apache-2.0
"""A proportional hazards regression: hazard ratios, the baseline hazard, and predicted survival
curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import axes_of, intervals
from reticent._text import Text, text_table
from reticent.results import after_fit
from reticent.results.coefficient_table import coefficient_cells, notes
from reticent.results.design import INTERCEPT, Design, Frame
from reticent.results.proportionality import ProportionalHazards, proportional_hazards
from reticent.results.regression import RegressionResults

FloatArray = NDArray[np.float64]

_BAND = 0.2  # opacity: bands of several curves stay visible where they overlap
_POINTS = 101  # times of a drawn curve, which is smooth between the cuts


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCurves:
    """Survival of k kinds of persons at T times: survival, lower and upper (k, T)."""

    times: FloatArray
    survival: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class HazardResults(RegressionResults):
    """A released hazard regression: coefficients are logarithms of hazard ratios.

    >>> fit = ds.hazard_regression("Surv(days, sold) ~ grade + C(waterfront)", epsilon=2.0)
    >>> fit.hazard_ratios()["grade"], fit.summary(exp=True), fit.wald_test("grade = 0").pvalue
    >>> fit.predict_survival({"grade": [6, 9], "waterfront": ["0", "0"]}, [30.0, 90.0]).survival
    >>> ds.coxph("Surv(days, sold) ~ grade", proportionality=3, epsilon=2.0).cox_zph().summary()
    """

    @property
    def cuts(self) -> FloatArray:
        """(J,) ends of the intervals, in each of which the baseline hazard is constant."""
        return np.array(self.result["cuts"], dtype=np.float64)

    @property
    def baseline_hazards(self) -> FloatArray:
        """(J,) events per unit of time of a person with the `reference` values, where the offset is
        0; with strata of the first level.
        """
        return np.array(self.result["baseline"]["hazards"], dtype=np.float64)

    @property
    def strata(self) -> tuple[str, ...]:
        """The levels with a baseline each; empty where the fit has no strata."""
        found = self.result.get("strata")
        return tuple(map(str, found["levels"])) if found else ()

    def _baseline(self, stratum: str | None) -> Any:
        """The baseline of a level. Raises ValueError unless a fit with strata is given one of
        them."""
        if not self.strata and stratum is None:
            return self.result["baseline"]
        if stratum not in self.strata:
            raise ValueError(f"stratum must be one of: {', '.join(self.strata) or 'none'}")
        return self.result["strata"]["baselines"][self.strata.index(stratum)]

    def _joint_covariance(self, baseline: Any) -> Any:
        """(J + k, J + k) of ln hazards and coefficients; replies of earlier versions repeat the
        coefficients' own.
        """
        J = len(self.cuts)
        rows = np.array(baseline["covariance"], dtype=np.float64)[:J]
        own = np.array(self.result["covariance"], dtype=np.float64)
        return np.block([[rows], [rows[:, J:].T, own]])

    @property
    def reference(self) -> dict[str, float]:
        """The terms' values that the baseline is about."""
        return {str(k): float(v) for k, v in self.result["baseline"]["reference"].items()}

    def hazard_ratios(self) -> dict[str, tuple[float, float, float]]:
        """(ratio, lower, upper) by term, with the intervals of the release; nan where not
        identifiable.
        """
        values, ends = np.exp(np.asarray(self.params)), np.exp(self.conf_int())
        rows = zip(values.tolist(), ends.tolist(), strict=True)
        return {
            name: (ratio, low, high)
            for name, (ratio, (low, high)) in zip(self.names, rows, strict=True)
        }

    def cox_zph(self) -> ProportionalHazards:
        """Whether hazards are proportional, as R's `cox.zph`: coefficients by bins of time, and a
        test of each term and of all. Costs nothing; raises ValueError unless the fit was asked
        with `proportionality`.
        """
        found = self.result.get("proportionality")
        if not found:
            raise ValueError("ask the fit with proportionality=3: a test needs scores by time")
        return proportional_hazards(self.names, found, float(self.result["confidence_level"]))

    def predict_survival(
        self,
        frame: Frame,
        times: Sequence[float] | None = None,
        *,
        level: float = 0.95,
        offset: float | Sequence[float] | None = None,
        stratum: str | None = None,
    ) -> PredictedCurves:
        """Survival curves of new public persons, a DataFrame or a mapping of columns, with
        intervals; costs nothing.

        times: increasing, at most the last of the cuts; without them the cuts. Intervals are those
        of the cumulative hazard's logarithm, of persons and noise together. offset: what is added
        to the persons' log hazards, of each or of all: of a fit with `offset` its column's value,
        of one with `exposure` its logarithm; None: those of the frame's column. stratum: of a fit
        with strata, the level whose baseline it is. Raises ValueError for other times or levels,
        InvalidFormula for data that lack a column.
        """
        at = self.cuts if times is None else np.array(times, dtype=np.float64)
        if not len(at) or at[0] < 0 or at[-1] > self.cuts[-1] or (np.diff(at) < 0).any():
            raise ValueError("times must be increasing, from 0 up to the last of the cuts")
        # The baseline hazard stands for the intercept: factors have a level without an indicator.
        design = Design((INTERCEPT, *self.names), self.result.get("baselines"))
        X = design.rows(frame)[:, 1:]
        X = X - np.array(list(self.reference.values()))
        begins = np.append(0.0, self.cuts[:-1])
        baseline = self._baseline(stratum)
        hazards = np.array(baseline["hazards"], dtype=np.float64)
        spent = np.clip(at[:, None] - begins, 0.0, self.cuts - begins) * hazards
        total = spent.sum(axis=1)
        shares = spent / np.maximum(total, np.finfo(float).tiny)[:, None]
        covariance = self._joint_covariance(baseline)
        if offset is None:
            offset = Design(after_fit.offset_terms(self.query)).rows(frame).sum(axis=1)
        added = np.asarray(offset, dtype=np.float64)
        if added.shape not in {(), (len(X),)} or not np.isfinite(added).all():
            raise ValueError("offset must be a finite number, or one for each row")
        ratio = np.exp(X @ np.nan_to_num(self.params) + added)
        gradient = np.concatenate(
            [
                np.broadcast_to(shares, (len(X), *shares.shape)),
                np.broadcast_to(X[:, None, :], (len(X), len(at), X.shape[1])),
            ],
            axis=2,
        )
        variance = np.einsum("ntj,jk,ntk->nt", gradient, covariance, gradient)
        width = np.exp(float(ndtri((1 + level) / 2)) * np.sqrt(np.maximum(variance, 0.0)))
        hazard = ratio[:, None] * total
        return PredictedCurves(
            at, np.exp(-hazard), np.exp(-hazard * width), np.exp(-hazard / width)
        )

    def plot_survival(self, frame: Frame, ax: Any = None, *, stratum: str | None = None) -> Any:
        """Predicted curves of the frame's rows with pointwise 95 % bands, of a fit with strata in
        one of them; needs matplotlib, gives the Axes.
        """
        axes = axes_of(ax)
        times = np.linspace(0.0, self.cuts[-1], _POINTS)
        found = self.predict_survival(frame, times.tolist(), stratum=stratum)
        for k, curve in enumerate(found.survival):
            (line,) = axes.plot(times, curve, label=str(k))
            band = {"alpha": _BAND, "color": line.get_color(), "linewidth": 0}
            axes.fill_between(times, found.lower[k], found.upper[k], **band)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("time")
        axes.set_ylabel("survival, 95 % interval")
        if len(found.survival) > 1:
            axes.legend(title="row")
        return axes

    def plot_hazard_ratios(self, ax: Any = None) -> Any:
        """A forest plot: hazard ratios with the intervals of the release on a logarithmic axis, a
        row for each term; nothing is drawn where one is not identifiable. Needs matplotlib, gives
        the Axes.
        """
        ratios = self.hazard_ratios().values()
        rows = [(r, (low, high)) for r, low, high in ratios]
        axes = intervals(self.names, [r for r, _ in rows], [ends for _, ends in rows], ax)
        axes.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        level = 100 * float(self.result["confidence_level"])
        axes.set_xlabel(f"hazard ratio, {level:g} % interval")
        return axes

    def _fitted(self) -> after_fit.Fitted:
        """With an intercept of 0 in the baseline's place: predictions are logarithms of hazard
        ratios to all terms 0.
        """
        found = RegressionResults._fitted(self)  # noqa: SLF001 - of its own base; slots leave super() without a class
        return replace(
            found,
            terms=(INTERCEPT, *found.terms),
            params=np.append(0.0, found.params),
            covariance=np.pad(found.covariance, ((1, 0), (1, 0))),
            can_test=lambda R: bool(not R[:, 1:].any() or found.can_test(R[:, 1:])),
        )

    def baseline_frame(self) -> Any:
        """A pandas.DataFrame with one row for each interval: begin, end, hazard, std_err of its
        logarithm; needs pandas.
        """
        return _optional.pandas().DataFrame(
            {
                "begin": np.append(0.0, self.cuts[:-1]),
                "end": self.cuts,
                "hazard": self.baseline_hazards,
                "log_std_err": self.result["baseline"]["log_standard_errors"],
            }
        )

    def summary(self, *, exp: bool = False) -> Text:
        """The fit, its guarantee and its charge as a text. exp: hazard ratios."""
        table = text_table(*coefficient_cells(self, exp=exp))
        rule = "=" * len(table[0])
        facts = f"Records: {self.nobs:,}   intervals: {len(self.cuts)}, up to {self.cuts[-1]:g}"
        lines = [*self._headline(), facts, rule, *table, rule, *notes(self), "", *self._footer()]
        return Text("\n".join(lines))

    def check(self) -> None:
        RegressionResults.check(self)
        if self.result.get("proportionality"):
            self.cox_zph()
        lengths = {
            len(self.cuts),
            len(self.baseline_hazards),
            len(self.result["baseline"]["log_standard_errors"]),
        }
        p = len(self.cuts) + len(self.names)
        shape = np.shape(self.result["baseline"]["covariance"])
        if len(lengths) != 1 or shape not in {(len(self.cuts), p), (p, p)}:
            raise ValueError("a baseline has one hazard for each interval")
        if tuple(self.reference) != self.names:
            raise ValueError("a baseline's reference names the terms")
