# SPDX-License-Identifier: Apache-2.0
"""Bases of several columns: poly(value, order) and bs(value, knots=[k1, …], degree=3).

    basis   := "poly" "(" value "," order ")"
             | "bs" "(" value "," ("knots" "=" knots | "df" "=" df) ["," "degree" "=" degree] ")"
    knots   := "[" [number {"," number}] "]" | ["c"] "(" [number {"," number}] ")"

Both are made on the value's interval over the declared bounds, never on data: Legendre polynomials
of the orders 1..order, and B-splines with the interval's ends as boundary knots, the first left out
(they add up to 1, as in R's bs without intercept). Knots are public numbers of the formula. df
stands for df − degree knots at even quantiles of the released profile, without one at even places
between the bounds: functions of public numbers, which the term's name says.
"""

from itertools import pairwise
from math import floor, log10

import numpy as np

from reticent_server.domain.design import Apply, Expression, Term
from reticent_server.fitting.public.standardise import term_atoms
from reticent_server.formula.intervals import Interval, interval
from reticent_server.formula.labels import label, spelled
from reticent_server.formula.tokens import Cursor, Token
from reticent_server.formula.values import is_call, parse_value

DEGREE, LARGEST_DEGREE = 3, 5
# of a knot's place relative to the bounds' distance: rounding moves it by less than 1 % of that
_DIGITS = 3
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
    start, by_df = cursor.token, cursor.at_word("df")
    _word(cursor, "df" if by_df else "knots")
    most = cursor.limits.max_knots + LARGEST_DEGREE
    df, knots = (_whole(cursor, most, "df"), []) if by_df else (0, _knots(cursor, ends))
    degree = DEGREE
    if cursor.at(","):
        cursor.advance()
        _word(cursor, "degree")
        degree = _whole(cursor, LARGEST_DEGREE, "degree")
    if by_df:
        knots = _placed(cursor, value, ends, df - degree, start)
    lower, upper = ends
    basis = (*[lower] * (degree + 1), *knots, *[upper] * (degree + 1))
    functions = range(1, len(knots) + degree + 1)
    calls = [Apply("bspline", value, float(j), basis) for j in functions]
    shown = ", ".join(map(spelled, knots))
    return f"bs({label(value)}, knots=[{shown}], degree={degree})", calls


def _placed(
    cursor: Cursor, value: Expression, ends: Interval, count: int, start: Token
) -> list[float]:
    """Knots at even quantiles of the profile, or between the bounds; short to write."""
    most = cursor.limits.max_knots
    if not 0 <= count <= most:
        cursor.fail(f"use a df from the degree to {most} more than it", start)
    lower, upper = ends
    shares = np.arange(1, count + 1) / (count + 1)
    term = Term("", (value,), lower, upper)
    atoms = term_atoms(term, cursor.profile) if cursor.profile else None
    places = lower + (upper - lower) * shares if atoms is None else atoms.quantiles(shares.tolist())
    digits = _DIGITS - 1 - floor(log10(upper - lower))
    knots = [round(float(place), digits) + 0.0 for place in places]
    if any(low >= high for low, high in pairwise((lower, *knots, upper))):
        cursor.fail("the released quantiles tie: write knots=[…] in place of df=", start)
    return knots


def _knots(cursor: Cursor, ends: Interval) -> list[float]:
    if cursor.at_word("c"):
        cursor.advance()
    opening = "(" if cursor.at("(") else "["
    closing = {"(": ")", "[": "]"}[opening]
    cursor.expect(opening)
    start, knots = cursor.token, list[float]()
    while not cursor.at(closing):
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
