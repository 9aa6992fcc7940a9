"""Planning: a request and public facts → a Plan. Reads no private cell."""

from dataclasses import replace
from math import ceil, isfinite

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import (
    DELTA_UNITS,
    EPSILON_UNITS,
    PrivacyCost,
    decimal_units,
    from_units,
)
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import EstimatorPlan, Plan
from reticent_server.domain.query import (
    Count,
    LinearRegression,
    Mean,
    Privacy,
    ProfileQuery,
    Query,
)
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Part, QuantileTree
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.kinds.linear_regression.gradient_descent import plan_gradient_descent
from reticent_server.kinds.shared.influence import plan_influence_regression
from reticent_server.kinds.linear_regression import (
    plan_linear_regression,
)
from reticent_server.kinds.mean.plan import plan_count, plan_mean
from reticent_server.kinds.profile.plan import ProfilePlan, plan_profile
from reticent_server.kinds.quantiles.plan import (
    ExponentialMedianPlan,
    QuantilesPlan,
    RangePlan,
)
from reticent_server.formula import mask_design, parse_formula
from reticent_server.mechanisms.quantile_tree import SELECTION_NANOSECONDS
from reticent_server.pipeline import policy
from reticent_server.pipeline.guarantees import guarantee_of
from reticent_server.pipeline.planning_models import MODEL_PLANNERS, no_calibration
from reticent_server.pipeline.planning_robust import plan_robust, sufficient

MAX_EPSILON = 100.0
MAX_DELTA = 0.01
_TOO_DEAR = "an estimator's plan costs more than it was offered"
MIN_RHO = 1000  # 10⁻⁹: below this the shares of a plan are no longer whole numbers of units


def plan(facts: DatasetFacts, query: Query, privacy: Privacy) -> Plan:
    """The plan of a request. Raises InvalidRequest's subclasses and PolicyRefused; charges nothing."""
    epsilon, delta = _checked_privacy(facts, privacy)
    rho = rho_units(epsilon, delta)
    if rho < MIN_RHO:
        raise InvalidPrivacy("epsilon and delta are too small to release anything; raise them.")
    offer = PrivacyCost(
        epsilon=decimal_units(epsilon, EPSILON_UNITS),
        delta=decimal_units(delta, DELTA_UNITS),
        rho=rho,
    )
    estimator = _plan_estimator(facts, query, offer)
    cost = getattr(estimator, "cost", None) or _converted(estimator, offer)
    if cost.epsilon > offer.epsilon or cost.delta > offer.delta:
        raise RuntimeError(_TOO_DEAR)
    delta = from_units(cost.delta, DELTA_UNITS)
    guarantee = guarantee_of(facts, estimator, epsilon, delta)
    policy.check(facts.policy, guarantee, cost)
    return Plan(
        facts=facts,
        query=query,
        epsilon=epsilon,
        delta=delta,
        cost=cost,
        guarantee=guarantee,
        estimator=estimator,
        deadline_ms=deadline_ms(facts, estimator),
    )


def _converted(estimator: EstimatorPlan, offer: PrivacyCost) -> PrivacyCost:
    """The cost of ρ-zCDP: the (ε, δ) that was asked for, which allows offer.rho at most."""
    if estimator.rho > offer.rho:
        raise RuntimeError(_TOO_DEAR)
    return replace(offer, rho=estimator.rho)


def deadline_ms(facts: DatasetFacts, estimator: EstimatorPlan) -> int:
    """When the reply becomes visible: from n, the columns and the plan alone, and generous.

    Measured: a pass takes about 10 ns a record and column, a cold read 100 ns a cell, a
    quantile's selection 100 ns a sub-cell.
    """
    cells = facts.n * len(estimator.columns)
    pilot = getattr(estimator, "pilot", estimator)
    nanoseconds = (
        cells * 200 + estimator.passes * cells * 30 + _selected(pilot) * SELECTION_NANOSECONDS
    )
    columns = getattr(estimator, "column_ms", 0)
    return 50 + 20 * estimator.passes + ceil(nanoseconds / 10**6) + columns


def _selected(estimator: EstimatorPlan) -> int:
    """Sub-cells that the quantile trees select from: all of them at each level, whatever the data."""
    parts: tuple[Part, ...] = ()
    match estimator:
        case ProfilePlan():
            parts = estimator.parts
        case QuantilesPlan(part=part) | RangePlan(part=part) | ExponentialMedianPlan(part=part):
            parts = (part,)
    trees = [part for part in parts if isinstance(part, QuantileTree)]
    return sum(t.sub_cells * len(t.probabilities).bit_length() for t in trees)


def _checked_privacy(facts: DatasetFacts, privacy: Privacy) -> tuple[float, float]:
    epsilon = privacy.epsilon
    delta = facts.default_delta if privacy.delta is None else privacy.delta
    if not (isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InvalidPrivacy(f"epsilon must be above 0 and at most {MAX_EPSILON:g}.")
    if not (isfinite(delta) and 0 < delta <= MAX_DELTA):
        raise InvalidPrivacy(f"delta must be above 0 and at most {MAX_DELTA:g}.")
    return epsilon, delta


def _plan_estimator(facts: DatasetFacts, query: Query, offer: PrivacyCost) -> EstimatorPlan:
    """The estimator's plan. offer: the (ε, δ) that was asked for, and the ρ that it allows."""
    rho = offer.rho
    match query:
        case Count(where=where):
            return plan_count(facts, mask_design((), facts.schema, where), rho)
        case Mean(column=name, where=where):
            column = _bounded_column(facts, name)
            return plan_mean(facts, mask_design((name,), facts.schema, where), column, rho)
        case LinearRegression(formula=formula, where=where, mechanism=mechanism):
            design = parse_formula(formula, facts.schema, where)
            if mechanism != "newton" and (query.ridge is not None or query.loss != "huber"):
                raise InvalidQuery("A ridge and the biweight are for the newton mechanism only.")
            if mechanism == "influence":
                return plan_influence_regression(facts, design, query, sufficient(offer))
            no_calibration(query.calibration)
            newton = mechanism == "newton"
            plan = plan_linear_regression if newton else plan_gradient_descent
            return plan(facts, design, query, rho)
        case ProfileQuery():
            return plan_profile(facts, rho)
        case _:
            return MODEL_PLANNERS.get(type(query), plan_robust)(facts, query, offer)


def _bounded_column(facts: DatasetFacts, name: str) -> Column:
    column = facts.schema.column(name)
    if column is None:
        raise InvalidQuery("column must be one of the data set's columns.")
    if column.kind is ColumnKind.CATEGORICAL:
        raise InvalidQuery("A categorical column has no mean; ask for a count with a where clause.")
    return column
