# SPDX-License-Identifier: Apache-2.0
"""Columns that are no terms of a model: weights, and offsets of its predictor."""

from dataclasses import replace

from reticent_server.domain.design import (
    Apply,
    ColumnValue,
    ColumnWeight,
    Design,
    Expression,
    RecordWeight,
    TriangleWeight,
)
from reticent_server.domain.schema import Column, Schema
from reticent_server.errors import InvalidQuery

_PERSONS = (
    "Weights and offsets are proved for tables whose protected unit has exactly one row; here it "
    "may have none, or more."
)


def weighted_design(design: Design, schema: Schema, name: str | None) -> Design:
    """The design with each record's scores multiplied by weight/upper bound; itself without a name.

    Raises InvalidQuery for a column that cannot be a weight, and for tables of persons.
    """
    if name is None:
        return design
    column = _numeric(schema, name, "weights")
    if column.lower < 0 or column.upper <= 0:
        raise InvalidQuery(
            "The column of weights needs declared bounds of at least 0, and an upper one above 0."
        )
    return replace(reading(design, column), weight=ColumnWeight(name, column.upper))


def offset_design(
    design: Design, schema: Schema, offset: str | None, exposure: str | None
) -> Design:
    """The design with the column `offset`, or the logarithm of the column `exposure`, in its
    predictor.

    Raises InvalidQuery for both at once, for a column that cannot be one, and for tables of
    persons.
    """
    if offset is not None and exposure is not None:
        raise InvalidQuery(
            "Give offset or exposure, not both: an exposure is the offset log(column)."
        )
    name = offset if exposure is None else exposure
    if name is None:
        return design
    column = _numeric(schema, name, "offset" if exposure is None else "exposure")
    if exposure is not None and column.lower <= 0:
        raise InvalidQuery("The exposure's declared lower bound must be above 0.")
    value = ColumnValue(name)
    part: Expression = value if exposure is None else Apply("log", value)
    return replace(reading(design, column), offset=part)


def _numeric(schema: Schema, name: str, field: str) -> Column:
    if schema.unit.many_rows:
        raise InvalidQuery(_PERSONS)
    column = schema.column(name)
    if column is None or not column.kind.has_mean:
        raise InvalidQuery(f"The field {field} names a numeric column of the data set.")
    return column


def reading(design: Design, column: Column) -> Design:
    """The design that reads the column as well; a record without it is out of use."""
    missing = (column.name,) if column.may_be_missing else ()
    return replace(
        design,
        columns=tuple(dict.fromkeys((*design.columns, column.name))),
        missing_columns=tuple(dict.fromkeys((*design.missing_columns, *missing))),
    )


def special(design: Design) -> str:
    """What weight and offset add to an estimand, in words."""
    return _weight_words(design.weight) + ("" if design.offset is None else _OFFSET)


_OFFSET = "; with an offset in the predictor"


def _weight_words(weight: RecordWeight | None) -> str:
    match weight:
        case None:
            return ""
        case ColumnWeight(column, _):
            return f"; scores multiplied by {column}"
        case TriangleWeight(column, centre, width, _):
            return f"; scores multiplied by max(0, 1 - |{column} - {centre:g}|/{width:g})"
