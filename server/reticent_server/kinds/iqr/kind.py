# SPDX-License-Identifier: Apache-2.0
"""The kind `iqr`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Value
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Name, Text
from reticent_server.kinds.iqr.by_ptr import plan_iqr
from reticent_server.kinds.iqr.by_quantiles import QUARTILES, plan_range, range_with_interval
from reticent_server.kinds.shared.columns import (
    all_records,
    mask,
    numeric_column,
    sufficient,
    whole_columns,
)
from reticent_server.kinds.shared.quantile_cells import CodeMap, PerPerson
from reticent_server.kinds.shared.quantile_intervals import INTERVALS, plan_quantile_intervals


@dataclass(frozen=True, slots=True)
class Iqr(Query):
    """Interquartile range by "quantiles" (the only one with where), or "ptr", which may not
    reply.
    """

    column: Name
    mechanism: Literal["quantiles", "ptr"] = "quantiles"
    where: Annotated[Text | None, Field(description="For quantiles only.")] = None
    per: PerPerson = None
    intervals: Annotated[bool, Field(description=INTERVALS)] = False
    kind: Literal["iqr"] = field(default="iqr", kw_only=True)


def _plan(facts: DatasetFacts, query: Iqr, offer: PrivacyCost) -> Planned:
    if query.mechanism == "quantiles":
        column = numeric_column(facts, query.column)
        design = mask(facts, query.where, query.column)
        if query.intervals:
            rows = CodeMap(design, column)
            asked = (QUARTILES, offer.rho, query.per)
            return plan_quantile_intervals(facts, rows, *asked, range_with_interval, joint=2)
        return plan_range(facts, design, column, offer.rho, query.per)
    if query.per is not None:
        raise InvalidQuery("per is for the mechanism quantiles only.")
    if query.intervals:
        raise InvalidQuery("intervals are for the mechanism quantiles only.")
    all_records(query.where, "quantiles")
    (column,) = whole_columns(facts, (query.column,))
    return plan_iqr(facts, column, sufficient(offer))


KIND = Kind(
    query=Iqr,
    group=QuestionGroup.DESCRIBE,
    asks="How wide is the middle half of a column?",
    plan=_plan,
    result=Value,
    examples=(
        Iqr("y"),
        Iqr("y", "ptr"),
        Iqr("y", where="x > 0"),
        Iqr("y", intervals=True),
    ),
    page="quantiles-and-medians",
    title="Interquartile range",
)
