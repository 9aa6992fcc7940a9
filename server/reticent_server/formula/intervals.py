# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic: the range of a term over the declared bounds of its columns.

Every function here is monotone on each side of 0, so the ends (and 0, for even powers) decide; the
functions of a basis lie in [−1, 1] (Legendre) or [0, 1] (B-splines).
"""

import math
from collections.abc import Mapping

import numpy as np

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
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidFormula
from reticent_server.formula.labels import label
from reticent_server.numerics.evaluate import apply_function

Interval = tuple[float, float]

_BASIS_RANGES = {"legendre": (-1.0, 1.0), "bspline": (0.0, 1.0)}
_NEEDS = {
    "log": "values above 0; log1p accepts 0",
    "log10": "values above 0; log1p accepts 0",
    "log1p": "values above -1",
    "sqrt": "values of at least 0",
    "exp": "smaller values (the result is too large for a double)",
    "square": "smaller values (the result is too large for a double)",
    "power": "smaller values (the result is too large for a double)",
    "shift": "smaller values (the result is too large for a double)",
    "divide": "smaller values, or a larger scale (the result is too large for a double)",
}


def interval(expression: Expression, columns: Mapping[str, Column]) -> Interval:
    """[lower, upper] of an expression; raises InvalidFormula where it is undefined."""
    match expression:
        case ColumnValue(column) | Filled(column, _):
            return float(columns[column].lower), float(columns[column].upper)
        case Indicator() | Missing() | EventTime():
            return 0.0, 1.0
        case Coded(_, _, values):
            # a cell that belongs to none of the codes counts 0
            return min(*values, 0.0), max(*values, 0.0)
        case PersonMean():
            return interval(expression.argument, columns)
        case Apply():
            return applied(expression, interval(expression.argument, columns))


def product(left: Interval, right: Interval, name: str) -> Interval:
    """The interval of a product; `name` is the term's, for the error."""
    corners = [a * b + 0.0 for a in left for b in right]
    if not all(map(math.isfinite, corners)):
        raise InvalidFormula(
            f"The term {name} is too large for a double on the declared bounds of its columns: "
            "take the logarithm of a factor, or leave the term out."
        )
    return min(corners), max(corners)


def applied(call: Apply, argument: Interval) -> Interval:
    """The interval of a function on one of its argument; raises InvalidFormula where it is
    undefined."""
    if call.basis:
        return _BASIS_RANGES[call.function]
    if call.function == "month":
        return _months(argument)
    if not _defined(call, argument):
        raise _undefined(call, argument)
    even = call.function == "square" or (call.function == "power" and call.parameter % 2 == 0)
    inside = (0.0,) if even and argument[0] < 0 < argument[1] else ()
    ends = np.array([*argument, *inside])
    values = apply_function(call.function, ends, call.parameter)
    if not np.all(np.isfinite(values)):
        raise _undefined(call, argument)
    return float(values.min()) + 0.0, float(values.max()) + 0.0


def _months(days: Interval) -> Interval:
    """All of them, unless both ends are in one year, where months increase."""
    first, last = apply_function("year", np.array(days))
    if first < last:
        return 1.0, 12.0
    low, high = apply_function("month", np.array(days))
    return float(low), float(high)


def _defined(call: Apply, argument: Interval) -> bool:
    lower, upper = argument
    if call.function != "power":
        return True
    if call.parameter < 0 and lower <= 0 <= upper:
        return False
    return call.parameter.is_integer() or lower >= 0


def _undefined(call: Apply, argument: Interval) -> InvalidFormula:
    lower, upper = argument
    needs = _NEEDS[call.function]
    if not _defined(call, argument):
        needs = "values above 0, or a whole positive exponent"
    return InvalidFormula(
        f"The term {label(call)} is not defined on the declared bounds: {label(call.argument)} "
        f"lies in [{lower:g}, {upper:g}], and {call.function} needs {needs}. Use another function, "
        "or ask the curator for bounds on which it is defined."
    )
