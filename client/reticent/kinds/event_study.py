# SPDX-License-Identifier: Apache-2.0
"""An event study: effects by time since treatment, the test of those before it, and their plot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._hypotheses import WaldTest
from reticent._text import Text, probability
from reticent.results.coefficient_table import summary_lines
from reticent.results.regression import RegressionResults
from reticent.results.treatment import TreatmentResults

_NORMAL = 1.959964  # Φ⁻¹(.975)
_REFERENCE = -1
"""The time since treatment that the others are compared with."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class EventStudyResults(TreatmentResults):
    """A released event study; the reference is the period before treatment, whose effect is 0.

    >>> found = ds.event_study("log(price)", "station", "quarter", before=3, after=3,
    ...     epsilon=4.0)
    >>> found.event_times, found.effects, found.pretrend, found.plot()
    """

    @property
    def event_times(self) -> NDArray[np.int64]:
        """(K,) times since treatment, without −1; the first holds all earlier ones, the last all
        later ones.
        """
        return np.array(self.result["event_times"], dtype=np.int64)

    @property
    def effects(self) -> NDArray[np.float64]:
        """(K,) the coefficients of these times."""
        return np.asarray(np.asarray(self.params)[self._own], dtype=np.float64)

    @property
    def _own(self) -> slice:
        """Of the coefficients, those of the times since treatment."""
        return slice(self._first, self._first + len(self.event_times))

    @property
    def pretrend(self) -> WaldTest | None:
        """The joint test that all coefficients before treatment are 0; None where it is not
        identifiable at this ε.

        Not to reject says little where intervals are wide: look at them too.
        """
        found = self.result["pretrend"]
        if found["p_value"] is None:
            return None
        tested = zip(self.names[self._own], self.event_times.tolist(), strict=True)
        texts = tuple(f"{name} = 0" for name, k in tested if k < 0)
        return WaldTest(texts, float(found["statistic"]), int(found["df"]), float(found["p_value"]))

    @property
    def _treatment(self) -> str:
        return "event_time"

    def summary(self, *, exp: bool = False) -> Text:
        """The fit, the test of trends before treatment, the guarantee and the charge as a text."""
        test = self.pretrend
        said = (
            "not identifiable at this epsilon"
            if test is None
            else f"p = {probability(test.pvalue)}"
        )
        headline = [*self._headline(), f"No trend before treatment (joint Wald test): {said}"]
        return Text("\n".join(summary_lines(self, headline, self._footer(), exp=exp)))

    def plot(self, ax: Any = None) -> Any:
        """Effects by time since treatment with their intervals, the reference at 0; needs
        matplotlib, gives the Axes.
        """
        axes = axes_of(ax)
        rows = zip(
            self.event_times.tolist(),
            self.effects.tolist(),
            self.conf_int()[self._own].tolist(),
            np.asarray(self.sampling_bse)[self._own].tolist(),
            strict=True,
        )
        for k, effect, (low, high), sampling in rows:
            if np.isfinite([effect, low, high]).all():
                axes.plot([k, k], [low, high], color=TOTAL, linewidth=4, solid_capstyle="butt")
                ends = [effect - _NORMAL * sampling, effect + _NORMAL * sampling]
                axes.plot([k, k], ends, color=SAMPLING, linewidth=1.5)
                axes.plot([k], [effect], "o", color=SAMPLING)
        axes.plot([_REFERENCE], [0.0], "o", color="white", markeredgecolor=SAMPLING)
        axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.axvline(_REFERENCE + 0.5, color="black", linewidth=0.8, linestyle="--")
        times = sorted([*self.event_times.tolist(), _REFERENCE])
        axes.set_xticks(times, [_shown(k, times) for k in times])
        axes.set_xlabel("periods since treatment (thin: interval from sampling alone)")
        axes.set_ylabel(f"effect on {self.query['y']}")
        return axes

    def check(self) -> None:
        RegressionResults.check(self)
        _ = self.pretrend
        if not 0 < len(self.event_times) == len(self.effects):
            raise ValueError("an event study has a coefficient for each of its times")


def _shown(k: int, times: list[int]) -> str:
    return f"≤{k}" if k == times[0] else f"≥{k}" if k == times[-1] else str(k)
