# SPDX-License-Identifier: Apache-2.0
"""Linear regression: the model of a planned fit (fitting.fit_plan)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import FitPlan, plan_fit
from reticent_server.fitting.huber import LinearFamily
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.kinds.shared.answers import penalised
from reticent_server.kinds.shared.linear.loss import (
    ResidualLoss,
    asked_loss,
    plain_loss,
    planned_loss,
)
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.response import (
    PublicResponse,
    ResponseModel,
)
from reticent_server.kinds.shared.linear.ridge import PENALISED, penalised_estimand, ridged

LinearRegressionPlan = FitPlan[PublicResponse]


@dataclass(frozen=True, slots=True)
class LinearModel(ResponseModel):
    """A linear regression with its loss and penalty; satisfies fitting.fit_plan.Model."""

    loss: ResidualLoss
    ridge: float | None = None
    leaves_out: bool = True
    reference: str = "Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2"

    @property
    def mechanism(self) -> str:
        """The words for the fit in the reply's guarantee."""
        scores = "scores cut as a whole" if self.loss.whole else "Huber-Mallows"
        return f"noisy Newton ({scores}), discrete Gaussian sums"

    @property
    def radius(self) -> float:
        """The loss's R² for each coefficient."""
        return self.loss.radius

    @property
    def tuning(self) -> float | None:
        """The loss's c; None where scores are cut as a whole."""
        return None if self.loss.whole else self.loss.c

    @property
    def answers(self) -> str:
        """The loss's sentence, which says so where there is a penalty."""
        return self.loss.answers if self.ridge is None else penalised(self.loss.answers)

    @property
    def nanoseconds(self) -> int:
        """0: a score is a product and a clip."""
        return 0

    def level(self, response: PublicResponse, *, intercept: bool) -> float:
        """0, or without an intercept the centre in scales."""
        return 0.0 if intercept else response.location.centre / response.location.scale

    def tuned(self, sizes: Sizes, rho: int, ground: FitGround[PublicResponse]) -> "LinearModel":  # noqa: ARG002
        """With the loss for the smallest error, where the query says "planned"."""
        if not self.loss.planned:
            return self
        planned = replace(planned_loss(sizes, rho), weighted=self.loss.weighted)
        return replace(self, loss=planned)

    def family(self, ground: FitGround[PublicResponse]) -> LinearFamily:
        """The loss's scores, with what public rows tell of spread, ties and tails."""
        return self.loss.family(ground.spread, ground.response.tie, ground.distances)

    def signal(self, ground: FitGround[PublicResponse]) -> Signal:
        """The loss's bounds and expected curvature."""
        return self.loss.signal(ground.response.tie)

    def notes(self, ground: FitGround[PublicResponse]) -> list[str]:
        """What is to be said where many responses have one value."""
        return list(self.loss.verdict(ground.response.tie).sentences)

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:
        """The fit itself, or with its ridge penalty in the units of the data."""
        return fit if self.ridge is None else ridged(fit, self.ridge, coding)

    def described(
        self,
        ground: FitGround[PublicResponse],
        fit: StandardFit,
        radius_squared: float,
        result: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Its scale and weighting; without intervals where residuals have no scale
        (fitting.trust).
        """
        verdict = self.loss.verdict(ground.response.tie)
        penalty = "" if self.ridge is None else penalised_estimand(self.ridge)
        said = [PENALISED] if self.ridge is not None else []
        judged = verdict.applied(result)
        return {
            **judged,
            "warnings": [*judged["warnings"], *said],
            "scale": fit.scale * ground.coding.response_location.scale,
            "estimand": self.loss.estimand(radius_squared, ground.response.tie) + penalty,
        }


def loss_of(facts: DatasetFacts, query: LinearRegression) -> ResidualLoss:
    """The loss that a query means of a table of one row a unit, or of several. InvalidQuery."""
    whole = query.loss == "squared" and query.tuning is None and facts.schema.unit.max_rows == 1
    return plain_loss() if whole else asked_loss(query)


def plan_linear_regression(
    facts: DatasetFacts, design: Design, query: LinearRegression, rho: int
) -> LinearRegressionPlan:
    """Plans a regression at `rho` (RHO_UNITS) from public facts alone; InvalidQuery without
    response.
    """
    loss = replace(loss_of(facts, query), weighted=design.weight is not None)
    model = LinearModel(loss, query.ridge, leaves_out=query.mechanism != "influence")
    return plan_fit(facts, design, model, query.confidence_level, rho)
