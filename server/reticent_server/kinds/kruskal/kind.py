# SPDX-License-Identifier: Apache-2.0
"""The kind `kruskal`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Where
from reticent_server.kinds.kruskal.plan import KruskalPlan, KruskalResult, plan_kruskal
from reticent_server.kinds.shared.columns import mask, ordered_column
from reticent_server.kinds.shared.groups import compared, groups_of
from reticent_server.kinds.shared.named_tests import Levels


@dataclass(frozen=True, slots=True)
class Kruskal(Query):
    """Do some of several groups tend to larger values? Kruskal and Wallis's test of ranks on public
    bins.
    """

    column: Annotated[Name, Field(description="The numbers whose ranks are compared.")]
    group: Annotated[Name, Field(description="The column of the groups.")]
    levels: Levels = None
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["kruskal"] = field(default="kruskal", kw_only=True)


def _plan(facts: DatasetFacts, query: Kruskal, offer: PrivacyCost) -> KruskalPlan:
    column = ordered_column(facts, query.column)
    groups = compared(column, groups_of(facts, query.group, query.levels))
    design = mask(facts, query.where, query.column, query.group)
    return plan_kruskal(facts, design, groups, column, query.confidence_level, offer.rho)


KIND = Kind(
    query=Kruskal,
    group=QuestionGroup.COMPARE,
    asks="Do some of several groups tend to larger values?",
    plan=_plan,
    result=KruskalResult,
    examples=(Kruskal("y", "g"), Kruskal("y", "k", ("0", "1", "2"), where="x > 0")),
    page="rank-tests",
    title="Kruskal–Wallis test",
)
