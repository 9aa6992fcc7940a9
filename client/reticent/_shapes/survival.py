# SPDX-License-Identifier: Apache-2.0
"""lifelines' KaplanMeierFitter and AalenJohansenFitter."""

from typing import Any

from reticent import _optional
from reticent._dataset import Dataset
from reticent._errors import InvalidQuery, NotPrivate
from reticent._release import NoReply
from reticent.kinds.cumulative_incidence import CumulativeIncidences, IncidenceCurve
from reticent.kinds.survival_curve import Curve, SurvivalCurves

_NO_REPLY = "The server gave No Reply, which was charged; ask with more epsilon."


class KaplanMeierFitter:
    """fit asks, which is charged; then the members of lifelines' fitter. Needs pandas."""

    def __init__(self) -> None:
        self._release: SurvivalCurves | None = None

    def fit(
        self, durations: str, event_observed: str, data: Any = None, **spending: Any
    ) -> "KaplanMeierFitter":
        """durations, event_observed: names of columns of `data`, a data set. spending: epsilon and
        so on, unless the data set is `budgeted`; `cuts`, `where`. For groups ask
        data.survival_curve(…, by=…). Raises InvalidQuery, NotPrivate.

        >>> KaplanMeierFitter().fit("days", "sold", ds, epsilon=1.0).median_survival_time_
        """
        asked = _checked(data, "survival_curve", spending)
        answer = asked.survival_curve(durations, event_observed, **spending)
        if isinstance(answer, NoReply):
            raise NotPrivate(_NO_REPLY)
        self._release = answer
        return self

    @property
    def release(self) -> SurvivalCurves:
        """Raises NotPrivate before fit."""
        if self._release is None:
            raise NotPrivate("Call fit first.")
        return self._release

    @property
    def survival_function_(self) -> Any:
        """A frame (k + 1, 1) by time, from 1 at 0 on."""
        curve = self.release.curve
        return _by_time(curve, {"KM_estimate": [1.0, *curve.survival.tolist()]})

    @property
    def confidence_interval_(self) -> Any:
        """A frame (k + 1, 2) by time: pointwise 95 %, of sampling and privacy noise."""
        curve = self.release.curve
        low, high = curve.conf_int().T.tolist()
        columns = {"KM_estimate_lower_0.95": [1.0, *low], "KM_estimate_upper_0.95": [1.0, *high]}
        return _by_time(curve, columns)

    @property
    def median_survival_time_(self) -> float:
        """nan where the curve does not come down to one half."""
        return self.release.curve.median

    def plot_survival_function(self, ax: Any = None, at_risk_counts: bool = False) -> Any:
        """Steps with a band; at_risk_counts: numbers at risk below. Gives the Axes."""
        return self.release.plot(ax, at_risk=at_risk_counts)


class AalenJohansenFitter:
    """fit asks, which is charged; then the members of lifelines' fitter. Needs pandas.

    The event of interest is a level of the column, as lifelines' is a number; the level that says
    that no event was seen is `censored`, the first unless given.
    """

    def __init__(self) -> None:
        self._curve: IncidenceCurve | None = None
        self._release: CumulativeIncidences | None = None

    def fit(
        self,
        durations: str,
        event_observed: str,
        event_of_interest: str,
        data: Any = None,
        **spending: Any,
    ) -> "AalenJohansenFitter":
        """durations, event_observed: names of columns of `data`, a data set. spending: epsilon and
        so on, unless the data set is `budgeted`; `cuts`, `censored`, `where`. For groups ask
        data.cumulative_incidence(…, by=…). Raises InvalidQuery, NotPrivate.

        >>> AalenJohansenFitter().fit("months", "outcome", "relapse", ds, epsilon=1.0).plot()
        """
        asked = _checked(data, "cumulative_incidence", spending)
        answer = asked.cumulative_incidence(durations, event_observed, **spending)
        if isinstance(answer, NoReply):
            raise NotPrivate(_NO_REPLY)
        if event_of_interest not in answer.causes:
            raise InvalidQuery(f"event_of_interest is one of {', '.join(answer.causes)}.")
        self._release, self._curve = answer, answer.curve(event_of_interest)
        return self

    @property
    def release(self) -> CumulativeIncidences:
        """With the curves of all causes. Raises NotPrivate before fit."""
        if self._release is None:
            raise NotPrivate("Call fit first.")
        return self._release

    @property
    def cumulative_density_(self) -> Any:
        """A frame (k + 1, 1) by time, from 0 at 0 on."""
        curve = self._of_interest
        return _by_time(curve, {f"CIF_{curve.cause}": [0.0, *curve.incidence.tolist()]})

    @property
    def confidence_interval_(self) -> Any:
        """A frame (k + 1, 2) by time: pointwise 95 %, of sampling and privacy noise."""
        curve = self._of_interest
        low, high = curve.conf_int().T.tolist()
        names = (f"CIF_{curve.cause}_{end}_0.95" for end in ("lower", "upper"))
        return _by_time(curve, dict(zip(names, ([0.0, *low], [0.0, *high]), strict=True)))

    @property
    def variance_(self) -> Any:
        """A frame (k + 1, 1) by time: of sampling and privacy noise."""
        curve = self._of_interest
        return _by_time(curve, {f"CIF_{curve.cause}": [0.0, *(curve.bse**2).tolist()]})

    def plot(self, ax: Any = None, at_risk_counts: bool = False) -> Any:
        """Steps with a band; at_risk_counts: numbers at risk below. Gives the Axes."""
        return self.release.plot(ax, cause=self._of_interest.cause, at_risk=at_risk_counts)

    @property
    def _of_interest(self) -> IncidenceCurve:
        if self._curve is None:
            raise NotPrivate("Call fit first.")
        return self._curve


def _checked(data: Any, method: str, spending: dict[str, Any]) -> Dataset:
    """Raises InvalidQuery, NotPrivate."""
    if not isinstance(data, Dataset):
        raise InvalidQuery("data is a data set, and durations and event_observed its columns.")
    if "by" in spending:
        raise NotPrivate(f"One fitter has one curve; ask data.{method}(…, by=…).")
    return data


def _by_time(curve: Curve | IncidenceCurve, columns: dict[str, list[float]]) -> Any:
    index = _optional.pandas().Index([0.0, *curve.times.tolist()], name="timeline")
    return _optional.pandas().DataFrame(columns, index=index)
