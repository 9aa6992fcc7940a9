# SPDX-License-Identifier: Apache-2.0
"""The kind `count`."""

from dataclasses import dataclass, field
from typing import Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.fitting.results import Estimate
from reticent_server.formula import mask_design
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.count.plan import plan_count, plan_group_count
from reticent_server.kinds.fields import By, Where
from reticent_server.kinds.shared.by import GroupEstimates
from reticent_server.kinds.shared.one_row import PerAny, counted


@dataclass(frozen=True, slots=True)
class Count(Query):
    """Number of records, or of those for which `where` holds; with `by`, of each group; with `per`,
    of persons.
    """

    where: Where = None
    by: By = None
    per: PerAny = None
    kind: Literal["count"] = field(default="count", kw_only=True)


def _plan(facts: DatasetFacts, query: Count, offer: PrivacyCost) -> Planned:
    counted(facts, query.per, query.by)
    if query.by is not None:
        return plan_group_count(facts, query.where, query.by, offer.rho)
    return plan_count(facts, mask_design((), facts.schema, query.where), offer.rho, query.per)


KIND = Kind(
    query=Count,
    group=QuestionGroup.TABLES,
    asks="How many records are there, or how many satisfy a condition?",
    plan=_plan,
    result=Estimate | GroupEstimates,
    examples=(Count(), Count('x > 0 and g == "a"'), Count("x > 0", by="g")),
    page="counts-and-means",
)
