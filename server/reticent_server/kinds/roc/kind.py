# SPDX-License-Identifier: Apache-2.0
"""The kind `roc`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Number, Text, Where
from reticent_server.kinds.roc.plan import RocPlan, RocResult, plan_roc, plan_roc_of
from reticent_server.kinds.roc.predictor import masked, predictor_of
from reticent_server.kinds.shared.columns import mask, ordered_column
from reticent_server.kinds.shared.groups import Groups, compared, two_groups

MOST_THRESHOLDS = 12  # each is another cell of noise in the area
MAX_TERMS = 64  # as many columns as a design may have

Thresholds = Annotated[
    Annotated[tuple[Number, ...], MaxLen(MOST_THRESHOLDS)],
    Field(description="Scores at which the test is described, besides the public edges."),
]

Coefficients = Annotated[
    Annotated[tuple[Number, ...], MinLen(1), MaxLen(MAX_TERMS)],
    Field(
        description="Of a released model, the intercept first; the score is then its linear "
        "predictor: of a logit the log odds."
    ),
]


@dataclass(frozen=True, slots=True)
class Roc(Query):
    """How well does a score tell an outcome? The ROC curve, its area, and sensitivity, specificity,
    predictive values and likelihood ratios at thresholds.
    """

    score: Annotated[
        Text,
        Field(
            description="The column of the score or measurement; with `coefficients` the terms of "
            "a released model, such as `age + C(g)`."
        ),
    ]
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
    coefficients: Coefficients | None = None
    kind: Literal["roc"] = field(default="roc", kw_only=True)


def _plan(facts: DatasetFacts, query: Roc, offer: PrivacyCost) -> RocPlan:
    low = query.positive == "low"
    if query.coefficients is not None:
        groups = _outcome(facts, query)
        predictor = predictor_of(facts, query.score, query.coefficients, query.outcome)
        _check(*predictor.limits, query.thresholds)
        design = masked(facts, predictor, query.where, query.outcome)
        return plan_roc_of(facts, design, groups, predictor, query, offer.rho, low=low)
    score = ordered_column(facts, query.score)
    groups = compared(score, _outcome(facts, query))
    _check(score.lower, score.upper, query.thresholds)
    design = mask(facts, query.where, query.score, query.outcome)
    return plan_roc(facts, design, groups, score, query, offer.rho, low=low)


def _outcome(facts: DatasetFacts, query: Roc) -> Groups:
    """Both levels, the one that is looked for first. Raises InvalidQuery."""
    first, second = two_groups(facts, query.outcome, None).levels
    looked_for = second if query.level is None else query.level
    if looked_for not in (first, second):
        raise InvalidQuery("level must be one of the two levels of the outcome.")
    other = first if looked_for == second else second
    return two_groups(facts, query.outcome, (looked_for, other))


def _check(lower: float, upper: float, thresholds: tuple[float, ...]) -> None:
    """Raises InvalidQuery for a threshold that divides nothing."""
    if any(not lower < t <= upper for t in thresholds):
        raise InvalidQuery("thresholds must lie within the declared bounds of the score.")


KIND = Kind(
    query=Roc,
    group=QuestionGroup.COMPARE,
    asks="How well does a score or a measurement distinguish two outcomes?",
    plan=_plan,
    result=RocResult,
    examples=(
        Roc("y", "b"),
        Roc("x", "b", (0.0, 1.0), level="0", positive="low", where="y > 0"),
        Roc("x + C(g)", "b", where="y > 0", coefficients=(0.5, 1.0, 0.2, -0.2)),
    ),
    page="roc",
    title="ROC curve",
)
