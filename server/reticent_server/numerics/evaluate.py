# SPDX-License-Identifier: Apache-2.0
"""Computes terms and predicates on a block: each a function of one record and public values.

Everything is elementwise, so a record's value does not depend on the block that it came in.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import (
    AllOf,
    AnyOf,
    Apply,
    Coded,
    ColumnValue,
    ColumnWeight,
    Compare,
    Design,
    EventTime,
    Expression,
    Filled,
    Indicator,
    Missing,
    Not,
    PersonMean,
    Predicate,
    RecordWeight,
    Term,
    TriangleWeight,
)
from reticent_server.domain.schema import ABSENT
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.bases import bspline, legendre
from reticent_server.numerics.calendar import months, years

COMPARISONS = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""What each sign of a condition compares by."""
_FUNCTIONS = {
    "log": np.log,
    "log1p": np.log1p,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "square": np.square,
}


_PARTS = {"year": years, "month": months}


def apply_function(  # noqa: PLR0911 - one for each sort of function
    name: str, values: FloatArray, parameter: float = 1.0, basis: tuple[float, ...] = ()
) -> FloatArray:
    """A named function of values; results that are not finite stay so (no warning)."""
    with np.errstate(all="ignore"):
        if name == "legendre":
            return legendre(values, int(parameter), *basis[:2])
        if name == "bspline":
            return bspline(values, int(parameter), basis)
        if name == "step":
            return np.asarray(values >= parameter, dtype=np.float64)
        if name == "hinge":
            return np.asarray(np.maximum(values - parameter, 0.0), dtype=np.float64)
        if name in {"shift", "days_since"}:
            return np.asarray(values - parameter, dtype=np.float64)
        if name == "divide":
            return np.asarray(values / parameter, dtype=np.float64)
        if name in _PARTS:
            return _PARTS[name](values)
        if name == "power":
            return np.asarray(np.power(values, parameter), dtype=np.float64)
        return np.asarray(_FUNCTIONS[name](values), dtype=np.float64)


def evaluate(  # noqa: PLR0911 - one for each sort of expression
    expression: Expression, block: Block
) -> FloatArray:
    """(rows,) values of an expression; a view of the block's own array for a plain column."""
    match expression:
        case ColumnValue(column) | PersonMean(column):
            values: FloatArray = block.columns[column]
            return values
        case Indicator(column, code):
            return np.asarray(block.columns[column] == code, dtype=np.float64)
        case Coded(column, codes, numbers, function):
            cells = block.columns[column]
            cells = cells if function is None else apply_function(function, cells)
            return _coded(cells, np.asarray(codes), np.asarray(numbers))
        case Filled(column, value):
            return np.where(block.missing[column], value, block.columns[column])
        case Missing(column, present):
            return np.asarray(block.missing[column] != present, dtype=np.float64)
        case Apply(function, argument, parameter, basis):
            return apply_function(function, evaluate(argument, block), parameter, basis)
        case EventTime():
            return _event_time(expression, block)


def _coded(cells: FloatArray, codes: FloatArray, numbers: FloatArray) -> FloatArray:
    """The number at each cell's code; 0 where it has none, so that no cell whatever gives another
    number.
    """
    place = np.minimum(np.searchsorted(codes, cells), len(codes) - 1)
    return np.where(codes[place] == cells, numbers[place], 0.0)


def _event_time(event: EventTime, block: Block) -> FloatArray:
    passed = block.columns[event.time]
    happens = np.ones(block.rows, dtype=np.bool_)
    if event.since is not None:
        start = block.columns[event.since]
        passed, happens = passed - start, start != (np.nan if event.never is None else event.never)
    for mask in (block.missing.get(event.time), block.missing.get(event.since or event.time)):
        if mask is not None:
            happens &= ~mask
    return np.asarray(happens & (passed >= event.low) & (passed <= event.high), dtype=np.float64)


def evaluate_term(term: Term, block: Block) -> FloatArray:
    """(rows,) values of a term; do not write into the result (it may be the block's own array)."""
    values = evaluate(term.factors[0], block)
    for factor in term.factors[1:]:
        values = values * evaluate(factor, block)
    return values


def evaluate_terms(terms: Sequence[Term], block: Block) -> list[FloatArray]:
    """The values (rows,) of each term, as of evaluate_term; a factor of several terms, such as one
    of a product of polynomials, is computed once and held meanwhile.
    """
    factors = {factor for term in terms for factor in term.factors}
    values = {factor: evaluate(factor, block) for factor in factors}
    return [reduce(np.multiply, (values[factor] for factor in term.factors)) for term in terms]


def holds(predicate: Predicate, block: Block) -> NDArray[np.bool_]:
    """(rows,) truth of a predicate."""
    match predicate:
        case Compare(column, op, value):
            return np.asarray(COMPARISONS[op](block.columns[column], value), dtype=np.bool_)
        case Not(argument):
            return ~holds(argument, block)
        case AllOf(arguments):
            return reduce(np.logical_and, (holds(a, block) for a in arguments))
        case AnyOf(arguments):
            return reduce(np.logical_or, (holds(a, block) for a in arguments))


def in_use(design: Design, block: Block) -> NDArray[np.bool_]:
    """(rows,) mask of the records in use: `where` holds and no used column is missing.

    A block without the mask ABSENT has a row in every place.
    """
    mask = np.ones(block.rows, dtype=np.bool_)
    for column in design.missing_columns:
        if column != ABSENT or ABSENT in block.missing:
            mask &= ~block.missing[column]
    if design.where is not None:
        mask &= holds(design.where, block)
    return mask


def shares(weight: RecordWeight, block: Block) -> FloatArray:
    """(rows,) what share of each record counts, in [0, 1] whatever the cell; 0 where it is no
    number.
    """
    match weight:
        case ColumnWeight(column, largest):
            share = block.columns[column] * (1 / largest)
        case TriangleWeight(column, centre, width, _):
            share = 1 - np.abs(block.columns[column] - centre) * (1 / width)
    return np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
