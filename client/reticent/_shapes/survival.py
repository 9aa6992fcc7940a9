# SPDX-License-Identifier: Apache-2.0
"""lifelines' KaplanMeierFitter."""

from typing import Any

from reticent import _optional
from reticent._dataset import Dataset
from reticent._errors import InvalidQuery, NotPrivate
from reticent._release import NoReply
from reticent.kinds.survival_curve import Curve, SurvivalCurves


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
        if not isinstance(data, Dataset):
            raise InvalidQuery("data is a data set, and durations and event_observed its columns.")
        if "by" in spending:
            raise NotPrivate("One fitter has one curve; ask data.survival_curve(…, by=…).")
        answer = data.survival_curve(durations, event_observed, **spending)
        if isinstance(answer, NoReply):
            raise NotPrivate("The server gave No Reply, which was charged; ask with more epsilon.")
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


def _by_time(curve: Curve, columns: dict[str, list[float]]) -> Any:
    index = _optional.pandas().Index([0.0, *curve.times.tolist()], name="timeline")
    return _optional.pandas().DataFrame(columns, index=index)
