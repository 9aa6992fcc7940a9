# SPDX-License-Identifier: Apache-2.0
"""The kind `correlation`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.correlation.kendall import plan_kendall
from reticent_server.kinds.correlation.pearson import plan_pearson
from reticent_server.kinds.correlation.plan import plan_moments
from reticent_server.kinds.correlation.result import CorrelationResult
from reticent_server.kinds.correlation.scores import Grades, grades_of
from reticent_server.kinds.fields import Level, Name, Where
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.shared.named_tests import Alternative


@dataclass(frozen=True, slots=True)
class Correlation(Query):
    """Are two columns related? Pearson's, Spearman's or Kendall's correlation with its interval and
    test.
    """

    columns: Annotated[tuple[Name, Name], Field(description="Two columns of numbers.")]
    method: Literal["pearson", "spearman", "kendall"] = "pearson"
    alternative: Alternative = "two-sided"
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["correlation"] = field(default="correlation", kw_only=True)


def _plan(facts: DatasetFacts, query: Correlation, offer: PrivacyCost) -> Planned:
    x, y = (numeric_column(facts, name) for name in query.columns)
    if x.name == y.name:
        raise InvalidQuery("A correlation is of two different columns.")
    design = mask(facts, query.where, x.name, y.name)
    if query.method == "kendall":
        return plan_kendall(facts, design, (x, y), query, offer.rho)
    if query.method == "spearman":
        grades = Grades(grades_of(facts, x), grades_of(facts, y))
        return plan_moments(facts, design, grades, query, offer.rho)
    return plan_pearson(facts, design, (x, y), query, offer.rho)


KIND = Kind(
    query=Correlation,
    group=QuestionGroup.MODEL,
    asks="How closely are two columns related?",
    plan=_plan,
    result=CorrelationResult,
    examples=(
        Correlation(("y", "x")),
        Correlation(("y", "k"), method="spearman", where="x > 0"),
        Correlation(("x", "y"), method="kendall", alternative="greater"),
    ),
    page="correlation",
)
