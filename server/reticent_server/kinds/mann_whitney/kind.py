# SPDX-License-Identifier: Apache-2.0
"""The kind `mann_whitney`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Where
from reticent_server.kinds.mann_whitney.plan import (
    MannWhitneyPlan,
    MannWhitneyResult,
    plan_mann_whitney,
)
from reticent_server.kinds.shared.columns import mask, ordered_column
from reticent_server.kinds.shared.groups import compared, two_groups
from reticent_server.kinds.shared.named_tests import Alternative, Levels


@dataclass(frozen=True, slots=True)
class MannWhitney(Query):
    """Does one of two groups tend to larger values? Mann and Whitney's (Wilcoxon's) rank-sum test
    on public bins.
    """

    column: Annotated[Name, Field(description="The numbers whose ranks are compared.")]
    group: Annotated[Name, Field(description="The column of two groups.")]
    levels: Levels = None
    alternative: Alternative = "two-sided"
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["mann_whitney"] = field(default="mann_whitney", kw_only=True)


def _plan(facts: DatasetFacts, query: MannWhitney, offer: PrivacyCost) -> MannWhitneyPlan:
    column = ordered_column(facts, query.column)
    groups = compared(column, two_groups(facts, query.group, query.levels))
    design = mask(facts, query.where, query.column, query.group)
    return plan_mann_whitney(facts, design, groups, column, query, offer.rho)


KIND = Kind(
    query=MannWhitney,
    group=QuestionGroup.COMPARE,
    asks="Does one of two groups tend to larger values?",
    plan=_plan,
    result=MannWhitneyResult,
    examples=(
        MannWhitney("y", "g", ("a", "b")),
        MannWhitney("k", "b", alternative="less", where="x > 0"),
    ),
    page="rank-tests",
    title="Mann–Whitney test",
)
