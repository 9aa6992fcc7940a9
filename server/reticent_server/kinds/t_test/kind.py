# SPDX-License-Identifier: Apache-2.0
"""The kind `t_test`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Flag, Level, Name, Number, Where
from reticent_server.kinds.shared.columns import bounded_column, mask
from reticent_server.kinds.shared.groups import ComparedValue, Groups, names_of, two_groups
from reticent_server.kinds.shared.named_tests import Alternative, Levels
from reticent_server.kinds.shared.ranges import REACH, ClipRange, clip_range
from reticent_server.kinds.shared.reach import groups_reach
from reticent_server.kinds.t_test.plan import TTestPlan, plan_t_test
from reticent_server.kinds.t_test.result import TTestResult


@dataclass(frozen=True, slots=True)
class TTest(Query):
    """Do two means differ? Welch's t test of two groups, of one mean against a number, or of paired
    columns.
    """

    column: Annotated[Name | None, Field(description="The numbers whose mean is tested.")] = None
    group: Annotated[
        Name | None, Field(description="The column of two groups; without it, one mean is tested.")
    ] = None
    levels: Levels = None
    columns: Annotated[
        tuple[Name, Name] | None, Field(description="Two columns of each record, with `paired`.")
    ] = None
    paired: Annotated[Flag, Field(description="Whether `columns` are paired.")] = False
    popmean: Annotated[
        Number, Field(description="The mean, or mean difference, of the hypothesis.")
    ] = 0.0
    alternative: Alternative = "two-sided"
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["t_test"] = field(default="t_test", kw_only=True)


def _plan(facts: DatasetFacts, query: TTest, offer: PrivacyCost) -> TTestPlan:
    value = _value(query)
    groups = Groups(None) if query.group is None else two_groups(facts, query.group, query.levels)
    design = mask(facts, query.where, *names_of(value.column, value.minus, query.group))
    reach = REACH if query.group is None else groups_reach(facts, groups, offer.rho)
    span = clip_range(facts, bounded_column(facts, value.column), reach)
    if value.minus is not None:
        span = span.minus(clip_range(facts, bounded_column(facts, value.minus)))
    _check_popmean(query.popmean, span, groups.size)
    return plan_t_test(facts, design, groups, value, span, query, offer.rho)


def _check_popmean(popmean: float, span: ClipRange, groups: int) -> None:
    """Raises InvalidQuery for a hypothesis that no table can fulfil."""
    possible = abs(popmean) / 2 <= span.half if groups == 2 else span.lower <= popmean <= span.upper
    if not possible:
        raise InvalidQuery(
            "popmean must be possible: within the range that public facts give the values, "
            f"{span.lower:g} to {span.upper:g}, or for two groups no larger than its width."
        )


def _value(query: TTest) -> ComparedValue:
    """What is compared. Raises InvalidQuery for fields that do not go together."""
    if query.paired != (query.columns is not None):
        raise InvalidQuery("A paired test needs columns with two names, and paired: true.")
    if (query.column is None) == (query.columns is None):
        raise InvalidQuery("Give column, or two columns with paired: true.")
    if query.columns is not None and (query.group or query.columns[0] == query.columns[1]):
        raise InvalidQuery("A paired test compares two different columns, without a group.")
    if query.group is None and query.levels is not None:
        raise InvalidQuery("levels are those of group; give group, or leave levels out.")
    if query.group is not None and query.group == query.column:
        raise InvalidQuery("column and group must be different columns.")
    first, second = query.columns or (query.column, None)
    return ComparedValue(str(first), second)


KIND = Kind(
    query=TTest,
    group=QuestionGroup.COMPARE,
    asks="Do the means of two groups differ?",
    plan=_plan,
    result=TTestResult,
    examples=(
        TTest("y", "g", ("a", "b")),
        TTest("y", popmean=0.5, alternative="greater"),
        TTest(columns=("y", "x"), paired=True, where="k > 2"),
    ),
    page="t-tests",
    title="t test",
)
