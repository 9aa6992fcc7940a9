# SPDX-License-Identifier: Apache-2.0
"""The kind `quantiles`."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.fitting.results import Interval
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Name, Number, Where
from reticent_server.kinds.quantiles.plan import (
    MAX_PROBABILITIES,
    QuantilesByGroup,
    QuantilesResult,
    checked_probabilities,
    plan_group_quantiles,
    plan_quantiles,
)
from reticent_server.kinds.shared.columns import mask, ordered_column
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
class Quantiles(Query):
    """Quantiles at any probabilities; larger probabilities never have smaller values."""

    column: Name
    probabilities: Annotated[tuple[Number, ...], MinLen(1), MaxLen(MAX_PROBABILITIES)] = (
        0.25,
        0.5,
        0.75,
    )
    where: Where = None
    by: By = None
    per: PerPerson = None
    intervals: Intervals = False
    weights: QuantileWeights = None
    kind: Literal["quantiles"] = field(default="quantiles", kw_only=True)


def _plan(facts: DatasetFacts, query: Quantiles, offer: PrivacyCost) -> Planned:
    column = ordered_column(facts, query.column)
    counted(facts, query.per, query.by)
    if query.intervals:
        without_groups(query.by, query.weights)
        checked_probabilities(query.probabilities)
        rows = CodeMap(mask(facts, query.where, query.column), column)
        show = partial(_shown, query.probabilities)
        asked_of = (query.probabilities, offer.rho, query.per)
        return plan_quantile_intervals(facts, rows, *asked_of, show)
    if query.by is not None:
        weightless(query.weights)
        asked = (query.where, query.by, column, query.probabilities)
        return plan_group_quantiles(facts, *asked, offer.rho)
    design = mask(facts, query.where, query.column)
    design = weighted_design(design, facts.schema, query.weights)
    return plan_quantiles(facts, design, column, query.probabilities, offer.rho, query.per)


def _shown(
    probabilities: tuple[float, ...], values: list[float], intervals: list[Interval], n: int
) -> QuantilesResult:
    return QuantilesResult(
        probabilities=list(probabilities),
        values=values,
        n=n,
        confidence_level=CONFIDENCE,
        confidence_intervals=intervals,
    )


KIND = Kind(
    query=Quantiles,
    group=QuestionGroup.DESCRIBE,
    asks="Below which values lie a quarter, a half, nine tenths of the records?",
    plan=_plan,
    result=QuantilesResult | QuantilesByGroup,
    examples=(
        Quantiles("y", (0.9, 0.1)),
        Quantiles("y", where="x > 0"),
        Quantiles("y", by="g"),
        Quantiles("y", (0.25, 0.75), intervals=True),
        Quantiles("y", where="x > 0", intervals=True),
        Quantiles("y", where="x > 0", weights="k"),
    ),
    page="quantiles-and-medians",
)
