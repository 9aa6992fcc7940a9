"""Planning of parametric models: generalised linear models, and what is fitted and tested like them."""

from collections.abc import Callable, Mapping
from typing import Any

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import EstimatorPlan
from reticent_server.domain.query import (
    Glm,
    HypothesisTest,
    LinearRegression,
    LocationScale,
    SubsampleAggregateQuery,
)
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.glm import plan_glm
from reticent_server.kinds.hypothesis_test import HypothesisTestPlan
from reticent_server.kinds.shared.influence import (
    plan_influence_glm,
    plan_influence_location_scale,
)
from reticent_server.kinds.linear_regression import plan_linear_regression
from reticent_server.kinds.location_scale import plan_location_scale
from reticent_server.kinds.subsample_aggregate import plan_subsample_aggregate
from reticent_server.kinds.subsample_aggregate.model import location_scale, regression
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.formula import mask_design, parse_formula, parse_hypothesis
from reticent_server.pipeline.planning_robust import numeric_column, sufficient


def _glm(facts: DatasetFacts, query: Glm, offer: PrivacyCost) -> EstimatorPlan:
    if query.mechanism == "influence":
        design = parse_formula(query.formula, facts.schema, query.where)
        return plan_influence_glm(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    return _model(facts, query, offer)


def no_calibration(calibration: str | None) -> None:
    """Raises InvalidQuery where a calibration is asked of a mechanism that has none."""
    if calibration is not None:
        raise InvalidQuery("calibration belongs to the influence mechanism.")


def _location_scale(facts: DatasetFacts, query: LocationScale, offer: PrivacyCost) -> EstimatorPlan:
    column = numeric_column(facts, query.column)
    design = mask_design((column.name,), facts.schema, query.where)
    if query.mechanism == "influence":
        return plan_influence_location_scale(facts, design, column, query, sufficient(offer))
    no_calibration(query.calibration)
    return plan_location_scale(facts, design, column, query, offer.rho)


def _hypothesis_test(
    facts: DatasetFacts, query: HypothesisTest, offer: PrivacyCost
) -> EstimatorPlan:
    model = _model(facts, query, offer)
    if query.hypothesis is None:
        if query.test == "score":
            raise InvalidQuery(
                "A score test needs a hypothesis; wald and lr have a table of terms."
            )
        return HypothesisTestPlan(model, query.test, None)
    hypothesis = parse_hypothesis(query.hypothesis, model.coding.design.names)
    if query.test == "score" and hypothesis.df == model.coding.size:
        raise InvalidQuery("A score test leaves at least one coefficient free; use wald or lr.")
    return HypothesisTestPlan(model, query.test, hypothesis)


def _model(facts: DatasetFacts, query: Glm | HypothesisTest, offer: PrivacyCost) -> FitPlan[Any]:
    """The fit of a model query. A Gaussian response is a linear regression with Huber's score."""
    design = parse_formula(query.formula, facts.schema, query.where)
    if query.family in {None, "gaussian"}:
        if query.dispersion is not None:
            raise InvalidQuery("The negative_binomial family has a dispersion; no other has one.")
        linear = LinearRegression(
            query.formula,
            query.where,
            tuning=query.tuning,
            confidence_level=query.confidence_level,
        )
        return plan_linear_regression(facts, design, linear, offer.rho)
    model = Glm(
        query.formula,
        query.family or "gaussian",
        query.where,
        tuning=query.tuning,
        confidence_level=query.confidence_level,
        dispersion=query.dispersion,
    )
    return plan_glm(facts, design, model, offer.rho)


def _subsample_aggregate(
    facts: DatasetFacts, query: SubsampleAggregateQuery, offer: PrivacyCost
) -> EstimatorPlan:
    model = query.model
    if isinstance(model, LocationScale):
        column = numeric_column(facts, model.column)
        design = mask_design((column.name,), facts.schema, model.where)
        fitted = location_scale(design, column, model, query.bias_correction)
    else:
        design = parse_formula(model.formula, facts.schema, model.where)
        fitted = regression(design, model, query.bias_correction)
    return plan_subsample_aggregate(facts, fitted, query, offer.rho)


MODEL_PLANNERS: Mapping[type, Callable[[DatasetFacts, Any, PrivacyCost], EstimatorPlan]] = {
    Glm: _glm,
    LocationScale: _location_scale,
    HypothesisTest: _hypothesis_test,
    SubsampleAggregateQuery: _subsample_aggregate,
}
