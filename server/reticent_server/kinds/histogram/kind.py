# SPDX-License-Identifier: Apache-2.0
"""The kind `histogram`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Number, Where
from reticent_server.kinds.histogram.plan import (
    GroupHistograms,
    HistogramResult,
    plan_group_histogram,
    plan_histogram,
)
from reticent_server.kinds.shared.columns import declared, mask
from reticent_server.kinds.shared.one_row import PerRow, counted

MAX_EDGES = 1001  # a thousand bins: more than a screen has columns

Edges = Annotated[tuple[Number, ...], MinLen(2), MaxLen(MAX_EDGES)]


@dataclass(frozen=True, slots=True)
class Histogram(Query):
    """Counts by bin of public edges; without bins by level, or by whole number."""

    column: Name
    bins: Annotated[Edges | None, Field(description="Edges; null: levels, whole numbers.")] = None
    where: Where = None
    by: By = None
    per: PerRow = None
    kind: Literal["histogram"] = field(default="histogram", kw_only=True)


def _plan(facts: DatasetFacts, query: Histogram, offer: PrivacyCost) -> Planned:
    counted(facts, query.per, query.by)
    column = declared(facts, query.column)
    if query.by is not None:
        return plan_group_histogram(facts, query.where, query.by, column, query.bins, offer.rho)
    design = mask(facts, query.where, query.column)
    return plan_histogram(facts, design, column, query.bins, offer.rho, query.per)


KIND = Kind(
    query=Histogram,
    group=QuestionGroup.TABLES,
    asks="How many records have each value, or fall into each interval?",
    plan=_plan,
    result=HistogramResult | GroupHistograms,
    examples=(
        Histogram("y", (-10.0, 0.0, 10.0)),
        Histogram("g", where="x > 0"),
        Histogram("k", by="g"),
    ),
    page="tables-and-sums",
)
