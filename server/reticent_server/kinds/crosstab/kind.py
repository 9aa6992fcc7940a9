# SPDX-License-Identifier: Apache-2.0
"""The kind `crosstab`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Schema
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.crosstab.plan import CrosstabPlan, CrosstabResult, plan_crosstab
from reticent_server.kinds.fields import Name, Where
from reticent_server.kinds.shared.columns import declared, mask
from reticent_server.kinds.shared.one_row import PerRow
from reticent_server.kinds.shared.typical import categories

MAX_COLUMNS = 6  # of a table that somebody reads


@dataclass(frozen=True, slots=True)
class Crosstab(Query):
    """Counts by the values of two or more columns; of two also a test of independence."""

    columns: Annotated[tuple[Name, ...], MinLen(2), MaxLen(MAX_COLUMNS)]
    where: Where = None
    per: PerRow = None
    kind: Literal["crosstab"] = field(default="crosstab", kw_only=True)


def _plan(facts: DatasetFacts, query: Crosstab, offer: PrivacyCost) -> CrosstabPlan:
    columns = tuple(declared(facts, name) for name in query.columns)
    design = mask(facts, query.where, *query.columns)
    return plan_crosstab(facts, design, columns, offer.rho, query.per)


def _typical(schema: Schema) -> list[Crosstab]:
    """A table of two categories."""
    names = categories(schema)[:2]
    return [Crosstab(tuple(names))] if len(names) == 2 else []


KIND = Kind(
    query=Crosstab,
    group=QuestionGroup.TABLES,
    asks="How do two or more categories occur together, and are they independent?",
    plan=_plan,
    result=CrosstabResult,
    examples=(Crosstab(("g", "b")), Crosstab(("g", "b"), "x > 0")),
    page="tables-and-sums",
    typical=_typical,
)
