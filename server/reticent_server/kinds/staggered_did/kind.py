# SPDX-License-Identifier: Apache-2.0
"""The kind `staggered_did`."""

from dataclasses import dataclass, field
from math import ceil, floor, sqrt
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidQuery
from reticent_server.formula import mask_design, parse_formula
from reticent_server.formula.labels import quote
from reticent_server.formula.parse import column_of
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Level, Name, Number, Where, Whole
from reticent_server.kinds.shared.ranges import clip_range
from reticent_server.kinds.shared.treatment import Response, whole_numbers
from reticent_server.kinds.staggered_did.cells import CohortPanel
from reticent_server.kinds.staggered_did.plan import StaggeredDidPlan, planned
from reticent_server.kinds.staggered_did.result import StaggeredDidResult
from reticent_server.numerics.evaluate import evaluate_term

_MOST_PERIODS = 40  # a sum has (1 + T)(2 + T)/2 numbers a cohort, each with noise to be drawn
_MOST_CELLS = 400  # of cohorts and periods; beyond, few tables resolve any
_SAME = (
    "`y`, `treatment_time` and `time` are different columns: the response, the first treated "
    "period, and the period of the row."
)
_PERIODS = (
    "There must be at least 2 periods and at most 40 between the bounds of `time`: name `first` "
    "and `last` of them, or use coarser periods."
)
_CELLS = (
    "Cohorts times periods may be 400 at most: name `first` and `last`, or use coarser dates of "
    "treatment."
)
_DATES = (
    "No declared value of `treatment_time` lies after the first period and not after the last: "
    "there is no cohort to compare."
)
_UNBOUNDED = "The response has no finite bounds: declare narrower ones for its column."


@dataclass(frozen=True, slots=True)
class StaggeredDid(Query):
    """Differences in differences where treatment starts at different times: effects by cohort and
    period (Callaway & Sant'Anna), and their averages over all, by time since treatment, by cohort
    and by period.
    """

    y: Response
    treatment_time: Annotated[
        Name,
        Field(
            description=(
                "The column of the first period under treatment, the same in all rows of a person; "
                "missing, or after the last period: never treated."
            )
        ),
    ]
    time: Annotated[Name, Field(description="The column of the period, whole numbers.")]
    never: Annotated[
        Number | None,
        Field(
            description="The value of treatment_time that stands for never, beside missing cells."
        ),
    ] = None
    first: Annotated[
        Whole | None, Field(description="The first period; null: the lower bound of `time`.")
    ] = None
    last: Annotated[
        Whole | None, Field(description="The last period; null: the upper bound of `time`.")
    ] = None
    where: Where = None
    confidence_level: Level = 0.95
    kind: Literal["staggered_did"] = field(default="staggered_did", kw_only=True)


def _plan(facts: DatasetFacts, query: StaggeredDid, offer: PrivacyCost) -> StaggeredDidPlan:
    periods = _periods(whole_numbers(facts, query.time), query)
    start = whole_numbers(facts, query.treatment_time)
    dates = _dates(start, periods, query.never)
    design, response = _read(facts, query)
    persons = facts.schema.unit.max_rows if facts.schema.unit.several_rows else None
    column, centre = _expected(facts, response)
    panel = CohortPanel(
        design=design,
        response=response,
        time=query.time,
        start=start.name,
        never=query.never,
        periods=periods,
        dates=dates,
        rows=persons,
        centre=0.0 if persons else centre,
    )
    width = response.upper - response.lower
    longest = width * sqrt(panel.T) / 2 if persons else width
    if not (np.isfinite(longest) and longest > 0):
        raise InvalidQuery(_UNBOUNDED)
    plain = response.name == column.name
    sd = clip_range(facts, column).sd if plain else None
    sizes = _sizes(facts, start, dates, facts.persons if persons and facts.persons else facts.n)
    return planned(facts, panel, longest, sizes, sd, query.confidence_level, offer.rho)


def _periods(column: Column, query: StaggeredDid) -> tuple[int, int]:
    first = ceil(column.lower) if query.first is None else query.first
    last = floor(column.upper) if query.last is None else query.last
    if not 2 <= last - first + 1 <= _MOST_PERIODS:
        raise InvalidQuery(_PERIODS)
    return first, last


def _dates(column: Column, periods: tuple[int, int], never: float | None) -> tuple[int, ...]:
    lowest, highest = max(ceil(column.lower), periods[0] + 1), min(floor(column.upper), periods[1])
    dates = tuple(d for d in range(lowest, highest + 1) if d != never)
    if not dates:
        raise InvalidQuery(_DATES)
    if (1 + len(dates)) * (periods[1] - periods[0] + 1) > _MOST_CELLS:
        raise InvalidQuery(_CELLS)
    return dates


def _read(facts: DatasetFacts, query: StaggeredDid) -> tuple[Design, Term]:
    """What is read and which rows are in use; and the response."""
    time = query.time
    design = parse_formula(
        f"{query.y} ~ {quote(time)}", facts.schema, query.where, profile=facts.profile
    )
    response = design.response
    if response is None:
        raise InvalidQuery(_SAME)
    names = {column_of(response.factors[0]), time, query.treatment_time}
    if len(names) < len(("response", "time", "date")):
        raise InvalidQuery(_SAME)
    mask = mask_design((*design.columns, query.treatment_time), facts.schema, query.where)
    missing = tuple(n for n in mask.missing_columns if n != query.treatment_time)
    conditions = tuple(n for n in design.missing_columns if n not in missing)
    mask = Design(None, (), False, mask.where, mask.columns, (*missing, *conditions))
    return mask, response


def _expected(facts: DatasetFacts, response: Term) -> tuple[Column, float]:
    """The response's column, and its expected value: the function of the column's."""
    name = column_of(response.factors[0])
    column = next(c for c in facts.schema.columns if c.name == name)
    middle = np.array([clip_range(facts, column).expected])
    value = float(evaluate_term(response, Block(0, 1, {name: middle}, {}))[0])
    if not np.isfinite(value):
        value = (response.lower + response.upper) / 2
    return column, min(max(value, response.lower), response.upper)


def _sizes(facts: DatasetFacts, start: Column, dates: tuple[int, ...], n: int) -> tuple[float, ...]:
    """Numbers of the cohorts by the profile, those never treated first; without one equal ones."""
    known = facts.profile.columns.get(start.name) if facts.profile else None
    if known is None or known.counts is None:
        return (n / (1 + len(dates)),) * (1 + len(dates))
    counts = np.maximum(known.counts, 0.0)
    total = max(float(counts.sum()) + (known.missing or 0.0), 1.0)
    places = [d - int(known.first) for d in dates]
    of_dates = [float(counts[p]) if 0 <= p < len(counts) else 0.0 for p in places]
    shares = [max(total - float(counts.sum()), 0.0), *of_dates]
    if not start.may_be_missing:
        shares[0] = total - sum(of_dates)
    return tuple(n * share / total for share in shares)


KIND = Kind(
    query=StaggeredDid,
    group=QuestionGroup.POLICY,
    asks="What did a policy change that reached some earlier than others?",
    plan=_plan,
    result=StaggeredDidResult,
    examples=(
        StaggeredDid("y", "b", "k", never=0.0),
        StaggeredDid("y", "b", "k", 0.0, 0, 4, "x > -3"),
    ),
    page="differences-in-differences",
    title="Staggered difference in differences",
)
