# SPDX-License-Identifier: Apache-2.0
"""Text and schema to a Design: the way in to the model language."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reticent_server.domain.design import (
    Apply,
    Coded,
    ColumnValue,
    Design,
    EventTime,
    Expression,
    Filled,
    Indicator,
    Missing,
    PersonMean,
    Predicate,
)
from reticent_server.domain.facts import Profile
from reticent_server.domain.schema import ABSENT, Schema
from reticent_server.errors import InvalidFormula, UnknownColumn
from reticent_server.formula.coding import (
    baselines,
    code_terms,
    columns_by_term,
    is_dummy,
    make_term,
)
from reticent_server.formula.factor import Factor
from reticent_server.formula.labels import label, quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.model import Model, ModelParser
from reticent_server.formula.predicate import PredicateParser
from reticent_server.formula.tokens import Cursor

_DEFAULT = Limits()


def parse_formula(
    text: str,
    schema: Schema,
    where: str | None = None,
    *,
    limits: Limits = _DEFAULT,
    person_means: bool = False,
    levels: bool = False,
    profile: Profile | None = None,
) -> Design:
    """The design of `text`, such as "log(y) ~ x1 + C(g) + x1:x2", on the records with `where`.

    Term bounds are in the units of the data, by interval arithmetic on the declared bounds.
    person_means: whether a kind can have means of a person as terms (formula.panel), where there
    are persons. levels: whether the response is a column of levels, of which the design has the
    codes. profile: the released one, of which lump(…, n=) takes levels and center() and scale()
    their numbers. Raises InvalidFormula, whose text holds constant words, declared names and
    positions only.
    """
    cursor = Cursor(text, schema, "formula", limits, profile)
    means = person_means and schema.unit.several_rows
    model = ModelParser(cursor, person_means=means, levels=levels).parse()
    _check(model)
    response = make_term(
        _response_name(model.response, schema),
        (model.response,),
        cursor.columns,
        dummy=is_dummy(model.response, cursor.columns),
    )
    terms = code_terms(model, cursor.columns, limits)
    predicate, filtering = _where(where, schema, limits)
    # From the formula, not from the coded terms: a factor with one level has none.
    read = [
        column_of(model.response),
        *(_column(f) for factors in model.terms for f in factors),
        *filtering,
    ]
    design = Design(response, terms, model.intercept, predicate, *_columns(read, schema))
    return replace(design, baselines=baselines(model))


def parse_variables(
    texts: Sequence[str],
    schema: Schema,
    where: str | None = None,
    *,
    limits: Limits = _DEFAULT,
    person_means: bool = False,
    profile: Profile | None = None,
) -> tuple[Design, dict[str, tuple[str, ...]]]:
    """The design of texts such as "log(y)", "C(g)", "x1:x2", with an intercept and no response; and
    the names of the columns of each text. Raises InvalidFormula as parse_formula; a term that two
    texts share counts once. person_means: as of parse_formula.
    """
    means = person_means and schema.unit.several_rows
    named = {text: _terms_of(text, schema, limits, profile, person_means=means) for text in texts}
    distinct: dict[frozenset[str], tuple[Factor, ...]] = {}
    for factors in (f for terms in named.values() for f in terms):
        distinct.setdefault(_key(factors), factors)
    ordered = sorted(distinct.values(), key=len)
    columns = {c.name: c for c in schema.columns}
    groups = columns_by_term(ordered, columns, limits, intercept=True)
    names = {
        _key(factors): tuple(term.name for term in group)
        for factors, group in zip(ordered, groups, strict=True)
    }
    predicate, filtering = _where(where, schema, limits)
    read = [*(_column(f) for factors in ordered for f in factors), *filtering]
    terms = tuple(term for group in groups for term in group)
    design = Design(None, terms, True, predicate, *_columns(read, schema))
    own = {text: tuple(n for f in found for n in names[_key(f)]) for text, found in named.items()}
    return design, own


def _response_name(response: Expression, schema: Schema) -> str:
    """Its spelling; of a categorical column of two levels the one that counts as 1."""
    if isinstance(response, Indicator):
        (column,) = (c for c in schema.columns if c.name == response.column)
        return f"{quote(column.name)}[{column.levels[int(response.code)]}]"
    return label(response)


def _terms_of(
    text: str, schema: Schema, limits: Limits, profile: Profile | None, *, person_means: bool
) -> list[tuple[Factor, ...]]:
    cursor = Cursor(text, schema, "variable", limits, profile)
    return ModelParser(cursor, person_means=person_means).parse_terms()


def _key(factors: tuple[Factor, ...]) -> frozenset[str]:
    return frozenset(f.key for f in factors)


def parse_predicate(text: str, schema: Schema, *, limits: Limits = _DEFAULT) -> Predicate:
    """The predicate of `text`, such as `grade >= 7 and g in ("a", "b")`; raises InvalidFormula."""
    return PredicateParser(Cursor(text, schema, "where condition", limits)).parse()


def mask_design(
    columns: Sequence[str], schema: Schema, where: str | None = None, *, limits: Limits = _DEFAULT
) -> Design:
    """A design without response and terms: what is read, and which records are in use.

    Raises InvalidQuery for a column that is not declared, InvalidFormula for a bad `where`.
    """
    for name in columns:
        if schema.column(name) is None:
            raise UnknownColumn(name)
    predicate, filtering = _where(where, schema, limits)
    return Design(None, (), False, predicate, *_columns([*columns, *filtering], schema))


def column_of(expression: Expression) -> str:
    """The one column that an expression reads."""
    match expression:
        case ColumnValue(column) | Indicator(column, _) | Filled(column, _) | Missing(column, _):
            return column
        case Coded(column):
            return column
        case Apply(_, argument, _) | PersonMean(_, argument):
            return column_of(argument)
        case EventTime(time):
            return time


def _column(factor: Factor) -> str:
    return factor.column if factor.expression is None else column_of(factor.expression)


def _check(model: Model) -> None:
    if not model.terms and not model.intercept:
        raise InvalidFormula("The formula has no terms: name at least one after '~'.")
    response = column_of(model.response)
    if any(_column(f) == response for factors in model.terms for f in factors):
        raise InvalidFormula(
            f"The response's column {quote(response)} is also among the terms: leave it out there."
        )


def _where(where: str | None, schema: Schema, limits: Limits) -> tuple[Predicate | None, list[str]]:
    if where is None:
        return None, []
    parser = PredicateParser(Cursor(where, schema, "where condition", limits))
    return parser.parse(), parser.columns


def _columns(read: Iterable[str], schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns = tuple(dict.fromkeys(read))
    absent = (ABSENT,) if schema.unit.many_rows else ()
    return columns, (*absent, *_missing(columns, schema))


def _missing(columns: Iterable[str], schema: Schema) -> Iterator[str]:
    return (c.name for name in columns if (c := schema.column(name)) and c.may_be_missing)
