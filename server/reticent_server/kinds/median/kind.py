# SPDX-License-Identifier: Apache-2.0
"""The kind `median`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.fitting.results import Interval, Value
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Text
from reticent_server.kinds.median.by_ptr import plan_ptr_median
from reticent_server.kinds.median.by_selection import (
    GroupValues,
    plan_exponential_median,
    plan_group_medians,
)
from reticent_server.kinds.median.by_smooth_sensitivity import plan_smooth_median
from reticent_server.kinds.shared.columns import (
    all_records,
    mask,
    ordered_column,
    sufficient,
    whole_columns,
)
from reticent_server.kinds.shared.one_row import counted
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    PerPerson,
    QuantileWeights,
    weightless,
)
from reticent_server.kinds.shared.quantile_intervals import (
    Intervals,
    plan_quantile_intervals,
    without_groups,
)


@dataclass(frozen=True, slots=True)
class Median(Query):
    """Median by "exponential" (the only one with where), "smooth_sensitivity" or "ptr", which may
    not reply.
    """

    column: Name
    mechanism: Literal["exponential", "smooth_sensitivity", "ptr"] = "exponential"
    where: Annotated[Text | None, Field(description="For the exponential mechanism only.")] = None
    by: By = None
    per: PerPerson = None
    intervals: Intervals = False
    weights: QuantileWeights = None
    kind: Literal["median"] = field(default="median", kw_only=True)


def _plan(facts: DatasetFacts, query: Median, offer: PrivacyCost) -> Planned:
    if query.mechanism == "exponential":
        column = ordered_column(facts, query.column)
        if query.intervals:
            without_groups(query.by, query.weights)
            rows = CodeMap(mask(facts, query.where, query.column), column)
            return plan_quantile_intervals(facts, rows, (0.5,), offer.rho, query.per, _shown)
        counted(facts, query.per, query.by)
        if query.by is not None:
            weightless(query.weights)
            return plan_group_medians(facts, query.where, query.by, column, offer.epsilon)
        design = mask(facts, query.where, query.column)
        design = weighted_design(design, facts.schema, query.weights)
        return plan_exponential_median(facts, design, column, offer.epsilon, query.per)
    all_records(query.where, "exponential")
    if query.by is not None:
        raise InvalidQuery("by is for the mechanism exponential only.")
    if query.per is not None:
        raise InvalidQuery("per is for the mechanism exponential only.")
    if query.weights is not None:
        raise InvalidQuery("weights are for the mechanism exponential only.")
    if query.intervals:
        raise InvalidQuery("intervals are for the mechanism exponential only.")
    (column,) = whole_columns(facts, (query.column,))
    plan = plan_ptr_median if query.mechanism == "ptr" else plan_smooth_median
    return plan(facts, column, sufficient(offer))


def _shown(values: list[float], intervals: list[Interval], n: int) -> Value:
    return Value(
        value=values[0], n=n, confidence_level=CONFIDENCE, confidence_interval=intervals[0]
    )


KIND = Kind(
    query=Median,
    group=QuestionGroup.DESCRIBE,
    asks="What is the middle value of a column?",
    plan=_plan,
    result=Value | GroupValues,
    examples=(
        Median("y"),
        Median("y", "ptr"),
        Median("y", "smooth_sensitivity"),
        Median("y", where="x > 0"),
        Median("y", by="g"),
        Median("y", intervals=True),
        Median("y", weights="k"),
    ),
    page="quantiles-and-medians",
)
