# SPDX-License-Identifier: Apache-2.0
"""Designs whose columns are made of persons' rows: person effects, and means of a person as terms.

    effects="person"    y_it − ȳ_i = (x_it − x̄_i)ᵀβ + …: no intercept, and no term that is the
                        same in all rows of a person
    mean(x)             x̄_i, of the rows of person i that are in use (Mundlak's between term)
    exchangeable rows   (x_it − θ_i x̄_i)/√(1 − ρ), the intercept's (1 − θ_i)/√(1 − ρ)
                        (numerics.person_columns)

Bounds by interval arithmetic: of x in [l, u] a deviation from the mean of at most m values, itself
one of them, lies within ±(u − l)(m − 1)/m.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

import numpy as np

from reticent_server.domain.design import (
    Apply,
    Coded,
    ColumnValue,
    Design,
    EventTime,
    Expression,
    Indicator,
    MadeColumn,
    PersonColumns,
    PersonMean,
    Term,
)
from reticent_server.domain.schema import Schema
from reticent_server.errors import InvalidQuery
from reticent_server.numerics.person_columns import OUT, remainder

_ONE_ROW = (
    "Person effects need a data set with several rows a person, such as `unit: {column: "
    "person_id, max_rows: 8}`: "
    "with one row a person nothing is left of it without the person's mean."
)
_NO_INTERCEPT = "Leave 0 out of the formula: person effects take the place of the intercept."
_NO_TERMS = "Name a term besides the intercept: the person effects take the intercept's place."
_CONSTANT = (
    "A mean of a person is the same in all rows of the person, so person effects leave nothing "
    "of it: leave "
    "{name} out, or leave effects out."
)
_EXCHANGEABLE = (
    "A working correlation needs a data set with several rows a person, such as `unit: {column: "
    "person_id, max_rows: 8}`, and a formula with an intercept."
)
_LAGGED = (
    "The term {name} reads as an earlier value of the response {response}. With person effects "
    "its coefficient is "
    "biased by about -(1 + rho)/(T - 1) for T rows a person (Nickell 1981), however many persons "
    "there are: leave it out, or "
    "leave effects out."
)
_LAG_WORDS = r"(?:lag|lagged|prev|previous|l)[0-9]*"


def with_person_means(design: Design, schema: Schema) -> Design:
    """The design, ready to have its means of persons made; itself where it has none."""
    found = {e.name: e for term in design.terms for e in _means(term)}
    if not found:
        return design
    made = tuple(
        MadeColumn(name, Term(name, (e.argument,), 0.0, 0.0), "mean") for name, e in found.items()
    )
    others = [term for term in design.terms if not any(_means(term))]
    response = [] if design.response is None else [design.response]
    columns = PersonColumns(schema.unit.max_rows, 1, design, made, (*response, *others))
    return replace(design, where=None, missing_columns=(OUT,), persons=columns)


def person_effects(design: Design, schema: Schema) -> Design:
    """The design of deviations from a person's means. InvalidQuery where there are no persons, or
    nothing is left."""
    if not schema.unit.several_rows:
        raise InvalidQuery(_ONE_ROW)
    if not design.intercept:
        raise InvalidQuery(_NO_INTERCEPT)
    if not design.terms or design.response is None:
        raise InvalidQuery(_NO_TERMS)
    _refuse_constant(design)
    _refuse_lagged(design, design.response)
    m = schema.unit.max_rows
    terms = (design.response, *design.terms)
    made = tuple(MadeColumn(f"\x00{k}", term, "deviation") for k, term in enumerate(terms))
    response, *others = (_deviation(column, m) for column in made)
    return replace(
        design,
        response=response,
        terms=tuple(others),
        intercept=False,
        where=None,
        missing_columns=(OUT,),
        persons=PersonColumns(m, 2, design, made),
    )


def person_deviations(design: Design, schema: Schema) -> Design:
    """A design without response, of deviations from a person's means; its intercept counts the rows
    in use.

    InvalidQuery where there are no persons, or a term reads as an earlier value of another."""
    if not schema.unit.several_rows:
        raise InvalidQuery(_ONE_ROW)
    _refuse_constant(design)
    for term in design.terms:
        _refuse_lagged(design, term)
    m = schema.unit.max_rows
    made = tuple(MadeColumn(f"\x00{k}", term, "deviation") for k, term in enumerate(design.terms))
    return replace(
        design,
        terms=tuple(_deviation(column, m) for column in made),
        where=None,
        missing_columns=(OUT,),
        persons=PersonColumns(m, 2, design, made),
    )


def exchangeable(design: Design, schema: Schema, correlation: float) -> Design:
    """The design of generalised least squares with this correlation of any two of a person's rows.
    InvalidQuery where there are no persons, or the formula has no intercept."""
    if not schema.unit.several_rows or not design.intercept or design.response is None:
        raise InvalidQuery(_EXCHANGEABLE)
    m = schema.unit.max_rows
    terms = (design.response, *design.terms)
    made = tuple(MadeColumn(f"\x00{k}", term, "quasi") for k, term in enumerate(terms))
    response, *others = (_quasi(column, m, correlation) for column in made)
    first = MadeColumn("\x00one", design.response, "intercept")
    least, unit = _remainder(m, correlation), sqrt(1 - correlation)
    one = Term("Intercept", (ColumnValue(first.name),), least / unit, 1 / unit)
    return replace(
        design,
        response=response,
        terms=(one, *others),
        intercept=False,
        where=None,
        missing_columns=(OUT,),
        persons=PersonColumns(m, 1, design, (*made, first), correlation=correlation),
    )


def _remainder(m: int, correlation: float) -> float:
    return float(remainder(np.array(m, np.float64), correlation))


def _quasi(column: MadeColumn, m: int, correlation: float) -> Term:
    low, high = column.term.lower, column.term.upper
    theta, unit = 1 - _remainder(m, correlation), sqrt(1 - correlation)
    lower = (low - theta * max(high, 0.0)) / unit
    upper = (high - theta * min(low, 0.0)) / unit
    return Term(column.term.name, (ColumnValue(column.name),), lower, upper)


def _means(term: Term) -> Iterator[PersonMean]:
    return (e for e in term.factors if isinstance(e, PersonMean))


def _deviation(column: MadeColumn, m: int) -> Term:
    reach = (column.term.upper - column.term.lower) * (m - 1) / m
    return Term(column.term.name, (ColumnValue(column.name),), -reach, reach)


def _refuse_constant(design: Design) -> None:
    for term in design.terms:
        if all(isinstance(e, PersonMean) for e in term.factors):
            raise InvalidQuery(_CONSTANT.format(name=term.name))


def _refuse_lagged(design: Design, response: Term) -> None:
    """A term whose column has the name of a column of the response and a word for an earlier
    value."""
    for name in map(re.escape, _columns_of(response)):
        lagged = re.compile(
            rf"{_LAG_WORDS}[_.]{name}|{name}[_.]{_LAG_WORDS}(?:[_.]?[0-9]+)?", re.IGNORECASE
        )
        for term in design.terms:
            if any(lagged.fullmatch(column) for column in _columns_of(term)):
                raise InvalidQuery(_LAGGED.format(name=term.name, response=response.name))


def _columns_of(term: Term) -> set[str]:
    return {name for factor in term.factors for name in _read(factor)}


def _read(expression: Expression) -> Iterator[str]:
    match expression:
        case ColumnValue(column) | Indicator(column) | Coded(column):
            yield column
        case Apply(_, argument) | PersonMean(_, argument):
            yield from _read(argument)
        case EventTime(time, since):
            yield from (time,) if since is None else (time, since)
