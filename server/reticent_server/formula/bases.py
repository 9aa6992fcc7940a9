# SPDX-License-Identifier: Apache-2.0
"""Bases of several columns: poly(value, order) and bs(value, knots=[k1, …], degree=3).

    basis   := "poly" "(" value "," order ")"
             | "bs" "(" value "," "knots" "=" knots ["," "degree" "=" degree] ")"
    knots   := "[" [number {"," number}] "]"

Both are made on the value's interval over the declared bounds, never on data: Legendre polynomials
of the orders 1..order, and B-splines with the interval's ends as boundary knots, the first left out
(they add up to 1, as in R's bs without intercept). Knots are public numbers of the formula.
"""

from itertools import pairwise

from reticent_server.domain.design import Apply, Expression
from reticent_server.formula.intervals import Interval, interval
from reticent_server.formula.labels import label, spelled
from reticent_server.formula.tokens import Cursor, Token
from reticent_server.formula.values import is_call, parse_value

DEGREE, LARGEST_DEGREE = 3, 5
Functions = tuple[tuple[str, Expression], ...]


def is_basis(cursor: Cursor) -> bool:
    """Whether a basis starts here; a column of that name is meant where no bracket follows."""
    return (cursor.at_word("poly") or cursor.at_word("bs")) and is_call(cursor)


def parse_basis(cursor: Cursor) -> tuple[str, Functions]:
    """(name, its functions with theirs), such as poly(x, 2) with poly(x, 2)[1], poly(x, 2)[2]."""
    parse = _poly if cursor.advance().text == "poly" else _bs
    with cursor.nested():
        cursor.expect("(")
        value = parse_value(cursor)
        start = cursor.token
        cursor.expect(",")
        name, calls = parse(cursor, value, _interval(cursor, value, start))
        cursor.expect(")")
    return name, tuple((f"{name}[{k}]", call) for k, call in enumerate(calls, start=1))


def _poly(cursor: Cursor, value: Expression, ends: Interval) -> tuple[str, list[Apply]]:
    order = _whole(cursor, cursor.limits.max_order, "order")
    basis = (*ends, float(order))
    calls = [Apply("legendre", value, float(k), basis) for k in range(1, order + 1)]
    return f"poly({label(value)}, {order})", calls


def _bs(cursor: Cursor, value: Expression, ends: Interval) -> tuple[str, list[Apply]]:
    _word(cursor, "knots")
    knots, degree = _knots(cursor, ends), DEGREE
    if cursor.at(","):
        cursor.advance()
        _word(cursor, "degree")
        degree = _whole(cursor, LARGEST_DEGREE, "degree")
    lower, upper = ends
    basis = (*[lower] * (degree + 1), *knots, *[upper] * (degree + 1))
    functions = range(1, len(knots) + degree + 1)
    calls = [Apply("bspline", value, float(j), basis) for j in functions]
    shown = ", ".join(map(spelled, knots))
    return f"bs({label(value)}, knots=[{shown}], degree={degree})", calls


def _knots(cursor: Cursor, ends: Interval) -> list[float]:
    cursor.expect("[")
    start, knots = cursor.token, list[float]()
    while not cursor.at("]"):
        if knots:
            cursor.expect(",")
        knots.append(cursor.number("write the knots as numbers, such as knots=[1, 2.5]"))
        if len(knots) > cursor.limits.max_knots:
            cursor.fail(f"use at most {cursor.limits.max_knots} knots", start)
    cursor.advance()
    path = (ends[0], *knots, ends[1])
    if any(low >= high for low, high in pairwise(path)):
        cursor.fail(
            "write the knots in increasing order, each once, between the declared bounds "
            f"{ends[0]:g} and {ends[1]:g} of the value",
            start,
        )
    return knots


def _interval(cursor: Cursor, value: Expression, start: Token) -> Interval:
    lower, upper = interval(value, cursor.columns)
    if not 0 < upper - lower < float("inf"):
        cursor.fail(
            "use a value whose declared bounds differ, and by less than a double holds", start
        )
    return lower, upper


def _word(cursor: Cursor, word: str) -> None:
    if not cursor.at_word(word):
        cursor.fail(f"write {word}=")
    cursor.advance()
    cursor.expect("=")


def _whole(cursor: Cursor, most: int, name: str) -> int:
    start = cursor.token
    value = cursor.number(f"write the {name} as a whole number")
    if not (value.is_integer() and 1 <= value <= most):
        cursor.fail(f"use a whole {name} from 1 to {most}", start)
    return int(value)
