# SPDX-License-Identifier: Apache-2.0
"""The kind `survival_curve`."""

from dataclasses import dataclass, field
from typing import Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Where
from reticent_server.kinds.shared.follow_up.fields import By, Cuts, Event, Time
from reticent_server.kinds.shared.follow_up.question import follow_up
from reticent_server.kinds.survival_curve.plan import (
    SurvivalCurvePlan,
    SurvivalCurves,
    plan_survival_curve,
)


@dataclass(frozen=True, slots=True)
class SurvivalCurve(Query):
    """How long until the event: survival curves (Kaplan–Meier's, by intervals), medians and
    restricted means.
    """

    time: Time
    event: Event
    by: By = None
    cuts: Cuts = None
    where: Where = None
    kind: Literal["survival_curve"] = field(default="survival_curve", kw_only=True)


def _plan(facts: DatasetFacts, query: SurvivalCurve, offer: PrivacyCost) -> SurvivalCurvePlan:
    asked = follow_up(facts, query.time, query.event, query.by, query.cuts, query.where)
    return plan_survival_curve(facts, asked, offer.rho)


KIND = Kind(
    query=SurvivalCurve,
    group=QuestionGroup.TIME,
    asks="How long does it take until the event?",
    plan=_plan,
    result=SurvivalCurves,
    examples=(SurvivalCurve("k", "b"), SurvivalCurve("k", "b", "g", (2.0, 5.0, 9.0), "x > 0")),
    page="survival",
)
