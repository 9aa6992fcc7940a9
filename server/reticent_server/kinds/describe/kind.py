# SPDX-License-Identifier: Apache-2.0
"""The kind `describe`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.describe.figures import Description
from reticent_server.kinds.describe.plan import MAX_COLUMNS, DescribePlan, plan_description
from reticent_server.kinds.fields import By, Name, Where


@dataclass(frozen=True, slots=True)
class Describe(Query):
    """What is in the data? Means, spreads, quartiles, shares, missing values and a histogram of
    every column, by group.
    """

    columns: Annotated[
        Annotated[tuple[Name, ...], MinLen(1), MaxLen(MAX_COLUMNS)] | None,
        Field(description="Those that are described; all of them without it."),
    ] = None
    by: By = None
    where: Where = None
    kind: Literal["describe"] = field(default="describe", kw_only=True)


def _plan(facts: DatasetFacts, query: Describe, offer: PrivacyCost) -> DescribePlan:
    return plan_description(facts, query.columns, query.by, query.where, offer.rho)


KIND = Kind(
    query=Describe,
    group=QuestionGroup.DESCRIBE,
    asks="What is in the data, column by column?",
    plan=_plan,
    result=Description,
    examples=(
        Describe(),
        Describe(("y", "k"), "g"),
        Describe(("y", "g"), "b", "x > 0"),
    ),
    page="describe",
)
