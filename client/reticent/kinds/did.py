# SPDX-License-Identifier: Apache-2.0
"""A difference in differences: the effect first, then what it was adjusted for."""

from dataclasses import dataclass
from typing import Any

from reticent._drawing import intervals
from reticent.results.treatment import TreatmentResults


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DidResults(TreatmentResults):
    """A released difference in differences; the other coefficients are periods and covariates.

    >>> found = ds.did("log(price)", "waterfront", "quarter", start=5, epsilon=2.0)
    >>> found.effect, found.effect_interval, found.effect_pvalue, found.summary()
    """

    @property
    def effect(self) -> float:
        """The estimated effect of the treatment, in the units of the response."""
        return float(self.params[self._first])

    @property
    def effect_interval(self) -> tuple[float, float]:
        """Its interval, of sampling and privacy noise; nan where it is not estimable."""
        low, high = self.conf_int()[self._first]
        return float(low), float(high)

    @property
    def effect_pvalue(self) -> float:
        """The two-sided p-value of no effect; nan where it is not estimable."""
        return float(self.pvalues[self._first])

    def plot(self, ax: Any = None) -> Any:
        """The effect with its interval; needs matplotlib, gives the Axes."""
        axes = intervals([self._treatment], [self.effect], [self.effect_interval], ax)
        axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel(f"effect on {self.query['y']}, 95 % interval")
        return axes
