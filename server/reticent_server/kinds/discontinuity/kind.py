# SPDX-License-Identifier: Apache-2.0
"""The kind `discontinuity`: a local linear regression on both sides of a public cut-off.

    y = α + τ·1{x ≥ c} + β x + γ (x − c)₊,   scores multiplied by a = max(0, 1 − |x − c|/h)

τ is the jump of the local linear fits at c: lines with the slopes β and β + γ that are τ apart
there. Of `order` 2 the fits are parabolas, with (x − c)² and (x − c)₊² as further terms: that is
the local linear jump less its bias as a local quadratic fit at the same bandwidth estimates it,
with a standard error that counts the correction ("robust bias correction" with h = b). τ is
released by sums of bounded influences (discontinuity.plan, with the proof); the lines are a first
look, without intervals.

Source: Hahn, Todd & van der Klaauw (2001); Imbens & Lemieux (2008); Calonico, Cattaneo & Titiunik
(2014), remark 7, for order 2.
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, Strict

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import (
    Apply,
    ColumnValue,
    Design,
    Expression,
    Term,
    TriangleWeight,
)
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import RegressionResult
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.discontinuity.local_fit import Window
from reticent_server.kinds.discontinuity.plan import JumpPlan, plan_jump
from reticent_server.kinds.fields import Level, Name, Number, Positive, Where
from reticent_server.kinds.shared.columns import bounded_column, one_row_a_unit

_OUTSIDE = (
    "The cut-off must lie within the declared bounds of the running column, with values on both "
    "sides."
)
_WIDE = "The bandwidth must not be wider than the declared bounds of the running column are apart."
_NARROWEST = 1e-6  # of the declared range: slopes are in units of 1/bandwidth
_NARROW = "The bandwidth must be at least a millionth of the running column's declared range."


@dataclass(frozen=True, slots=True)
class Discontinuity(Query):
    """By how much does a mean jump at a public cut-off of another column? A sharp regression
    discontinuity, by local linear fits with triangular weights.
    """

    y: Annotated[Name, Field(description="The numeric column whose mean may jump.")]
    running: Annotated[Name, Field(description="The numeric column that decides who is treated.")]
    cutoff: Annotated[
        Number, Field(description="Records with `running` at or above it are treated.")
    ]
    bandwidth: Annotated[
        Positive,
        Field(
            description=(
                "How far from the cut-off records count at all, in the units of `running`: "
                "choose it without looking at the data."
            )
        ),
    ]
    where: Where = None
    confidence_level: Level = 0.95
    order: Annotated[
        int,
        Strict(),
        Ge(1),
        Le(2),
        Field(
            description=(
                "1: lines on both sides; 2: parabolas, whose interval counts that the mean may be "
                "curved (robust bias correction)."
            )
        ),
    ] = field(default=1, kw_only=True)
    kind: Literal["discontinuity"] = field(default="discontinuity", kw_only=True)


def _plan(facts: DatasetFacts, query: Discontinuity, offer: PrivacyCost) -> JumpPlan:
    design = local_design(facts, query)
    y, running = (bounded_column(facts, name) for name in (query.y, query.running))
    kernel = TriangleWeight(running.name, query.cutoff, query.bandwidth)
    window = Window(replace(design, weight=None), kernel, y.name, query.order, 0.0, 1.0)
    return plan_jump(facts, window, (y, running), design.names, query.confidence_level, offer.rho)


def local_design(facts: DatasetFacts, query: Discontinuity) -> Design:
    """The design of the two lines with its kernel. Raises InvalidQuery for columns or a cut-off
    that have none.
    """
    one_row_a_unit(facts)
    y, running = (bounded_column(facts, name) for name in (query.y, query.running))
    if y.name == running.name:
        raise InvalidQuery("y and running must be different columns.")
    if not running.lower < query.cutoff < running.upper:
        raise InvalidQuery(_OUTSIDE)
    if query.bandwidth < _NARROWEST * (running.upper - running.lower):
        raise InvalidQuery(_NARROW)
    if query.bandwidth > running.upper - running.lower:
        raise InvalidQuery(_WIDE)
    mask = parse_formula(f"{_quoted(y)} ~ {_quoted(running)}", facts.schema, query.where)
    return Design(
        response=mask.response,
        terms=_terms(running, query.cutoff, query.order),
        intercept=True,
        where=mask.where,
        columns=mask.columns,
        missing_columns=mask.missing_columns,
        weight=TriangleWeight(running.name, query.cutoff, query.bandwidth),
    )


def _quoted(column: Column) -> str:
    return f"`{column.name}`"


def _terms(running: Column, cutoff: float, order: int) -> tuple[Term, ...]:
    x = ColumnValue(running.name)
    step: Expression = Apply("step", x, cutoff)
    hinge: Expression = Apply("hinge", x, cutoff)
    name, reach = running.name, running.upper - cutoff
    lines = (
        Term(f"{name} >= {cutoff:g}", (step,), 0.0, 1.0, dummy=True),
        Term(name, (x,), running.lower, running.upper),
        Term(f"{name} above {cutoff:g}", (hinge,), 0.0, reach),
    )
    if order == 1:
        return lines
    shift: Expression = Apply("shift", x, cutoff)
    farthest = max(reach, cutoff - running.lower)
    return (
        *lines,
        Term(f"({name} - {cutoff:g})^2", (shift, shift), 0.0, farthest**2),
        Term(f"({name} above {cutoff:g})^2", (hinge, hinge), 0.0, reach**2),
    )


KIND = Kind(
    query=Discontinuity,
    group=QuestionGroup.POLICY,
    asks="By how much does y jump where a rule starts to apply?",
    plan=_plan,
    result=RegressionResult,
    examples=(
        Discontinuity("y", "x", 0.0, 3.0),
        Discontinuity("y", "x", 1.0, 2.0, where="b == 1"),
        Discontinuity("y", "x", 0.0, 3.0, order=2),
    ),
    page="discontinuity",
    title="Regression discontinuity",
)
