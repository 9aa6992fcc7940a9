# SPDX-License-Identifier: Apache-2.0
"""The kind `log_rank`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Flag, Name, Number, Where
from reticent_server.kinds.log_rank.plan import (
    GroupComparison,
    LogRankPlan,
    LogRankResult,
    plan_log_rank,
)
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.follow_up.fields import Cuts, Event, Time
from reticent_server.kinds.shared.follow_up.question import follow_up
from reticent_server.kinds.shared.tables import level_axis

_MOST_POWER = 5.0  # of the weights: beyond it a test looks at the first or the last events alone

Power = Annotated[Number, Ge(0.0), Le(_MOST_POWER)]


@dataclass(frozen=True, slots=True)
class LogRank(Query):
    """Do groups differ in how long it takes until the event? The log-rank test, stratified, of a
    trend or with weights where that is asked, noise in its null law.
    """

    time: Time
    event: Event
    by: Annotated[Name, Field(description="The column of the groups, whose levels are public.")]
    cuts: Cuts = None
    where: Where = None
    strata: Annotated[
        Name | None,
        Field(
            description="A column of public levels, within each of which the groups are compared."
        ),
    ] = field(default=None, kw_only=True)
    trend: Annotated[
        Flag,
        Field(
            description=(
                "Whether the levels of `by` are compared as an order, by one contrast of their "
                "places, rather than each with all."
            )
        ),
    ] = field(default=False, kw_only=True)
    emphasis: Annotated[
        tuple[Power, Power],
        Field(
            description=(
                "Fleming and Harrington's (ρ, γ), the weights S^ρ (1 − S)^γ: [1, 0] for early "
                "differences, [0, 1] for late ones."
            )
        ),
    ] = field(default=(0.0, 0.0), kw_only=True)
    kind: Literal["log_rank"] = field(default="log_rank", kw_only=True)


def _plan(facts: DatasetFacts, query: LogRank, offer: PrivacyCost) -> LogRankPlan:
    asked = follow_up(
        facts, query.time, query.event, query.by, query.cuts, query.where, strata=query.strata
    )
    levels = level_axis(declared(facts, query.by)).levels
    return plan_log_rank(
        facts, asked, GroupComparison(levels, query.trend, query.emphasis), offer.rho
    )


KIND = Kind(
    query=LogRank,
    group=QuestionGroup.TIME,
    asks="Do groups differ in how long it takes until the event?",
    plan=_plan,
    result=LogRankResult,
    examples=(
        LogRank("k", "b", "g"),
        LogRank("k", "b", "g", (2.0, 5.0, 9.0), trend=True, emphasis=(0.0, 1.0), where="x > 0"),
    ),
    page="survival",
    title="Log-rank test",
)
