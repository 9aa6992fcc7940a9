# SPDX-License-Identifier: Apache-2.0
"""A design in which missing cells leave no record out: filled with a public value, and said by an
indicator.

In every term a number's missing cell is a public value, and a factor's missing cell is none of its
levels (all of its dummies are 0). For each column so treated the design gets `missing(x)`, 1 where
the cell is missing. All of it is a function of one record and of public values, as the design was
before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reticent_server.domain.design import (
    AllOf,
    AnyOf,
    Apply,
    Coded,
    ColumnValue,
    Compare,
    Design,
    Expression,
    Filled,
    Indicator,
    Missing,
    Not,
    Predicate,
    Term,
)
from reticent_server.formula.labels import label
from reticent_server.formula.parse import column_of


def columns_of(terms: Iterable[Term]) -> tuple[str, ...]:
    """The columns that terms read, each once."""
    return tuple(dict.fromkeys(column_of(f) for term in terms for f in term.factors))


def filled(design: Design, values: Mapping[str, float], kept: Iterable[str]) -> Design:
    """The design with missing cells of its terms' columns filled; values: by column.

    kept: columns whose missing cells go on to leave the record out, beside those of `where` and of
    the response.
    """
    response = () if design.response is None else (design.response,)
    masks = {*kept, *_tested(design.where), *columns_of(response)}
    chosen = tuple(
        name
        for name in columns_of(design.terms)
        if name in design.missing_columns and name not in masks
    )
    terms = tuple(_filled(term, chosen, values) for term in design.terms)
    return replace(
        design,
        terms=(*terms, *map(missing_term, chosen)),
        missing_columns=tuple(name for name in design.missing_columns if name not in chosen),
        filled_columns=chosen,
    )


def missing_term(column: str) -> Term:
    """1 where the column's cell is missing."""
    cell = Missing(column)
    return Term(label(cell), (cell,), 0.0, 1.0, dummy=True)


def _filled(term: Term, chosen: tuple[str, ...], values: Mapping[str, float]) -> Term:
    factors = [f for factor in term.factors for f in _factors(factor, chosen, values)]
    lower = min(term.lower, 0.0) if len(factors) > len(term.factors) else term.lower
    upper = max(term.upper, 0.0) if len(factors) > len(term.factors) else term.upper
    return replace(term, factors=tuple(factors), lower=lower, upper=upper)


def _factors(
    factor: Expression, chosen: tuple[str, ...], values: Mapping[str, float]
) -> Iterator[Expression]:
    column = column_of(factor)
    if column not in chosen:
        yield factor
    elif isinstance(factor, Indicator | Coded):
        yield from (factor, Missing(column, present=True))
    else:
        yield _number(factor, values[column])


def _number(expression: Expression, value: float) -> Expression:
    match expression:
        case ColumnValue(column):
            return Filled(column, value)
        case Apply(argument=argument):
            return replace(expression, argument=_number(argument, value))
        case _:
            return expression


def _tested(predicate: Predicate | None) -> set[str]:
    """The columns of a condition."""
    match predicate:
        case None:
            return set()
        case Compare(column):
            return {column}
        case Not(argument):
            return _tested(argument)
        case AllOf(arguments) | AnyOf(arguments):
            return set().union(*map(_tested, arguments))
