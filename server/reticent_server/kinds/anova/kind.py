# SPDX-License-Identifier: Apache-2.0
"""The kind `anova`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.anova.plan import AnovaPlan, AnovaResult, plan_anova
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Where
from reticent_server.kinds.shared.columns import bounded_column, mask
from reticent_server.kinds.shared.groups import compared, groups_of
from reticent_server.kinds.shared.named_tests import Levels
from reticent_server.kinds.shared.ranges import clip_range
from reticent_server.kinds.shared.reach import groups_reach


@dataclass(frozen=True, slots=True)
class Anova(Query):
    """Do the means of several groups differ? Welch's one-way analysis of variance."""

    column: Annotated[Name, Field(description="The numbers whose means are compared.")]
    group: Annotated[Name, Field(description="The column of the groups.")]
    levels: Levels = None
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["anova"] = field(default="anova", kw_only=True)


def _plan(facts: DatasetFacts, query: Anova, offer: PrivacyCost) -> AnovaPlan:
    column = bounded_column(facts, query.column)
    groups = compared(column, groups_of(facts, query.group, query.levels))
    span = clip_range(facts, column, groups_reach(facts, groups, offer.rho))
    design = mask(facts, query.where, query.column, query.group)
    return plan_anova(facts, design, groups, query.column, span, query.confidence_level, offer.rho)


KIND = Kind(
    query=Anova,
    group=QuestionGroup.COMPARE,
    asks="Do the means of several groups differ?",
    plan=_plan,
    result=AnovaResult,
    examples=(Anova("y", "g"), Anova("y", "k", ("0", "1", "2"), where="x > 0")),
    page="anova",
    title="Analysis of variance",
)
