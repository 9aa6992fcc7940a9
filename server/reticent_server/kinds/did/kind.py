# SPDX-License-Identifier: Apache-2.0
"""The kind `did`: one effect of a treatment, by two-way fixed effects (kinds.shared.treatment)."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import EventTime, Expression, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import RegressionResult
from reticent_server.formula.labels import quote
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Number, Where
from reticent_server.kinds.shared.columns import declared, second_of_two
from reticent_server.kinds.shared.treatment import (
    Covariates,
    Loss,
    Period,
    Response,
    TreatmentPlan,
    TreatmentQuestion,
    whole_numbers,
)

_NOT_DUMMY = (
    "`treated` is a boolean column, an integer column with bounds 0 and 1, or one of two levels."
)
_NO_START = (
    "On a data set with one row a person say when the treatment starts, such as start=2020; "
    "without it `treated` must change "
    "within persons, for whom a data set with `unit: {column: person_id, max_rows: 8}` is needed."
)
_OUTSIDE = (
    "`start` must lie above the lower bound of the column of periods, and not above its upper "
    "bound."
)
_CHANGE = (
    "The coefficient of did is the mean change of the treated from before to after the start, "
    "less that of the others"
)
_STATUS = (
    "The coefficient of did is the two-way fixed-effects estimate of the effect of being treated"
)
_STAGGERED = (
    "Where persons are treated from different periods on, and effects differ between them or "
    "grow with time, this one number "
    "weighs some effects negatively (Goodman-Bacon 2021): look at an event_study too."
)


@dataclass(frozen=True, slots=True)
class Did(Query):
    """Difference in differences: by how much a treatment changes the response, with person and
    period effects.
    """

    y: Response
    treated: Annotated[
        Name,
        Field(
            description="A 0/1 column, or one of two levels. With `start`, who belongs to the "
            "treated group, in every row; without it, whether the row is one under treatment."
        ),
    ]
    time: Period
    start: Annotated[
        Number | None,
        Field(description="The first period under treatment, the same for all of the group."),
    ] = None
    covariates: Covariates = None
    where: Where = None
    loss: Loss = "squared"
    confidence_level: Level = 0.95
    kind: Literal["did"] = field(default="did", kw_only=True)

    def other_target(self) -> "Did":
        """Least squares beside Huber's loss, and the reverse."""
        return replace(self, loss="huber" if self.loss == "squared" else "squared")


def _plan(facts: DatasetFacts, query: Did, offer: PrivacyCost) -> TreatmentPlan:
    group = second_of_two(declared(facts, query.treated), _NOT_DUMMY)
    if query.start is None and not facts.schema.unit.several_rows:
        raise InvalidQuery(_NO_START)
    factors: tuple[Expression, ...] = (group,)
    if query.start is not None:
        period = whole_numbers(facts, query.time)
        if not period.lower < query.start <= period.upper:
            raise InvalidQuery(_OUTSIDE)
        factors = (group, EventTime(query.time, None, query.start, float("inf")))
    question = TreatmentQuestion(
        query.y,
        query.time,
        query.covariates,
        query.where,
        query.loss,
        query.confidence_level,
        reads=(query.treated, query.time),
    )
    effect = Term(f"did({quote(query.treated)})", factors, 0.0, 1.0, dummy=True)
    level = Term(quote(query.treated), (group,), 0.0, 1.0, dummy=True)
    fit = question.fit(facts, [effect], [level], offer.rho)
    said, caution = (_STATUS, _STAGGERED) if query.start is None else (_CHANGE, "")
    return TreatmentPlan.of(fit, said=said, caution=caution)


KIND = Kind(
    query=Did,
    group=QuestionGroup.POLICY,
    asks="What did a policy change, against those whom it did not reach?",
    plan=_plan,
    result=RegressionResult,
    examples=(
        Did("y", "b", "k", start=5.0),
        Did("y", "b", "k", start=5.0, covariates="x + C(g)", where="x > -3"),
    ),
    page="differences-in-differences",
    title="Difference in differences",
)
