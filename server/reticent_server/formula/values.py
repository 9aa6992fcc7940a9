# SPDX-License-Identifier: Apache-2.0
"""Values inside a term: a column, a function of a value, or a power written I(x**2)."""

import re
from typing import get_args

from reticent_server.domain.design import (
    Apply,
    Coded,
    ColumnValue,
    EventTime,
    Expression,
    Filled,
    FunctionName,
    Indicator,
    Missing,
    PersonMean,
)
from reticent_server.domain.schema import ColumnKind
from reticent_server.formula.tokens import Cursor

_WITHOUT_A_NAME = {"square", "power", "legendre", "bspline", "step", "hinge"}
FUNCTIONS: dict[str, FunctionName] = {
    name: name for name in get_args(FunctionName) if name not in _WITHOUT_A_NAME
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def quote(name: str) -> str:
    """A column's name as a formula spells it: in backticks unless it is a plain name."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"


def label(expression: Expression) -> str:
    """The spelling of an expression as a term, e.g. "log(x)", "I(x**2)"."""
    text = _inner_label(expression)
    return f"I({text})" if _is_power(expression) else text


def _inner_label(expression: Expression) -> str:  # noqa: PLR0911 - one for each sort of expression
    match expression:
        case ColumnValue(column) | Filled(column, _):
            return quote(column)
        case Missing(column, present):
            return f"{'observed' if present else 'missing'}({quote(column)})"
        case Indicator(column, code):
            return f"{quote(column)}[{code:g}]"
        case Coded(column):
            return f"{quote(column)}[coded]"
        case Apply(function, argument, parameter):
            inner = _inner_label(argument)
            if not _is_power(expression):
                return f"{function}({inner})"
            base = f"({inner})" if _is_power(argument) else inner
            return f"{base}**{2 if function == 'square' else spelled(parameter)}"
        case EventTime(time, _, low, high):
            return f"{quote(time)}[{low:g}:{high:g}]"
        case PersonMean(_, argument):
            return f"mean({_inner_label(argument)})"


def _is_power(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.function in {"square", "power"}


def spelled(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def parse_value(cursor: Cursor) -> Expression:
    """value := atom ["**" number], with atom a column, a function call or a bracketed value."""
    argument = _atom(cursor)
    if not cursor.at("**"):
        return argument
    cursor.advance()
    exponent = cursor.number("write a number as the exponent")
    if cursor.at("**"):
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
    if column.kind is ColumnKind.CATEGORICAL:
        cursor.fail(f"{quote(column.name)} is categorical; use a numeric column", token)
    return ColumnValue(column.name)


def is_call(cursor: Cursor) -> bool:
    """Whether a function call starts here: a bare name and an opening bracket."""
    token, following = cursor.token, cursor.following
    return token.kind == "name" and following.kind == "operator" and following.text == "("


def parse_call(cursor: Cursor) -> Expression:
    """function "(" value ")"; I(value) is the value itself."""
    name = cursor.token
    if name.quoted or (name.text not in FUNCTIONS and name.text != "I"):
        cursor.fail(
            f"use one of the functions {', '.join(FUNCTIONS)}, I, or C, poly or bs as a term of its own"
        )
    cursor.advance()
    argument = _bracketed(cursor)
    return argument if name.text == "I" else Apply(FUNCTIONS[name.text], argument)


def _bracketed(cursor: Cursor) -> Expression:
    with cursor.nested():
        cursor.expect("(")
        value = parse_value(cursor)
        if not cursor.at(")"):
            cursor.fail("only one column, functions and powers can stand in brackets; write ')'")
        cursor.advance()
    return value
