# SPDX-License-Identifier: Apache-2.0
"""The kind `mean`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Schema
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Unit, UnitStrata, Where
from reticent_server.kinds.mean.by_group import plan_group_mean
from reticent_server.kinds.mean.plan import plan_mean
from reticent_server.kinds.mean.weighted import WeightedEstimate, plan_weighted_mean
from reticent_server.kinds.shared.by import GroupEstimates
from reticent_server.kinds.shared.columns import bounded_column, mask
from reticent_server.kinds.shared.survey import SurveyEstimate, plan_survey
from reticent_server.kinds.shared.typical import dummies, numbers

WEIGHTS_ALONE = "A mean has weights, cluster and strata, or by: ask for each group with where."


@dataclass(frozen=True, slots=True)
class Mean(Query):
    """Mean of a bounded column over the records in use."""

    column: Name
    where: Where = None
    by: By = None
    weights: Annotated[
        Name | None,
        Field(
            description="A numeric column with declared bounds of at least 0, such as survey "
            "weights: the mean is Σwx/Σw, with the linearised error. One row a person, without "
            "by, only."
        ),
    ] = None
    cluster: Unit = None
    strata: UnitStrata = None
    kind: Literal["mean"] = field(default="mean", kw_only=True)


def _plan(facts: DatasetFacts, query: Mean, offer: PrivacyCost) -> Planned:
    column = bounded_column(facts, query.column)
    surveyed = (query.weights, query.cluster, query.strata)
    if any(name is not None for name in surveyed):
        if query.by is not None:
            raise InvalidQuery(WEIGHTS_ALONE)
        design = mask(facts, query.where, query.column)
        if query.weights is None or query.cluster is not None or query.strata is not None:
            return plan_survey(facts, design, column, surveyed, offer.rho, total=False)
        return plan_weighted_mean(facts, design, column, query.weights, offer.rho)
    if query.by is not None:
        return plan_group_mean(facts, query.where, query.by, column, offer.rho)
    return plan_mean(facts, mask(facts, query.where, query.column), column, offer.rho)


def _typical(schema: Schema) -> list[Mean]:
    """A mean, and a share."""
    return [Mean(name) for name in (*numbers(schema)[:1], *dummies(schema)[:1])]


KIND = Kind(
    query=Mean,
    group=QuestionGroup.DESCRIBE,
    asks="How large is a column on average?",
    plan=_plan,
    result=Estimate | GroupEstimates | WeightedEstimate | SurveyEstimate,
    examples=(
        Mean("y"),
        Mean("y", "x > 0"),
        Mean("y", "x > 0", "g"),
        Mean("y", weights="k"),
        Mean("y", weights="m", cluster="k", strata="g"),
        Mean("y", strata="g"),
    ),
    page="counts-and-means",
    typical=_typical,
)
