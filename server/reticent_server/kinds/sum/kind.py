# SPDX-License-Identifier: Apache-2.0
"""The kind `sum`."""

from dataclasses import dataclass, field
from typing import Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Where
from reticent_server.kinds.shared.by import GroupEstimates
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.shared.one_row import PerRow, counted
from reticent_server.kinds.sum.by_group import plan_group_sum
from reticent_server.kinds.sum.plan import plan_sum


@dataclass(frozen=True, slots=True)
class Sum(Query):
    """Sum of a column in this table; its interval counts the privacy noise alone."""

    column: Name
    where: Where = None
    by: By = None
    per: PerRow = None
    kind: Literal["sum"] = field(default="sum", kw_only=True)


def _plan(facts: DatasetFacts, query: Sum, offer: PrivacyCost) -> Planned:
    column = numeric_column(facts, query.column)
    counted(facts, query.per, query.by)
    if query.by is not None:
        return plan_group_sum(facts, query.where, query.by, column, offer.rho)
    design = mask(facts, query.where, query.column)
    return plan_sum(facts, design, column, offer.rho, query.per)


KIND = Kind(
    query=Sum,
    group=QuestionGroup.DESCRIBE,
    asks="What does a column add up to?",
    plan=_plan,
    result=Estimate | GroupEstimates,
    examples=(Sum("y"), Sum("y", "x > 0"), Sum("y", "x > 0", "g")),
    page="tables-and-sums",
)
