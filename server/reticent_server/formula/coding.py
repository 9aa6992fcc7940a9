# SPDX-License-Identifier: Apache-2.0
"""Codes terms as design columns: treatment contrasts, full dummies where nothing spans them yet.

A term with categorical factors A and numeric factors N spans, multiplied by N, the contrasts of
every subset of A. Subsets that earlier terms span are left out; of the others, S and S ∪ {f}
together are the full dummy coding of f. So no column is redundant, and a formula without intercept
gets full dummies for its first factor (the rule of patsy's and R's model matrices).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product

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
    Term,
)
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidFormula
from reticent_server.formula.factor import Factor
from reticent_server.formula.intervals import interval
from reticent_server.formula.intervals import product as interval_product
from reticent_server.formula.labels import quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.model import Model

# A coding of categorical factors: (key, whether in full).
_Coding = frozenset[tuple[str, bool]]
_Subset = frozenset[str]


def code_terms(model: Model, columns: Mapping[str, Column], limits: Limits) -> tuple[Term, ...]:
    """The design's columns in order; raises InvalidFormula above the limit or where undefined."""
    groups = columns_by_term(model.terms, columns, limits, intercept=model.intercept)
    return tuple(term for group in groups for term in group)


def baselines(model: Model) -> tuple[tuple[str, str], ...]:
    """(column, level without a column) of each factor, in the order of the terms; of a date's
    months the column is month(d).
    """
    factors = (f for factors in model.terms for f in factors if f.levels)
    found = {
        (f"{f.function}({f.column})" if f.function else f.column): f.contrast.baseline(f.levels)
        for f in factors
    }
    return tuple((column, level.text) for column, level in found.items())


def columns_by_term(
    terms: Iterable[tuple[Factor, ...]],
    columns: Mapping[str, Column],
    limits: Limits,
    *,
    intercept: bool,
) -> list[tuple[Term, ...]]:
    """The columns of each of a model's terms, in order; raises as code_terms."""
    spanned: dict[_Subset, set[_Subset]] = {}
    if intercept:
        spanned[frozenset()] = {frozenset()}
    terms = list(terms)
    _refuse_two_groupings(terms)
    groups: list[tuple[Term, ...]] = []
    total = int(intercept)
    for factors in terms:
        coded: list[Term] = []
        for coding in _codings(factors, spanned):
            room = limits.max_columns - total - len(coded)
            if _width(factors, coding) > room:
                raise InvalidFormula(
                    f"The formula gives more than {limits.max_columns} design columns: leave out "
                    "terms, or use factors with fewer levels."
                )
            coded.extend(_columns(factors, coding, columns))
        groups.append(tuple(coded))
        total += len(coded)
    return groups


def _refuse_two_groupings(terms: Iterable[tuple[Factor, ...]]) -> None:
    """A factor and a coarser grouping of it span the same columns twice."""
    keys: dict[tuple[str, str | None], str] = {}
    for factor in (f for factors in terms for f in factors if f.levels):
        if keys.setdefault((factor.column, factor.function), factor.key) != factor.key:
            raise InvalidFormula(
                f"The levels of {quote(factor.column)} stand in two groupings in this formula: "
                "use one of them in "
                "every term."
            )


def make_term(
    name: str,
    factors: tuple[Expression, ...],
    columns: Mapping[str, Column],
    *,
    dummy: bool = False,
) -> Term:
    """A term with its bounds by interval arithmetic."""
    bounds = interval(factors[0], columns)
    for factor in factors[1:]:
        bounds = interval_product(bounds, interval(factor, columns), name)
    return Term(name, factors, *bounds, dummy=dummy)


def is_dummy(expression: Expression, columns: Mapping[str, Column]) -> bool:
    """Whether an expression takes the values 0 and 1 only."""
    match expression:
        case Indicator() | Missing() | EventTime():
            return True
        case ColumnValue(column) | Filled(column, _):
            return columns[column].is_dummy
        case Coded(_, _, values):
            return set(values) <= {0.0, 1.0}
        case Apply() | PersonMean():
            return False


def _codings(
    factors: tuple[Factor, ...], spanned: dict[_Subset, set[_Subset]]
) -> Iterator[Mapping[str, bool]]:
    categorical = [f.key for f in factors if f.levels]
    done = spanned.setdefault(frozenset(f.key for f in factors if not f.levels), set())
    new = [s for s in _subsets(categorical) if s not in done]
    done.update(new)
    for coding in _merge(frozenset((key, False) for key in subset) for subset in new):
        yield dict(coding)


def _subsets(keys: list[str]) -> Iterator[_Subset]:
    for size in range(len(keys) + 1):
        yield from map(frozenset, combinations(keys, size))


def _merge(codings: Iterable[_Coding]) -> list[_Coding]:
    """Joins codings that differ by one contrast into one with that factor in full, while it can."""
    left = list(codings)
    while pair := _mergeable(left):
        small, large, factor = pair
        left[left.index(large)] = small | {(factor, True)}
        left.remove(small)
        left.sort(key=len)
    return left


def _mergeable(codings: list[_Coding]) -> tuple[_Coding, _Coding, str] | None:
    for small, large in combinations(codings, 2):
        extra = large - small
        if len(extra) == 1 and len(large) == len(small) + 1:
            ((factor, full),) = extra
            if not full:
                return small, large, factor
    return None


def _width(factors: tuple[Factor, ...], coding: Mapping[str, bool]) -> int:
    levels = math.prod(len(f.levels) - (not coding[f.key]) for f in factors if f.key in coding)
    return levels * math.prod(len(f.basis) for f in factors if f.basis)


def _columns(
    factors: tuple[Factor, ...], coding: Mapping[str, bool], columns: Mapping[str, Column]
) -> Iterator[Term]:
    """One term for each combination of levels, those of the first factor running fastest."""
    used = [f for f in factors if not f.levels or f.key in coding]
    choices = [_choices(f, full=coding.get(f.key, True)) for f in used]
    for reverse in product(*reversed(choices)):
        names, expressions = zip(*reversed(reverse), strict=True)
        dummy = all(is_dummy(e, columns) for e in expressions)
        yield make_term(":".join(names), expressions, columns, dummy=dummy)


def _choices(factor: Factor, *, full: bool) -> list[tuple[str, Expression]]:
    if factor.basis:
        return list(factor.basis)
    if factor.expression is not None:
        return [(factor.label, factor.expression)]
    coded = factor.contrast.columns(factor.column, factor.levels, full=full)
    return [(f"{factor.label}[{text}]", _taken_of(factor, column)) for text, column in coded]


def _taken_of(factor: Factor, column: Expression) -> Expression:
    """A column of levels that are values of a function of the data's column."""
    if factor.function is None:
        return column
    if isinstance(column, Indicator):
        return Coded(column.column, (column.code,), (1.0,), factor.function)
    return replace(column, function=factor.function) if isinstance(column, Coded) else column
