# SPDX-License-Identifier: Apache-2.0
"""The kind `cumulative_incidence`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.cumulative_incidence.plan import (
    CumulativeIncidencePlan,
    CumulativeIncidences,
    plan_cumulative_incidence,
)
from reticent_server.kinds.fields import Name, Where
from reticent_server.kinds.shared.follow_up.fields import By, Cuts, Time
from reticent_server.kinds.shared.follow_up.question import causes_of, follow_up


@dataclass(frozen=True, slots=True)
class CumulativeIncidence(Query):
    """How likely is each of several competing events by a time? Cumulative incidences (Aalen and
    Johansen's), the mean time lost to each cause, and Gray's test between groups.
    """

    time: Time
    event: Annotated[
        Name,
        Field(
            description=(
                "The column of how the time ended: its levels are the causes, and one of them says "
                "that no event was seen."
            )
        ),
    ]
    by: By = None
    cuts: Cuts = None
    where: Where = None
    censored: Annotated[
        Name | None,
        Field(description="The level of `event` that says that none was seen; null: the first."),
    ] = field(default=None, kw_only=True)
    kind: Literal["cumulative_incidence"] = field(default="cumulative_incidence", kw_only=True)


def _plan(
    facts: DatasetFacts, query: CumulativeIncidence, offer: PrivacyCost
) -> CumulativeIncidencePlan:
    causes = causes_of(facts, query.event, query.censored)
    asked = follow_up(
        facts, query.time, query.event, query.by, query.cuts, query.where, causes=causes
    )
    return plan_cumulative_incidence(facts, asked, offer.rho)


KIND = Kind(
    query=CumulativeIncidence,
    group=QuestionGroup.TIME,
    asks="How likely is each of several competing events by a time?",
    plan=_plan,
    result=CumulativeIncidences,
    examples=(
        CumulativeIncidence("k", "g"),
        CumulativeIncidence("k", "g", "b", (2.0, 5.0, 9.0), "x > 0", censored="c"),
    ),
    page="survival",
)
