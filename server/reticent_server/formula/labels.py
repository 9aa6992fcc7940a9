# SPDX-License-Identifier: Apache-2.0
"""How expressions are spelled: a term's name can be read again as a formula."""

import re

from reticent_server.domain.dates import date_text
from reticent_server.domain.design import (
    Apply,
    Coded,
    ColumnValue,
    EventTime,
    Expression,
    Filled,
    Indicator,
    Missing,
    PersonMean,
)

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
            if function in OWN_LABELS:
                return OWN_LABELS[function](expression, inner)
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
    """A number in a column's name: a whole one below 10¹⁵ without a decimal point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _shifted(expression: Apply, inner: str) -> str:
    return f"center({inner}, at={spelled(expression.parameter)})"


def _divided(expression: Apply, _inner: str) -> str:
    """Only what is shifted is divided: scale(x, at=…, by=…)."""
    argument = expression.argument
    centred = _inner_label(argument).removeprefix("center(").removesuffix(")")
    return f"scale({centred}, by={spelled(expression.parameter)})"


def _since(expression: Apply, inner: str) -> str:
    return f'days_since({inner}, "{date_text(expression.parameter)}")'


OWN_LABELS = {"shift": _shifted, "divide": _divided, "days_since": _since}
