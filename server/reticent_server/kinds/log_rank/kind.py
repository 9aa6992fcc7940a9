# SPDX-License-Identifier: Apache-2.0
"""The kind `log_rank`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Name, Where
from reticent_server.kinds.log_rank.plan import LogRankPlan, LogRankResult, plan_log_rank
from reticent_server.kinds.shared.follow_up.fields import Cuts, Event, Time
from reticent_server.kinds.shared.follow_up.question import follow_up


@dataclass(frozen=True, slots=True)
class LogRank(Query):
    """Do groups differ in how long it takes until the event? The log-rank test, noise in its null
    law.
    """

    time: Time
    event: Event
    by: Annotated[Name, Field(description="The column of the groups, whose levels are public.")]
    cuts: Cuts = None
    where: Where = None
    kind: Literal["log_rank"] = field(default="log_rank", kw_only=True)


def _plan(facts: DatasetFacts, query: LogRank, offer: PrivacyCost) -> LogRankPlan:
    asked = follow_up(facts, query.time, query.event, query.by, query.cuts, query.where)
    return plan_log_rank(facts, asked, offer.rho)


KIND = Kind(
    query=LogRank,
    group=QuestionGroup.TIME,
    asks="Do groups differ in how long it takes until the event?",
    plan=_plan,
    result=LogRankResult,
    examples=(LogRank("k", "b", "g"), LogRank("k", "b", "g", (2.0, 5.0, 9.0), "x > 0")),
    page="survival",
    title="Log-rank test",
)
