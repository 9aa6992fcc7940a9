# SPDX-License-Identifier: Apache-2.0
"""Which values of a column a condition excludes, as its text says: public, whatever the data.

A value v of a column is excluded where the condition is false for every record that has v there,
whatever stands in its other columns. The condition is evaluated in three-valued logic (Kleene): a
comparison of that column is true or false at v, one of another column is unknown. What comes out as
false is excluded; so no value is that some record in use could have. Between two constants that a
column is compared with, the condition's truth does not depend on the value, so that one value of
each such interval is evaluated.
"""

from dataclasses import replace

import numpy as np

from reticent_server.domain.design import AllOf, AnyOf, Compare, Not, Predicate
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.formula.parse import parse_predicate
from reticent_server.numerics.evaluate import COMPARISONS


def restricted(facts: DatasetFacts, where: str | None) -> DatasetFacts:
    """The facts with the values that a condition excludes noted at each column of whole values
    (Column.excluded): levels, groups and factors of the question are those that are left. Raises
    InvalidFormula."""
    if where is None:
        return facts
    predicate = parse_predicate(where, facts.schema)
    columns = tuple(
        replace(column, excluded=excluded(predicate, column)) if column.kind.is_whole else column
        for column in facts.schema.columns
    )
    return replace(facts, schema=replace(facts.schema, columns=columns))


def excluded(predicate: Predicate, column: Column) -> tuple[tuple[float, float], ...]:
    """The values of a column of whole values that a condition excludes, as ranges from the first
    value to the last one, in order."""
    changes = (at for constant in _constants(predicate, column.name) for at in _near(constant))
    starts = sorted({column.lower, *(at for at in changes if column.lower <= at <= column.upper)})
    ends = [*(at - 1 for at in starts[1:]), column.upper]
    ranges: list[tuple[float, float]] = []
    for start, end in zip(starts, ends, strict=True):
        if _truth(predicate, column.name, start) is not False:
            continue
        joins = bool(ranges) and ranges[-1][1] == start - 1
        first = ranges.pop()[0] if joins else start
        ranges.append((first, end))
    return tuple(ranges)


def _near(constant: float) -> tuple[float, float]:
    """Where the truth may change about a constant: at the first whole value that is not below it,
    and at the first one above it."""
    return float(np.ceil(constant)), float(np.floor(constant) + 1)


def _constants(predicate: Predicate, column: str) -> list[float]:
    """What a column is compared with."""
    match predicate:
        case Compare(name, _, value):
            return [value] if name == column else []
        case Not(argument):
            return _constants(argument, column)
        case AllOf(arguments) | AnyOf(arguments):
            return [value for each in arguments for value in _constants(each, column)]


def _truth(predicate: Predicate, column: str, value: float) -> bool | None:
    """Whether a condition holds where a column has this value; None: as other columns have it."""
    match predicate:
        case Compare(name, op, constant):
            return bool(COMPARISONS[op](value, constant)) if name == column else None
        case Not(argument):
            inner = _truth(argument, column, value)
            return None if inner is None else not inner
        case AllOf(arguments):
            found = {_truth(each, column, value) for each in arguments}
            return False if False in found else (None if None in found else True)
        case AnyOf(arguments):
            found = {_truth(each, column, value) for each in arguments}
            return True if True in found else (None if None in found else False)
