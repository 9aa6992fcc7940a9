# SPDX-License-Identifier: Apache-2.0
"""The kind `quantile_regression`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AllowInfNan, Field, Strict

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Formula, Level, Weights, Where
from reticent_server.kinds.quantile_regression.plan import (
    GroupQuantileFits,
    QuantileFits,
    plan_group_quantiles,
    plan_quantile_regression,
)

Tau = Annotated[float, Strict(), Ge(0.05), Le(0.95), AllowInfNan(False)]
"""A level; beyond .05 and .95 there is too little density for a slope that is measured with
noise.
"""
_MOST_TAUS = 9  # each has its part of the charge
WEIGHTS_ALONE = "A quantile regression has weights or by: ask for each group with where."


@dataclass(frozen=True, slots=True)
class QuantileRegression(Query):
    """How the median, or another quantile, of the response depends on the regressors."""

    formula: Formula
    tau: Annotated[
        Tau | Annotated[tuple[Tau, ...], MinLen(1), MaxLen(_MOST_TAUS)],
        Field(description="The level, from .05 to .95, or several, which share the charge."),
    ] = 0.5
    where: Where = None
    confidence_level: Level = 0.95
    by: By = None
    weights: Weights = None
    kind: Literal["quantile_regression"] = field(default="quantile_regression", kw_only=True)


def _plan(facts: DatasetFacts, query: QuantileRegression, offer: PrivacyCost) -> Planned:
    taus = query.tau if isinstance(query.tau, tuple) else (query.tau,)
    if query.by is not None:
        if query.weights is not None:
            raise InvalidQuery(WEIGHTS_ALONE)
        asked = (query.formula, query.where, query.by, taus, query.confidence_level)
        return plan_group_quantiles(facts, *asked, offer.rho)
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    design = weighted_design(design, facts.schema, query.weights)
    return plan_quantile_regression(facts, design, taus, query.confidence_level, offer.rho)


KIND = Kind(
    query=QuantileRegression,
    group=QuestionGroup.MODEL,
    asks="How does the median of y, or another quantile, change with x?",
    plan=_plan,
    result=QuantileFits | GroupQuantileFits,
    examples=(
        QuantileRegression("y ~ x"),
        QuantileRegression("y ~ x + C(g)", (0.25, 0.75), "x > 0"),
        QuantileRegression("y ~ x", (0.5, 0.75), by="g"),
        QuantileRegression("y ~ x", weights="k"),
    ),
    page="quantile-regression",
)
