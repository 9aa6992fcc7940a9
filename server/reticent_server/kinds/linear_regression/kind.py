# SPDX-License-Identifier: Apache-2.0
"""The kind `linear_regression`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.schema import Schema
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.formula import (
    exchangeable,
    parse_formula,
    person_effects,
    with_person_means,
)
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.linear_regression.gradient_descent import plan_gradient_descent
from reticent_server.kinds.linear_regression.influence import plan_influence_regression
from reticent_server.kinds.shared.by import fits_by
from reticent_server.kinds.shared.clusters import plan_clustered
from reticent_server.kinds.shared.columns import sufficient
from reticent_server.kinds.shared.linear.plan import (
    LinearModel,
    loss_of,
    plan_linear_regression,
)
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.statistics import plan_linear_statistics
from reticent_server.kinds.shared.typical import dummies, formula, numbers

CLUSTER_ONLY = (
    "cluster is for the newton mechanism, without by, effects, a working correlation, ridge and "
    "fit_statistics."
)


def _plan(facts: DatasetFacts, query: LinearRegression, offer: PrivacyCost) -> Planned:
    alike = query.working_correlation is not None
    if query.cluster is not None or query.strata is not None:
        return _plan_clustered(facts, query, offer.rho)
    if query.fit_statistics or query.by is not None:
        if query.weights is not None or query.effects is not None or alike:
            raise InvalidQuery(
                "by and fit_statistics are for fits without weights, effects and a working "
                "correlation."
            )
        if query.fit_statistics:
            return plan_linear_statistics(facts, query, offer.rho)
        model = LinearModel(loss_of(facts, query), query.ridge)
        return fits_by(facts, query, str(query.by), model, offer.rho)
    newton = query.mechanism == "newton"
    means = newton and not alike
    design = parse_formula(
        query.formula, facts.schema, query.where, person_means=means, profile=facts.profile
    )
    design = _of_persons(design, facts, query)
    if query.mechanism != "newton" and (query.ridge is not None or query.loss != "huber"):
        raise InvalidQuery("A ridge and the biweight are for the newton mechanism only.")
    if query.mechanism != "newton" and query.weights is not None:
        raise InvalidQuery("Weights are for the newton mechanism only.")
    if query.mechanism == "influence":
        return plan_influence_regression(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    if query.weights is not None and design.persons is not None:
        raise InvalidQuery(
            "Weights are not for columns that are made of a person's rows: leave them out."
        )
    design = weighted_design(design, facts.schema, query.weights)
    plan = plan_linear_regression if newton else plan_gradient_descent
    return plan(facts, design, query, offer.rho)


def _of_persons(design: Design, facts: DatasetFacts, query: LinearRegression) -> Design:
    """The design whose columns are made of persons' rows, where the question asks for such."""
    if query.effects is not None or query.working_correlation is not None:
        if query.mechanism != "newton":
            raise InvalidQuery(
                "Person effects and a working correlation are for the newton mechanism only."
            )
        if query.effects is not None and query.working_correlation is not None:
            raise InvalidQuery(
                "With person effects there is no working correlation: leave one out."
            )
    if query.working_correlation is not None:
        return exchangeable(design, facts.schema, query.working_correlation)
    effects = person_effects if query.effects else with_person_means
    return effects(design, facts.schema)


def _plan_clustered(facts: DatasetFacts, query: LinearRegression, rho: int) -> Planned:
    asked = (query.by, query.effects, query.ridge, query.working_correlation)
    if query.mechanism != "newton" or query.fit_statistics or any(x is not None for x in asked):
        raise InvalidQuery(CLUSTER_ONLY)
    no_calibration(query.calibration)
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    design = weighted_design(design, facts.schema, query.weights)
    return plan_clustered(
        facts,
        design,
        query.cluster,
        query.strata,
        rho,
        lambda read, left: plan_linear_regression(facts, read, query, left),
    )


def _typical(schema: Schema) -> list[LinearRegression]:
    """The first number on others."""
    names = numbers(schema) + dummies(schema)
    return (
        [LinearRegression(formula(names[0], names))] if numbers(schema) and len(names) > 1 else []
    )


KIND = Kind(
    query=LinearRegression,
    group=QuestionGroup.MODEL,
    asks="How does y change with x, others equal?",
    plan=_plan,
    title="Linear regression (robust, or least squares)",
    result=RegressionResult | GroupFits,
    examples=(
        LinearRegression("y ~ x"),
        LinearRegression("y ~ x + C(g)", where="x > 0"),
        LinearRegression("y ~ x", loss="tukey"),
        LinearRegression("y ~ x", ridge=2.0),
        LinearRegression("y ~ x", weights="k"),
        LinearRegression("y ~ x", by="g"),
        LinearRegression("y ~ x", loss="squared", by="g"),
        LinearRegression("y ~ x", fit_statistics=True),
        LinearRegression("y ~ x", loss="squared", cluster="k"),
        LinearRegression("y ~ x", loss="squared", cluster="k", strata="g"),
        LinearRegression("y ~ x", mechanism="gradient_descent"),
        LinearRegression("y ~ x", mechanism="influence"),
    ),
    page="linear-regression",
    typical=_typical,
)
