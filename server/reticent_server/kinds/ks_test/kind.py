# SPDX-License-Identifier: Apache-2.0
"""The kind `ks_test`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Number, Where
from reticent_server.kinds.ks_test.laws import LAWS
from reticent_server.kinds.ks_test.plan import KsTestPlan, KsTestResult, plan_ks_test
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.shared.groups import Groups, compared, names_of, two_groups
from reticent_server.kinds.shared.named_tests import Levels


@dataclass(frozen=True, slots=True)
class KsTest(Query):
    """Do two distributions differ, or one from a public law? Kolmogorov and Smirnov's test on
    public bins.
    """

    column: Annotated[Name, Field(description="The numbers whose distribution is tested.")]
    group: Annotated[
        Name | None, Field(description="The column of two groups; without it, a law is tested.")
    ] = None
    levels: Levels = None
    law: Annotated[
        Literal["normal", "uniform", "exponential"] | None,
        Field(description="The law that the column is compared with."),
    ] = None
    parameters: Annotated[
        tuple[Number, ...] | None,
        Field(description="Of the law: mean and sd; lower and upper end; mean."),
    ] = None
    confidence_level: Level = 0.95
    where: Where = None
    kind: Literal["ks_test"] = field(default="ks_test", kw_only=True)


def _plan(facts: DatasetFacts, query: KsTest, offer: PrivacyCost) -> KsTestPlan:
    if (query.group is None) == (query.law is None):
        raise InvalidQuery("Give group, to compare two distributions, or law, to test one.")
    column = numeric_column(facts, query.column)
    design = mask(facts, query.where, *names_of(column, query.group))
    if query.law is not None:
        if query.levels is not None:
            raise InvalidQuery("levels are those of group; leave them out.")
        law = LAWS[query.law](query.parameters or ())
        return plan_ks_test(
            facts, design, Groups(None), column, law, query.confidence_level, offer.rho
        )
    if query.parameters is not None:
        raise InvalidQuery("parameters are those of a law; leave them out.")
    groups = compared(column, two_groups(facts, str(query.group), query.levels))
    return plan_ks_test(facts, design, groups, column, None, query.confidence_level, offer.rho)


KIND = Kind(
    query=KsTest,
    group=QuestionGroup.COMPARE,
    asks="Do two groups differ anywhere in their distributions?",
    plan=_plan,
    result=KsTestResult,
    examples=(
        KsTest("y", "g", ("a", "b")),
        KsTest("y", law="normal", parameters=(1.0, 1.5), where="x > 0"),
    ),
    page="distributions",
    title="Kolmogorov–Smirnov test",
)
