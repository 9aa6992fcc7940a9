# SPDX-License-Identifier: Apache-2.0
"""Features of a person: `count()`, `any(smoke)`, `last(bmi, by=date)`, `mean(log(x), where=ward ==
"er")`.

    feature  := function "(" [subject] {"," option} ")"
    function := "count" | "any" | "all" | "share" | "first" | "last" | "min" | "max" | "mean"
              | "sum"
    subject  := condition of a row | a boolean column     of any, all, share
              | value of a row                            of min, max, mean, sum, first, last
              | a categorical column                      of first and last
              | name of a table                           of count, where several tables are linked
    option   := "by" "=" column | "where" "=" condition | "none" "=" constant

Values are those of a formula's terms, conditions those of `where`. The column of a view has bounds
by interval arithmetic on the declared bounds and the largest number of rows of a person, m: count
lies in [0, m], a sum of values in [l, u] in [min(0, ml), max(0, mu)], everything else where its
values do. A person without a row in use counts 0, sums to 0 and has had nothing (`any`); the other
functions are missing there, or `none`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.design import ColumnValue, Compare, Expression, Predicate
from reticent_server.domain.persons import Feature, FeatureFunction, PersonView
from reticent_server.domain.schema import LEAST_WIDTH, MAX_INTEGER, MAX_NUMBER, Column, Schema, Unit
from reticent_server.errors import InvalidQuery
from reticent_server.formula.intervals import Interval, interval
from reticent_server.formula.labels import quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.parse import column_of
from reticent_server.formula.predicate import PredicateParser
from reticent_server.formula.tokens import Cursor, Token
from reticent_server.formula.values import parse_value

FUNCTIONS: dict[str, FeatureFunction] = {name: name for name in get_args(FeatureFunction)}

_DEFAULT = Limits()
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_OPTIONS = ("by", "where", "none")
_CONDITIONS = ("any", "all", "share")
_ORDERED = ("first", "last")
_EXTREMES = ("min", "max")
_NOTHING = {"count": 0.0, "sum": 0.0, "any": 0.0}
"""What a person without a row in use has where `none` does not say otherwise."""
_NO_ROW = ("",)
"""The marker of a cell that is missing because no row is in use."""

_ONE_ROW = (
    "Features of persons need a data set whose unit is a column, such as "
    "`unit: {column: person_id, max_rows: 20}`; here each row is protected by itself."
)
_BAD_NAME = (
    "The name of a feature is a letter or _ followed by up to 63 letters, digits, _ or ., and is "
    "given once."
)


def parse_view(
    features: Mapping[str, str], schema: Schema, *, limits: Limits = _DEFAULT
) -> PersonView:
    """The view with the schema's declared features and these. Raises InvalidQuery, InvalidFormula.

    Its unit is the same column, of one row.
    """
    if schema.unit.column is None:
        raise InvalidQuery(_ONE_ROW)
    declared = dict(schema.features)
    if declared.keys() & features.keys() or not all(map(_NAME.fullmatch, features)):
        raise InvalidQuery(_BAD_NAME)
    texts = declared | dict(features)
    if not 0 < len(texts) <= limits.max_features:
        raise InvalidQuery(f"Give 1 to {limits.max_features} features of a person.")
    made = tuple(
        _Reader(name, Cursor(text, schema, f"text of feature {place}", limits), schema).feature()
        for place, (name, text) in enumerate(texts.items(), start=1)
    )
    columns, unit = tuple(f.column for f in made), Unit(schema.unit.column, 1)
    return PersonView(made, Schema(columns, unit, schema.description, tuple(texts.items())))


@dataclass(frozen=True, slots=True)
class _Options:
    by: str | None
    where: Predicate | None
    none: float | None


class _Reader:
    """Reads one feature from a cursor."""

    def __init__(self, name: str, cursor: Cursor, schema: Schema) -> None:
        self._name = name
        self._cursor = cursor
        self._schema = schema
        self._reads: dict[str, Column] = {}
        self._table: str | None = None

    def feature(self) -> Feature:
        """The feature, to the end of the text."""
        cursor, start = self._cursor, self._cursor.token
        function = self._function()
        cursor.expect("(")
        condition, value = self._subject(function)
        shape = self._shape(function, value)
        options = self._options(function, shape)
        cursor.expect(")")
        cursor.expect_end("end the feature after the bracket")
        self._one_table(start)
        if function == "count":  # whose rows may be told by `where` alone
            shape = self._shape(function, None)
        none = _NOTHING.get(function) if options.none is None else options.none
        return Feature(
            column=self._column(shape, none, start),
            function=function,
            reads=tuple(self._reads),
            value=value,
            condition=condition,
            by=options.by,
            where=options.where,
            none=none,
            table=self._table,
        )

    def _function(self) -> FeatureFunction:
        token = self._cursor.token
        if token.kind != "name" or token.quoted or token.text not in FUNCTIONS:
            self._cursor.fail(f"write one of {', '.join(FUNCTIONS)} and a bracket", token)
        self._cursor.advance()
        return FUNCTIONS[token.text]

    def _subject(self, function: FeatureFunction) -> tuple[Predicate | None, Expression | None]:
        """(condition, value) of a row; of count neither."""
        if function == "count":
            self._counted_table()
            return None, None
        if function in _CONDITIONS:
            return self._condition(), None
        return None, self._value(function)

    def _counted_table(self) -> None:
        token = self._cursor.token
        names = [table.name for table in self._schema.tables]
        if token.kind == "name" and token.text in names:
            self._table = self._cursor.advance().text
        elif names and not self._cursor.at(")") and not self._cursor.at_word("where"):
            self._cursor.fail(f"count the rows of one of the tables {', '.join(names)}")

    def _condition(self) -> Predicate:
        """A condition, or a column of 0 and 1 alone."""
        cursor, following = self._cursor, self._cursor.following
        if cursor.token.kind == "name" and following.kind == "operator" and following.text in ",)":
            token = cursor.token
            column = self._read(cursor.column())
            if not column.is_dummy:
                cursor.fail(f"compare {quote(column.name)} with a constant", token)
            return Compare(column.name, "==", 1.0)
        return self._predicate()

    def _predicate(self) -> Predicate:
        parser = PredicateParser(self._cursor)
        found = parser.part()
        for name in parser.columns:
            self._read(self._cursor.columns[name])
        return found

    def _value(self, function: FeatureFunction) -> Expression:
        cursor = self._cursor
        column = cursor.columns.get(cursor.token.text) if cursor.token.kind == "name" else None
        if column is not None and column.levels and _keeps_levels(function, column):
            cursor.advance()
            self._read(column)
            return ColumnValue(column.name)
        value = parse_value(cursor)
        self._read(cursor.columns[column_of(value)])
        return value

    def _read(self, column: Column) -> Column:
        self._reads.setdefault(column.name, column)
        return column

    def _options(self, function: FeatureFunction, shape: Column) -> _Options:
        cursor, given = self._cursor, set[str]()
        by, where, none = None, None, None
        while not cursor.at(")"):
            if given or function != "count" or self._table is not None:
                cursor.expect(",")
            start, word = cursor.token, self._option(function, given)
            given.add(word)
            if word == "by":
                by = self._order(start)
            elif word == "where":
                where = self._predicate()
            else:
                none = self._constant(shape, start)
        if function in _ORDERED and by is None:
            cursor.fail("say what orders the rows, such as by=date")
        return _Options(by, where, none)

    def _option(self, function: FeatureFunction, given: set[str]) -> str:
        cursor, token = self._cursor, self._cursor.token
        allowed = [w for w in _OPTIONS if w != "by" or function in _ORDERED]
        allowed = [w for w in allowed if w not in given and (w != "none" or function != "count")]
        if token.kind != "name" or token.quoted or token.text not in allowed:
            cursor.fail(f"write one of {', '.join(f'{w}=' for w in allowed)} or ')'")
        cursor.advance()
        cursor.expect("=")
        return token.text

    def _order(self, start: Token) -> str:
        column = self._read(self._cursor.column())
        if not column.kind.has_order:
            self._cursor.fail(f"{quote(column.name)} is categorical and has no order", start)
        return column.name

    def _constant(self, shape: Column, start: Token) -> float:
        """What `none` says: a number, or the code of a level."""
        cursor = self._cursor
        if not shape.levels:
            return self._number(shape, start)
        token = cursor.advance()
        if token.kind != "string" or token.text not in shape.levels:
            cursor.fail("use a declared level in quotes for none", token)
        return float(shape.levels.index(token.text))

    def _number(self, shape: Column, start: Token) -> float:
        number = self._cursor.number("write a number for none")
        if shape.kind is ColumnKind.BOOLEAN and number not in (0.0, 1.0):
            self._cursor.fail("use 0 or 1 for none", start)
        if shape.kind is ColumnKind.INTEGER and not _whole(number):
            self._cursor.fail("use a whole number for none, which a double holds exactly", start)
        return number + 0.0

    def _one_table(self, start: Token) -> None:
        """Finds whose rows are read, where several tables are linked."""
        if not self._schema.tables:
            return
        named = {name.partition(".")[0] for name in self._reads}
        named |= {self._table} if self._table else set()
        if len(named) != 1:
            self._cursor.fail("a feature reads the rows of one table; name it", start)
        (self._table,) = named

    def _rows(self) -> int:
        """m, the largest number of rows of a person."""
        of = {table.name: table.max_rows for table in self._schema.tables}
        names = [self._table] if self._table else [n.partition(".")[0] for n in self._reads]
        return max((of[n] for n in names if n in of), default=self._schema.unit.max_rows)

    def _shape(self, function: FeatureFunction, value: Expression | None) -> Column:
        """The view's column, before `none` is known."""
        name, m = self._name, self._rows()
        if function == "count":
            return Column(name, ColumnKind.INTEGER, 0.0, float(m))
        if function in ("any", "all"):
            return Column(name, ColumnKind.BOOLEAN, 0.0, 1.0)
        if value is None:
            return Column(name, ColumnKind.NUMERIC, 0.0, 1.0)
        plain = self._reads[value.column] if isinstance(value, ColumnValue) else None
        ends = interval(value, self._cursor.columns)
        if function in ("mean", "sum"):
            return self._combined(function, plain, ends, m)
        if plain is not None:
            return Column(name, plain.kind, *ends, plain.levels)
        return Column(name, ColumnKind.NUMERIC, *ends)

    def _combined(
        self, function: FeatureFunction, plain: Column | None, ends: Interval, m: int
    ) -> Column:
        if function == "mean":
            return Column(self._name, ColumnKind.NUMERIC, *ends)
        lower, upper = min(0.0, m * ends[0]), max(0.0, m * ends[1])
        whole = plain is not None and plain.kind.is_whole
        exact = whole and _whole(lower) and _whole(upper)
        kind = ColumnKind.INTEGER if exact else ColumnKind.NUMERIC
        return Column(self._name, kind, lower, upper)

    def _column(self, shape: Column, none: float | None, start: Token) -> Column:
        """With `none` inside the bounds. Refuses bounds that a schema file could not declare."""
        lower, upper = shape.lower, shape.upper
        if none is not None:
            lower, upper = min(lower, none), max(upper, none)
        if not shape.levels and not _usable(lower, upper):
            self._cursor.fail(
                f"the feature's bounds {lower:g} and {upper:g} are too far apart, or coincide",
                start,
            )
        missing = _NO_ROW if none is None else ()
        return Column(shape.name, shape.kind, lower, upper, shape.levels, missing)


def _whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= MAX_INTEGER


def _usable(lower: float, upper: float) -> bool:
    return lower >= -MAX_NUMBER and upper <= MAX_NUMBER and upper - lower >= LEAST_WIDTH


def _keeps_levels(function: FeatureFunction, column: Column) -> bool:
    """Whether the feature of a column with levels is one of them: of an order of rows, or of the
    levels themselves."""
    return function in _ORDERED or (function in _EXTREMES and column.kind.has_order)
