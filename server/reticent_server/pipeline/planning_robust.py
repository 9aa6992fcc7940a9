"""Planning of tables, sums, quantiles and the robust statistics of single columns."""

from collections.abc import Callable, Mapping
from typing import Any

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import EstimatorPlan
from reticent_server.domain.query import (
    Crosstab,
    DepthMedian,
    Histogram,
    Iqr,
    Median,
    MEstimateQuery,
    Quantiles,
    Query,
    Sum,
)
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.kinds.depth_median.plan import plan_depth_median
from reticent_server.kinds.m_estimate.plan import plan_m_estimate
from reticent_server.kinds.quantiles.plan import (
    plan_exponential_median,
    plan_quantiles,
    plan_range,
)
from reticent_server.kinds.shared.stable_bins import plan_iqr, plan_ptr_median, plan_smooth_median
from reticent_server.kinds.sum.plan import plan_sum
from reticent_server.kinds.shared.tables import plan_crosstab, plan_histogram
from reticent_server.kinds.shared.columns import whole_columns
from reticent_server.formula import mask_design

LEAST_EPSILON = EPSILON_UNITS // 10**4
LEAST_DELTA = DELTA_UNITS // 10**12


def plan_robust(facts: DatasetFacts, query: Query, offer: PrivacyCost) -> EstimatorPlan:
    """The plan of one of these kinds. offer: (ε, δ) as asked for, and the ρ that it allows."""
    planner = _PLANNERS.get(type(query))
    if planner is None:
        raise InvalidQuery("There is no plan for this kind.")
    return planner(facts, query, offer)


def _sum(facts: DatasetFacts, query: Sum, offer: PrivacyCost) -> EstimatorPlan:
    column = numeric_column(facts, query.column)
    return plan_sum(facts, _mask(facts, query.where, query.column), column, offer.rho)


def _histogram(facts: DatasetFacts, query: Histogram, offer: PrivacyCost) -> EstimatorPlan:
    column = declared(facts, query.column)
    design = _mask(facts, query.where, query.column)
    return plan_histogram(facts, design, column, query.bins, offer.rho)


def _crosstab(facts: DatasetFacts, query: Crosstab, offer: PrivacyCost) -> EstimatorPlan:
    columns = tuple(declared(facts, name) for name in query.columns)
    return plan_crosstab(facts, _mask(facts, query.where, *query.columns), columns, offer.rho)


def _quantiles(facts: DatasetFacts, query: Quantiles, offer: PrivacyCost) -> EstimatorPlan:
    column = numeric_column(facts, query.column)
    design = _mask(facts, query.where, query.column)
    return plan_quantiles(facts, design, column, query.probabilities, offer.rho)


def _iqr(facts: DatasetFacts, query: Iqr, offer: PrivacyCost) -> EstimatorPlan:
    if query.mechanism == "quantiles":
        column = numeric_column(facts, query.column)
        design = _mask(facts, query.where, query.column)
        return plan_range(facts, design, column, offer.rho)
    _all_records(query.where, "quantiles")
    (column,) = whole_columns(facts, (query.column,))
    return plan_iqr(facts, column, sufficient(offer))


def _median(facts: DatasetFacts, query: Median, offer: PrivacyCost) -> EstimatorPlan:
    if query.mechanism == "exponential":
        column = numeric_column(facts, query.column)
        design = _mask(facts, query.where, query.column)
        return plan_exponential_median(facts, design, column, offer.epsilon)
    _all_records(query.where, "exponential")
    (column,) = whole_columns(facts, (query.column,))
    plan = plan_ptr_median if query.mechanism == "ptr" else plan_smooth_median
    return plan(facts, column, sufficient(offer))


def _all_records(where: str | None, other: str) -> None:
    if where is not None:
        raise InvalidQuery(
            f"This mechanism is proved for all n records; with where, ask for the mechanism {other}."
        )


def _m_estimate(facts: DatasetFacts, query: MEstimateQuery, offer: PrivacyCost) -> EstimatorPlan:
    (column,) = whole_columns(facts, (query.column,))
    return plan_m_estimate(facts, column, query, sufficient(offer).epsilon)


def _depth_median(facts: DatasetFacts, query: DepthMedian, offer: PrivacyCost) -> EstimatorPlan:
    columns = whole_columns(facts, query.columns)
    return plan_depth_median(facts, columns, query, sufficient(offer))


_PLANNERS: Mapping[type[Query], Callable[[DatasetFacts, Any, PrivacyCost], EstimatorPlan]] = {
    Sum: _sum,
    Histogram: _histogram,
    Crosstab: _crosstab,
    Quantiles: _quantiles,
    Iqr: _iqr,
    Median: _median,
    MEstimateQuery: _m_estimate,
    DepthMedian: _depth_median,
}


def _mask(facts: DatasetFacts, where: str | None, *names: str) -> Design:
    return mask_design(names, facts.schema, where)


def declared(facts: DatasetFacts, name: str) -> Column:
    """The declared column. Raises InvalidQuery."""
    column = facts.schema.column(name)
    if column is None:
        raise InvalidQuery("The query names a column that the data set does not have.")
    return column


def numeric_column(facts: DatasetFacts, name: str) -> Column:
    """The declared column, which has an order. Raises InvalidQuery."""
    column = declared(facts, name)
    if column.kind is ColumnKind.CATEGORICAL:
        raise InvalidQuery("A categorical column has no order; ask for a histogram or a crosstab.")
    return column


def sufficient(offer: PrivacyCost) -> PrivacyCost:
    """The offer, where a test of safety can pass at all. Raises InvalidPrivacy."""
    if offer.epsilon < LEAST_EPSILON or offer.delta < LEAST_DELTA:
        raise InvalidPrivacy("This kind needs epsilon of at least 0.0001 and delta of 1e-12.")
    return offer
