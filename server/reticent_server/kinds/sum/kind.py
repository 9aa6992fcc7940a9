# SPDX-License-Identifier: Apache-2.0
"""The kind `sum`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Unit, UnitStrata, Where
from reticent_server.kinds.shared.by import GroupEstimates
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.shared.one_row import PerRow, counted
from reticent_server.kinds.shared.survey import SurveyEstimate, plan_survey
from reticent_server.kinds.sum.by_group import plan_group_sum
from reticent_server.kinds.sum.plan import plan_sum

WEIGHTS_ALONE = "A sum has weights, cluster and strata, or by: ask for each group with where."


@dataclass(frozen=True, slots=True)
class Sum(Query):
    """Sum of a column in this table; its interval counts the privacy noise alone. With weights,
    cluster or strata: the total of the population that a survey was drawn from, with its design's
    error."""

    column: Name
    where: Where = None
    by: By = None
    per: PerRow = None
    weights: Annotated[
        Name | None,
        Field(
            description="A numeric column with declared bounds of at least 0, such as survey "
            "weights: the total is Σwx. One row a person, without by, only."
        ),
    ] = None
    cluster: Unit = None
    strata: UnitStrata = None
    kind: Literal["sum"] = field(default="sum", kw_only=True)


def _plan(facts: DatasetFacts, query: Sum, offer: PrivacyCost) -> Planned:
    column = numeric_column(facts, query.column)
    counted(facts, query.per, query.by)
    if query.by is not None and any((query.weights, query.cluster, query.strata)):
        raise InvalidQuery(WEIGHTS_ALONE)
    if query.by is not None:
        return plan_group_sum(facts, query.where, query.by, column, offer.rho)
    design = mask(facts, query.where, query.column)
    surveyed = (query.weights, query.cluster, query.strata)
    if any(name is not None for name in surveyed):
        return plan_survey(facts, design, column, surveyed, offer.rho, total=True)
    return plan_sum(facts, design, column, offer.rho, query.per)


KIND = Kind(
    query=Sum,
    group=QuestionGroup.DESCRIBE,
    asks="What does a column add up to?",
    plan=_plan,
    result=Estimate | GroupEstimates | SurveyEstimate,
    examples=(
        Sum("y"),
        Sum("y", "x > 0"),
        Sum("y", "x > 0", "g"),
        Sum("y", weights="k"),
        Sum("y", weights="m", cluster="k", strata="g"),
    ),
    page="tables-and-sums",
)
