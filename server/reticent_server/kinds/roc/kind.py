# SPDX-License-Identifier: Apache-2.0
"""The kind `roc`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Number, Where
from reticent_server.kinds.roc.plan import RocPlan, RocResult, plan_roc
from reticent_server.kinds.shared.columns import mask, ordered_column
from reticent_server.kinds.shared.groups import Groups, compared, two_groups

MOST_THRESHOLDS = 12  # each is another cell of noise in the area

Thresholds = Annotated[
    Annotated[tuple[Number, ...], MaxLen(MOST_THRESHOLDS)],
    Field(description="Scores at which the test is described, besides the public edges."),
]


@dataclass(frozen=True, slots=True)
class Roc(Query):
    """How well does a score tell an outcome? The ROC curve, its area, and sensitivity, specificity,
    predictive values and likelihood ratios at thresholds.
    """

    score: Annotated[Name, Field(description="The column of the score or measurement.")]
    outcome: Annotated[Name, Field(description="A boolean column, or one of two levels.")]
    thresholds: Thresholds = ()
    level: Annotated[
        Name | None,
        Field(description="The level of `outcome` that is looked for; without it the second."),
    ] = None
    positive: Annotated[
        Literal["high", "low"], Field(description="Which scores speak for that level.")
    ] = "high"
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["roc"] = field(default="roc", kw_only=True)


def _plan(facts: DatasetFacts, query: Roc, offer: PrivacyCost) -> RocPlan:
    score = ordered_column(facts, query.score)
    groups = compared(score, _outcome(facts, query))
    _check(score, query.thresholds)
    design = mask(facts, query.where, query.score, query.outcome)
    low = query.positive == "low"
    return plan_roc(facts, design, groups, score, query, offer.rho, low=low)


def _outcome(facts: DatasetFacts, query: Roc) -> Groups:
    """Both levels, the one that is looked for first. Raises InvalidQuery."""
    first, second = two_groups(facts, query.outcome, None).levels
    looked_for = second if query.level is None else query.level
    if looked_for not in (first, second):
        raise InvalidQuery("level must be one of the two levels of the outcome.")
    other = first if looked_for == second else second
    return two_groups(facts, query.outcome, (looked_for, other))


def _check(score: Column, thresholds: tuple[float, ...]) -> None:
    """Raises InvalidQuery for a threshold that divides nothing."""
    if any(not score.lower < t <= score.upper for t in thresholds):
        raise InvalidQuery("thresholds must lie within the declared bounds of the score.")


KIND = Kind(
    query=Roc,
    group=QuestionGroup.COMPARE,
    asks="How well does a score or a measurement tell two outcomes apart?",
    plan=_plan,
    result=RocResult,
    examples=(
        Roc("y", "b"),
        Roc("x", "b", (0.0, 1.0), level="0", positive="low", where="y > 0"),
    ),
    page="roc",
    title="ROC curve",
)
