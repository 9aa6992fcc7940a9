"""The kind `sum`."""

from dataclasses import dataclass, field
from typing import Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.base import Kind
from reticent_server.kinds.fields import Name, Where
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.sum.plan import SumPlan, plan_sum


@dataclass(frozen=True, slots=True)
class Sum(Query):
    """Sum of a column in this table; its interval counts the privacy noise alone."""

    column: Name
    where: Where = None
    kind: Literal["sum"] = field(default="sum", kw_only=True)


def _plan(facts: DatasetFacts, query: Sum, offer: PrivacyCost) -> SumPlan:
    column = numeric_column(facts, query.column)
    return plan_sum(facts, mask(facts, query.where, query.column), column, offer.rho)


KIND = Kind(
    query=Sum,
    plan=_plan,
    result=Estimate,
    examples=(Sum("y"), Sum("y", "x > 0")),
    page="tables-and-sums",
)
