# SPDX-License-Identifier: Apache-2.0
"""The kind `event_study`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, Strict

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import EventTime, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.formula.labels import quote
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.event_study.plan import (
    EventStudyPlan,
    EventStudyResult,
    event_terms,
    event_times,
)
from reticent_server.kinds.fields import Level, Name, Number, Where
from reticent_server.kinds.shared.treatment import (
    MOST_TERMS,
    Covariates,
    Loss,
    Period,
    Response,
    TreatmentQuestion,
    indicator,
    too_many_terms,
    whole_numbers,
)

_SAME = (
    "`treatment_time` and `time` are two columns: when a person is treated first, and the period "
    "of the row."
)
_SAID = (
    "The coefficient of event_time[k] is the difference between the response k periods after the "
    "first treatment and one period before "
    "it, compared with those who are not treated then"
)
_CAUTION = (
    "Where cohorts differ in their effects, coefficients of a two-way fixed-effects event study "
    "mix the cohorts' effects of several "
    "times (Sun & Abraham 2021)."
)


@dataclass(frozen=True, slots=True)
class EventStudy(Query):
    """Effects by time since treatment, with person and period effects, and a joint test of trends
    before it.
    """

    y: Response
    treatment_time: Annotated[
        Name,
        Field(
            description=(
                "The column of the period of the person's first treatment, the same in all rows; "
                "missing: never treated."
            )
        ),
    ]
    time: Period
    before: Annotated[
        int,
        Strict(),
        Ge(2),
        Le(30),
        Field(description="Times before treatment; earlier ones count as the first."),
    ] = 4
    after: Annotated[
        int,
        Strict(),
        Ge(0),
        Le(30),
        Field(description="Times from treatment on; later ones count as the last."),
    ] = 4
    never: Annotated[
        Number | None,
        Field(
            description="The value of treatment_time that stands for never, beside missing cells."
        ),
    ] = None
    covariates: Covariates = None
    where: Where = None
    loss: Loss = "squared"
    confidence_level: Level = 0.95
    kind: Literal["event_study"] = field(default="event_study", kw_only=True)

    def other_target(self) -> "EventStudy":
        """Least squares beside Huber's loss, and the reverse."""
        return replace(self, loss="huber" if self.loss == "squared" else "squared")


def _plan(facts: DatasetFacts, query: EventStudy, offer: PrivacyCost) -> EventStudyPlan:
    if query.treatment_time == query.time:
        raise InvalidQuery(_SAME)
    start = whole_numbers(facts, query.treatment_time)
    question = TreatmentQuestion(
        query.y,
        query.time,
        query.covariates,
        query.where,
        query.loss,
        query.confidence_level,
        reads=(query.treatment_time, query.time),
        never=(query.treatment_time,),
    )
    terms = event_terms(query.time, start.name, query.before, query.after, query.never)
    levels = [] if facts.schema.unit.several_rows else _cohorts(start, query.never)
    fit = question.fit(facts, terms, levels, offer.rho)
    times = event_times(query.before, query.after)
    return EventStudyPlan.of(fit, said=_SAID, caution=_CAUTION, times=times)


def _cohorts(start: Column, never: float | None) -> list[Term]:
    """Dummies of the periods of first treatment; those never treated are the reference, or else the
    first cohort. Raises InvalidQuery, before a dummy is made, where the declared bounds have room
    for more than a design may have.
    """
    if start.size > MOST_TERMS + 2:  # of which one is the reference, and one stands for never
        raise too_many_terms(start.size)
    values = [v for v in start.values(start.size) if v != never]
    compared = values if start.may_be_missing or len(values) < start.size else values[1:]
    return [
        indicator(f"{quote(start.name)}[{v:g}]", EventTime(start.name, None, v, v))
        for v in compared
    ]


KIND = Kind(
    query=EventStudy,
    group=QuestionGroup.POLICY,
    asks="How did the effect of a policy build up over time?",
    plan=_plan,
    result=EventStudyResult,
    examples=(
        EventStudy("y", "b", "k"),
        EventStudy("y", "b", "k", before=2, after=3, covariates="x", where="x > -3"),
    ),
    page="differences-in-differences",
)
