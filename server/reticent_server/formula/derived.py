# SPDX-License-Identifier: Apache-2.0
"""Derived columns of a schema file: `income / 1000`, `log(price) - log(sqft)`, `year(sold) -
yr_built`.

    sum  := product {("+" | "-") product}        product := power {("*" | "/") power}
    power := ["-"] atom ["**" number]
    atom := number | column | function "(" sum ")" | "(" sum ")" | date part

Functions are those of formulas; columns those of the file that are no factors. Bounds come by
interval arithmetic, which takes every occurrence of a column for another one: x - x lies between
lower − upper and upper − lower. A curator may narrow them by public knowledge.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import cast

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.derived import Derived, DerivedText, Step
from reticent_server.domain.design import Apply, ColumnValue, FunctionName
from reticent_server.domain.schema import LEAST_WIDTH, MAX_NUMBER, Column, Recode, Schema
from reticent_server.errors import InvalidFormula
from reticent_server.formula.intervals import Interval, applied
from reticent_server.formula.labels import quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.tokens import Cursor
from reticent_server.formula.values import FUNCTIONS, SPECIAL, is_call

_DATE_PARTS = ("year", "month", "days_since")
_EMPTY = ("",)  # the marker of a column that is missing where one of its inputs is


def with_derived(schema: Schema) -> Schema:
    """The schema with its derived columns as columns. Raises InvalidFormula naming the column."""
    columns = tuple(_column(declared, schema) for declared in schema.derived)
    return replace(schema, columns=(*schema.columns, *columns), derived=())


def _column(declared: DerivedText, schema: Schema) -> Column:
    place = f"text of the derived column {declared.name}"
    derived = _Parser(Cursor(declared.text, schema, place, Limits())).parse()
    of = {column.name: column for column in schema.columns}
    whole, bounds = _result(derived, of)
    lower, upper = _narrowed(declared, bounds)
    kind = (
        ColumnKind.INTEGER
        if whole and lower.is_integer() and upper.is_integer()
        else ColumnKind.NUMERIC
    )
    missing = _EMPTY if any(of[name].may_be_missing for name in derived.reads) else ()
    return Column(declared.name, kind, lower, upper, (), missing, Recode(derived=derived))


def _narrowed(declared: DerivedText, bounds: Interval) -> Interval:
    lower = bounds[0] if declared.lower is None else declared.lower
    upper = bounds[1] if declared.upper is None else declared.upper
    if not (bounds[0] <= lower < upper <= bounds[1]) or upper - lower < LEAST_WIDTH:
        raise InvalidFormula(
            f"The derived column {declared.name} lies in [{bounds[0]:g}, {bounds[1]:g}] by the "
            "bounds of what it is made "
            "of: give lower and upper within them, lower below upper."
        )
    return lower, upper


def _result(derived: Derived, of: Mapping[str, Column]) -> tuple[bool, Interval]:
    """(whether its values are whole numbers, their interval)."""
    stack: list[tuple[bool, Interval]] = []
    for step in derived.steps:
        if step.action == "column":
            column = of[step.name]
            stack.append((column.kind.is_whole, (column.lower, column.upper)))
        elif step.action == "number":
            stack.append((step.parameter.is_integer(), (step.parameter, step.parameter)))
        elif step.action == "function":
            stack.append(_function(step, *stack.pop(), derived.text))
        else:
            right = stack.pop()
            stack.append(_operator(step.name, stack.pop(), right, derived.text))
    ((whole, bounds),) = stack
    return whole, bounds


def _function(step: Step, whole: bool, bounds: Interval, text: str) -> tuple[bool, Interval]:
    name = step.name
    call = Apply(cast("FunctionName", name), ColumnValue("its argument"), step.parameter)
    kept = name in {"year", "month"} or (whole and name in {"square", "days_since"})
    return kept, _finite(applied(call, bounds), text)


def _operator(
    name: str, left: tuple[bool, Interval], right: tuple[bool, Interval], text: str
) -> tuple[bool, Interval]:
    (a, b), (c, d) = left[1], right[1]
    if name == "/" and c <= 0 <= d:
        raise InvalidFormula(
            f"In the derived column {text}: what stands below '/' lies in [{c:g}, {d:g}], which "
            "holds 0. Divide by a column "
            "whose bounds do not."
        )
    corners = {
        "+": (a + c, b + d),
        "-": (a - d, b - c),
        "*": (a * c, a * d, b * c, b * d),
        "/": () if name != "/" else (a / c, a / d, b / c, b / d),
    }[name]
    return left[0] and right[0] and name != "/", _finite((min(corners), max(corners)), text)


def _finite(bounds: Interval, text: str) -> Interval:
    if not all(isfinite(end) and abs(end) <= MAX_NUMBER for end in bounds):
        raise InvalidFormula(f"The derived column {text} is too large on the declared bounds.")
    return bounds[0] + 0.0, bounds[1] + 0.0


class _Parser:
    """Reads a text from a cursor; one use."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._steps: list[Step] = []

    def parse(self) -> Derived:
        """The whole text. Raises InvalidFormula."""
        start = self._cursor
        text = start.text
        self._sum()
        start.expect_end("join columns and numbers by + - * / and brackets")
        derived = Derived(text, tuple(self._steps))
        if not derived.reads:
            start.fail("name at least one column")
        return derived

    def _sum(self) -> None:
        self._joined(("+", "-"), lambda: self._joined(("*", "/"), self._power))

    def _joined(self, operators: tuple[str, ...], part: Callable[[], None]) -> None:
        part()
        while self._cursor.at(*operators):
            name = self._cursor.advance().text
            part()
            self._steps.append(Step("operator", name))

    def _power(self) -> None:
        cursor = self._cursor
        negative = cursor.at("-")
        if negative:
            cursor.advance()
            self._steps.append(Step("number", parameter=0.0))
        self._atom()
        if cursor.at("**"):
            cursor.advance()
            exponent = cursor.number("write a number as the exponent")
            name = "square" if exponent == 2 else "power"
            self._steps.append(Step("function", name, exponent))
        if negative:
            self._steps.append(Step("operator", "-"))

    def _atom(self) -> None:
        cursor = self._cursor
        if cursor.at("("):
            self._bracketed()
        elif cursor.token.kind == "number":
            self._steps.append(Step("number", parameter=cursor.number("write a number")))
        elif is_call(cursor):
            self._call()
        else:
            start = cursor.token
            if start.kind != "name" or start.text not in cursor.columns:
                cursor.fail("name a column that stands under `columns`")
            column = cursor.column()
            if not column.kind.has_mean:
                cursor.fail(f"{quote(column.name)} is {column.kind}; use a numeric column", start)
            self._steps.append(Step("column", column.name))

    def _call(self) -> None:
        cursor, name = self._cursor, self._cursor.token
        if not name.quoted and name.text in _DATE_PARTS:
            cursor.advance()
            with cursor.nested():
                cursor.expect("(")
                part = SPECIAL[name.text](cursor)
                cursor.expect(")")
            if isinstance(part, Apply) and isinstance(part.argument, ColumnValue):
                self._steps.append(Step("column", part.argument.column))
                self._steps.append(Step("function", part.function, part.parameter))
            return
        if name.quoted or name.text not in FUNCTIONS:
            cursor.fail(f"use one of the functions {', '.join((*FUNCTIONS, *_DATE_PARTS))}")
        cursor.advance()
        self._bracketed()
        self._steps.append(Step("function", name.text, 1.0))

    def _bracketed(self) -> None:
        with self._cursor.nested():
            self._cursor.expect("(")
            self._sum()
            self._cursor.expect(")")
