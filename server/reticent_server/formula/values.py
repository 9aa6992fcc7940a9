# SPDX-License-Identifier: Apache-2.0
"""Values inside a term: a column, a function of a value, or a power written I(x**2)."""

from collections.abc import Callable
from typing import get_args

from reticent_server.domain.design import Apply, ColumnValue, Expression, FunctionName
from reticent_server.domain.schema import Column
from reticent_server.formula.labels import quote
from reticent_server.formula.public_location import public_location
from reticent_server.formula.tokens import Cursor

_WITHOUT_A_NAME = {"square", "power", "legendre", "bspline", "step", "hinge", "shift", "divide"}
_WITHOUT_A_NAME |= {"days_since", "year", "month"}
FUNCTIONS: dict[str, FunctionName] = {
    name: name for name in get_args(FunctionName) if name not in _WITHOUT_A_NAME
}


def parse_value(cursor: Cursor) -> Expression:
    """value := atom [("**" | "^") number], with atom a column, a function call or a bracketed
    value.
    """
    argument = _atom(cursor)
    if not cursor.at("**", "^"):
        return argument
    cursor.advance()
    exponent = cursor.number("write a number as the exponent")
    if cursor.at("**", "^"):
        cursor.fail("put brackets around the inner power")
    return Apply("square", argument) if exponent == 2 else Apply("power", argument, exponent)


def _atom(cursor: Cursor) -> Expression:
    if cursor.at("("):
        return _bracketed(cursor)
    if cursor.token.kind != "name":
        cursor.fail("write a column or a function of a column")
    if is_call(cursor):
        return parse_call(cursor)
    token = cursor.token
    column = cursor.column()
    if not column.kind.has_mean:
        cursor.fail(f"{quote(column.name)} is {column.kind}; use a numeric column", token)
    return ColumnValue(column.name)


def is_call(cursor: Cursor) -> bool:
    """Whether a function call starts here: a bare name and an opening bracket."""
    token, following = cursor.token, cursor.following
    return token.kind == "name" and following.kind == "operator" and following.text == "("


def parse_call(cursor: Cursor) -> Expression:
    """function "(" value ")"; I(value) is the value itself."""
    name = cursor.token
    special = None if name.quoted else SPECIAL.get(name.text)
    if special is None and (name.quoted or (name.text not in FUNCTIONS and name.text != "I")):
        cursor.fail(
            f"use one of the functions {', '.join((*FUNCTIONS, *SPECIAL))}, I, or C, poly or bs "
            "as a term of its own"
        )
    cursor.advance()
    if special is not None:
        with cursor.nested():
            cursor.expect("(")
            value = special(cursor)
            cursor.expect(")")
        return value
    argument = _bracketed(cursor)
    return argument if name.text == "I" else Apply(FUNCTIONS[name.text], argument)


def _bracketed(cursor: Cursor) -> Expression:
    with cursor.nested():
        cursor.expect("(")
        value = _line(cursor)
        if not cursor.at(")"):
            cursor.fail("only one column, functions, powers and numbers can stand in brackets")
        cursor.advance()
    return value


def _line(cursor: Cursor) -> Expression:
    """line := [number ("+" | "*")] value {("*" | "/") number} {("+" | "-") number}: a value that is
    scaled and shifted by numbers, such as I(x/1000) and log(x + 1).
    """
    number, before = 0.0, ""
    if cursor.token.kind == "number":
        number = cursor.number("write a number")
        if not cursor.at("+", "*"):
            cursor.fail("write '+' or '*' and a column after a number (1/x is I(x**-1))")
        before = cursor.advance().text
    value = parse_value(cursor)
    if before == "*":
        value = _scaled(cursor, value, 1 / number if number else 0.0)
    while cursor.at("*", "/"):
        divides = cursor.advance().text == "/"
        by = cursor.number("write a number here: columns are multiplied as terms, x1:x2")
        value = _scaled(cursor, value, by if divides or not by else 1 / by)
    if before == "+":
        value = Apply("shift", value, -number)
    while cursor.at("+", "-"):
        sign = -1.0 if cursor.advance().text == "+" else 1.0
        added = cursor.number(
            "write a number here: a term has one column. Write a + b as terms of their own, or "
            "ask the curator for a derived column"
        )
        value = Apply("shift", value, sign * added + 0.0)
    return value


def _scaled(cursor: Cursor, value: Expression, by: float) -> Expression:
    """The value divided by a number, in the grammar's own spelling: scale(x, at=0, by=1000)."""
    if by <= 0:
        cursor.fail("multiply and divide by numbers above 0")
    return Apply("divide", Apply("shift", value, 0.0), by)


def _center(cursor: Cursor) -> Expression:
    """value ["," "at" "=" number]: the value less a public number near its middle."""
    value = parse_value(cursor)
    centre, _ = _public_location(cursor, value)
    return Apply("shift", value, _option(cursor, "at", centre))


def _scale(cursor: Cursor) -> Expression:
    """value ["," "at" "=" number] ["," "by" "=" number]: centred, and in units of a public
    spread."""
    value = parse_value(cursor)
    centre, spread = _public_location(cursor, value)
    shifted = Apply("shift", value, _option(cursor, "at", centre))
    start = cursor.token
    spread = _option(cursor, "by", spread)
    if spread <= 0:
        cursor.fail("give a scale above 0 after by=", start)
    return Apply("divide", shifted, spread)


def _option(cursor: Cursor, word: str, otherwise: float) -> float:
    """The number of `, word=number` where it stands here."""
    following = cursor.following
    if not cursor.at(",") or following.quoted or following.text != word:
        return otherwise
    cursor.advance()
    cursor.advance()
    cursor.expect("=")
    return cursor.number(f"write a number after {word}=")


def _public_location(cursor: Cursor, value: Expression) -> tuple[float, float]:
    """(centre, spread) of a value, short to write, from the released profile or else from the
    declared bounds.

    Nothing is read from the data: the term's name says the numbers, so that anybody can compute the
    column.
    """
    return public_location(value, cursor.columns, cursor.profile)


def _date_column(cursor: Cursor) -> Column:
    start = cursor.token
    column = cursor.column()
    if not column.is_date:
        cursor.fail(f"{quote(column.name)} is not a date column", start)
    return column


def _part(name: FunctionName) -> Callable[[Cursor], Expression]:
    return lambda cursor: Apply(name, ColumnValue(_date_column(cursor).name))


def _days_since(cursor: Cursor) -> Expression:
    """date column "," date in quotes."""
    column = _date_column(cursor)
    cursor.expect(",")
    return Apply("days_since", ColumnValue(column.name), cursor.date())


SPECIAL: dict[str, Callable[[Cursor], Expression]] = {
    "center": _center,
    "scale": _scale,
    "year": _part("year"),
    "month": _part("month"),
    "days_since": _days_since,
}
"""Functions that take more than a value, or one sort of column."""
