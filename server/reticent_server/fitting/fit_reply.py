# SPDX-License-Identifier: Apache-2.0
"""What a reply says of a fit: of its coefficients, and of the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

from reticent_server.domain.design import Design
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.empty_levels import with_left_out
from reticent_server.fitting.own_profile import NO_PROFILE, OwnProfile
from reticent_server.fitting.regression_model import FitGround, RegressionModel, ResponseT
from reticent_server.fitting.report import fit_result
from reticent_server.fitting.special_columns import special
from reticent_server.fitting.standard_fit import StandardFit

DEVIATIONS = (
    "; response and terms are deviations from the person's own means, and persons with fewer "
    "than two rows in use have "
    "none"
)

EXCHANGEABLE = (
    "; generalised least squares with the working correlation {:g} of any two rows of a person"
)


@dataclass(frozen=True, slots=True, eq=False)
class FitReply(Generic[ResponseT]):
    """What a reply says of a fit of n records; level: of confidence."""

    design: Design
    model: RegressionModel[ResponseT]
    own_profile: OwnProfile | None
    sizes: Sizes
    budget: FitBudget
    n: int
    level: float

    def result(self, ground: FitGround[ResponseT], fit: StandardFit) -> dict[str, Any]:
        """The members of a RegressionResult, and those of the model."""
        result = fit_result(
            ground.coding,
            fit,
            level=self.level,
            n=self.n,
            radius_squared=self.sizes.radius_squared,
            instead=self.model.cut_words,
        )
        if self.own_profile:
            result["warnings"].append(NO_PROFILE)
            result |= self.own_profile.verdict.applied(result)
        result |= {
            "tuning": self.model.tuning,
            "steps": self.budget.steps,
            "shares": self.budget.shares(self.own_profile.rho if self.own_profile else 0),
            **self._described(ground, fit, result),
        }
        if not self.design.masked:  # what may have no record is out of use, whose number is n
            result.pop("records_in_use", None)
        return with_left_out(result, ground.left_out)

    def _described(
        self, ground: FitGround[ResponseT], fit: StandardFit, result: Mapping[str, Any]
    ) -> dict[str, Any]:
        found = self.model.described(ground, fit, self.sizes.radius_squared, result)
        said = special(self.design) + ("" if fit.freedom is None else fit.freedom.words)
        if self.design.deviations:
            said = DEVIATIONS + said
            found |= {"effects": "person"}
        elif self.design.persons is not None and self.design.persons.correlation:
            said = EXCHANGEABLE.format(self.design.persons.correlation) + said
        return found | {"estimand": found["estimand"] + said}
