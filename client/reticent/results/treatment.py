# SPDX-License-Identifier: Apache-2.0
"""What results of did and event_study share: regressions whose terms are of a treatment, not of a
formula.
"""

from dataclasses import dataclass
from typing import NoReturn

from reticent.results.design import INTERCEPT
from reticent.results.regression import RegressionResults


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TreatmentResults(RegressionResults):
    """A released regression of a treatment, with period effects, and person effects where a person
    has several rows.
    """

    @property
    def formula(self) -> str:
        """What was asked, as the formula of a regression."""
        more = self.query.get("covariates")
        periods = f"C({self.query['time']})"
        return " + ".join(
            [f"{self.query['y']} ~ {self._treatment}", periods, *([more] if more else [])]
        )

    @property
    def _first(self) -> int:
        """The place of the treatment's first coefficient: after the intercept, where there is
        one.
        """
        return int(self.names[0] == INTERCEPT)

    @property
    def _treatment(self) -> str:
        return self.names[self._first]

    def _fitted(self) -> NoReturn:
        raise ValueError(
            "Predictions and margins are those of a formula's terms: ask linear_regression for "
            "them. The effects are in "
            "params, bse and conf_int()."
        )
