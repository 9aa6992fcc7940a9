# SPDX-License-Identifier: Apache-2.0
"""The kind `proportion_test`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Where
from reticent_server.kinds.proportion_test.plan import (
    ProportionTestPlan,
    ProportionTestResult,
    plan_proportion_test,
)
from reticent_server.kinds.shared.columns import declared, mask
from reticent_server.kinds.shared.groups import Groups, compared, names_of, two_groups
from reticent_server.kinds.shared.named_tests import Alternative, Levels
from reticent_server.kinds.shared.tables import level_axis

Share = Annotated[
    float | None,
    Field(gt=0, lt=1, strict=True, allow_inf_nan=False),
    Field(description="Of one group: the proportion of the hypothesis."),
]


@dataclass(frozen=True, slots=True)
class ProportionTest(Query):
    """Do two proportions differ, or one from a number? The z test of counts of successes."""

    column: Annotated[Name, Field(description="A boolean, categorical or integer column.")]
    group: Annotated[
        Name | None, Field(description="The column of two groups; without it, one is tested.")
    ] = None
    levels: Levels = None
    success: Annotated[
        Name | None, Field(description="The level that is counted; of a dummy column, 1.")
    ] = None
    value: Share = None
    alternative: Alternative = "two-sided"
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["proportion_test"] = field(default="proportion_test", kw_only=True)


def _plan(facts: DatasetFacts, query: ProportionTest, offer: PrivacyCost) -> ProportionTestPlan:
    if (query.group is None) == (query.value is None):
        raise InvalidQuery("Give group, to compare two proportions, or value, to test one.")
    if query.group is None and query.levels is not None:
        raise InvalidQuery("levels are those of group; give group, or leave levels out.")
    column = declared(facts, query.column)
    groups = Groups(None)
    if query.group is not None:
        groups = compared(column, two_groups(facts, query.group, query.levels))
    design = mask(facts, query.where, *names_of(column, query.group))
    return plan_proportion_test(
        facts, design, groups, column, _success(column, query), query, offer.rho
    )


def _success(column: Column, query: ProportionTest) -> float:
    """The stored value that is counted. Raises InvalidQuery."""
    if query.success is None:
        if column.is_dummy:
            return 1.0
        raise InvalidQuery("Name the level of the column that is counted, as success.")
    axis = level_axis(column)
    if query.success not in axis.levels:
        raise InvalidQuery("success must be a level that is declared for the column.")
    return axis.stored[axis.levels.index(query.success)]


KIND = Kind(
    query=ProportionTest,
    group=QuestionGroup.COMPARE,
    asks="Do the shares of two groups differ, or one share from a number?",
    plan=_plan,
    result=ProportionTestResult,
    examples=(
        ProportionTest("b", "g", ("a", "b")),
        ProportionTest("g", success="a", value=0.3, where="x > 0"),
    ),
    page="proportions",
)
