# SPDX-License-Identifier: Apache-2.0
"""The fit that a model's formula and family name: a generalised linear model, or a linear
regression."""

from dataclasses import replace
from typing import Any, Literal, Protocol

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.formula import parse_formula
from reticent_server.kinds.glm.plan import DISPERSED_ONLY, NO_LINK, asked_model, plan_glm
from reticent_server.kinds.glm.query import GAUSSIAN, Family, Glm
from reticent_server.kinds.shared.by import ByPlan, fits_by
from reticent_server.kinds.shared.linear.loss import asked_loss
from reticent_server.kinds.shared.linear.plan import LinearModel, plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression


class ModelQuery(Protocol):
    """What questions about a model have; family None or "gaussian": a linear regression."""

    @property
    def formula(self) -> str:
        """The model, in the formulas' grammar."""

    @property
    def family(self) -> Family | None:
        """None or "gaussian": a linear regression."""

    @property
    def where(self) -> str | None:
        """Which records, None for all."""

    @property
    def tuning(self) -> float | Literal["planned"] | None:
        """Where residuals are cut; None: the default, "planned": for the smallest error."""

    @property
    def confidence_level(self) -> float:
        """The level of the coefficients' intervals."""

    @property
    def dispersion(self) -> float | None:
        """α of a negative binomial response; None for other families."""


def plan_model(
    facts: DatasetFacts,
    query: ModelQuery,
    rho: int,
    loss: Literal["huber", "squared"] = "huber",
) -> FitPlan[Any]:
    """The fit of a model at `rho` (RHO_UNITS). A Gaussian response is a linear regression with the
    loss.
    """
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    if query.family in {None, GAUSSIAN}:
        if query.dispersion is not None:
            raise InvalidQuery(DISPERSED_ONLY)
        return plan_linear_regression(facts, design, replace(_linear(query), loss=loss), rho)
    model = Glm(
        query.formula,
        query.family or GAUSSIAN,
        query.where,
        tuning=query.tuning,
        confidence_level=query.confidence_level,
        dispersion=query.dispersion,
    )
    return plan_glm(facts, design, model, rho)


def plan_glm_by(facts: DatasetFacts, query: Glm, by: str, rho: int) -> ByPlan:
    """The models of all groups at `rho` (RHO_UNITS); a Gaussian response is a linear regression.
    Raises InvalidQuery."""
    if query.family != GAUSSIAN:
        return fits_by(facts, query, by, asked_model(query), rho)
    if query.link is not None:
        raise InvalidQuery(NO_LINK)
    if query.dispersion is not None:
        raise InvalidQuery(DISPERSED_ONLY)
    return fits_by(facts, query, by, LinearModel(asked_loss(_linear(query)), None), rho)


def _linear(query: ModelQuery) -> LinearRegression:
    """The question of a Gaussian response."""
    return LinearRegression(
        query.formula, query.where, tuning=query.tuning, confidence_level=query.confidence_level
    )
