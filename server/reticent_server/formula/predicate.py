# SPDX-License-Identifier: Apache-2.0
"""The language of `where`: comparisons of a column with a constant, and, or, not, in.

any := all {"or" all}      all := one {"and" one}      one := "not" one | "(" any ")" | test
test := column op constant | constant op column | column ["not"] "in" "(" constant {"," …} ")"
"""

from collections.abc import Callable
from datetime import date, datetime
from typing import get_args

from reticent_server.domain.design import (
    AllOf,
    AnyOf,
    Compare,
    ComparisonName,
    Not,
    Predicate,
)
from reticent_server.domain.schema import Column
from reticent_server.formula.labels import quote
from reticent_server.formula.tokens import Cursor

_OPERATORS: dict[str, ComparisonName] = {name: name for name in get_args(ComparisonName)}
_FLIPPED: dict[str, ComparisonName] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LEVELS_SHOWN = 20


class PredicateParser:
    """Reads a predicate from a cursor; one use. `columns`: those read, in order."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._comparisons = 0
        self.columns: list[str] = []

    def parse(self) -> Predicate:
        """The whole condition. Raises InvalidFormula, which says where and what
        to write instead."""
        predicate = self._any()
        self._cursor.expect_end("join comparisons with and, or and brackets")
        return predicate

    def part(self) -> Predicate:
        """The predicate that stands here, inside a longer text."""
        return self._any()

    def _any(self) -> Predicate:
        return self._joined("or", self._all, AnyOf)

    def _all(self) -> Predicate:
        return self._joined("and", self._one, AllOf)

    def _joined(
        self,
        word: str,
        parse: Callable[[], Predicate],
        join: Callable[[tuple[Predicate, ...]], Predicate],
    ) -> Predicate:
        arguments = [parse()]
        while self._cursor.at_word(word):
            self._cursor.advance()
            arguments.append(parse())
        return arguments[0] if len(arguments) == 1 else join(tuple(arguments))

    def _one(self) -> Predicate:
        cursor = self._cursor
        if cursor.at_word("not"):
            with cursor.nested():
                cursor.advance()
                return Not(self._one())
        if not cursor.at("("):
            return self._test()
        with cursor.nested():
            cursor.advance()
            inner = self._any()
            cursor.expect(")")
        return inner

    def _test(self) -> Predicate:
        cursor = self._cursor
        if cursor.token.kind != "name":
            return self._flipped()
        column = self._column()
        if cursor.at_word("not") or cursor.at_word("in"):
            return self._in(column)
        op = self._operator(column)
        return self._compare(column, op, self._constant(column, op))

    def _flipped(self) -> Predicate:
        """constant op column: the column comes first in what is made of it."""
        cursor, start = self._cursor, self._cursor.token
        number = 0.0
        if start.kind == "string":
            cursor.advance()
        else:
            number = cursor.number("compare a column with a number or with a level in quotes")
        op_token = cursor.token
        self._operator_text()
        column = self._column()
        op = _FLIPPED.get(op_token.text, _OPERATORS[op_token.text])
        if column.kind.has_levels:
            if not (column.kind.has_order or op in {"==", "!="}):
                cursor.fail(_equality_only(column), op_token)
            if start.kind != "string":
                cursor.fail(_use_levels(column), start)
            return self._compare(column, op, self._code(column, start.text))
        if start.kind == "string" and column.is_date:
            return self._compare(column, op, cursor.date_of(start))
        if start.kind == "string":
            cursor.fail(
                f"compare {quote(column.name)}, which is not categorical, with a number", start
            )
        if column.is_date:
            cursor.fail(_use_dates(column, op_token.text, start.text, before=True), start)
        return self._compare(column, op, number)

    def _in(self, column: Column) -> Predicate:
        cursor = self._cursor
        negated = cursor.at_word("not")
        if negated:
            cursor.advance()
        if not cursor.at_word("in"):
            cursor.fail('write `in ("a", "b")`')
        cursor.advance()
        cursor.expect("(")
        members = [self._member(column)]
        while cursor.at(","):
            cursor.advance()
            members.append(self._member(column))
        cursor.expect(")")
        return Not(AnyOf(tuple(members))) if negated else AnyOf(tuple(members))

    def _member(self, column: Column) -> Predicate:
        return self._compare(column, "==", self._constant(column))

    def _compare(self, column: Column, op: ComparisonName, value: float) -> Predicate:
        self._comparisons += 1
        most = self._cursor.limits.max_comparisons
        if self._comparisons > most:
            self._cursor.fail(f"use at most {most} comparisons")
        return Compare(column.name, op, value)

    def _column(self) -> Column:
        column = self._cursor.column()
        if column.name not in self.columns:
            self.columns.append(column.name)
        return column

    def _operator(self, column: Column) -> ComparisonName:
        start = self._cursor.token
        op = self._operator_text()
        if not (column.kind.has_order or op in {"==", "!="}):
            self._cursor.fail(_equality_only(column), start)
        return op

    def _operator_text(self) -> ComparisonName:
        token = self._cursor.token
        if token.kind != "operator" or token.text not in _OPERATORS:
            self._cursor.fail("write one of == != < <= > >= or in")
        self._cursor.advance()
        return _OPERATORS[token.text]

    def _constant(self, column: Column, op: str = "in") -> float:
        cursor, token = self._cursor, self._cursor.token
        if column.is_date:
            if token.kind != "string":
                cursor.fail(_use_dates(column, op, token.text))
            return cursor.date()
        if not column.kind.has_levels:
            return cursor.number(
                f"compare {quote(column.name)}, which is not categorical, with a number"
            )
        if token.kind != "string":
            cursor.fail(_use_levels(column))
        cursor.advance()
        return self._code(column, token.text)

    def _code(self, column: Column, level: str) -> float:
        if level not in column.levels:
            self._cursor.fail(_use_levels(column))
        return float(column.levels.index(level))


def _equality_only(column: Column) -> str:
    return f"{quote(column.name)} is categorical and has no order; use == != or in"


def _use_dates(column: Column, op: str, number: str, *, before: bool = False) -> str:
    """What to write for a number, which may be a year, or a date without its dashes."""
    spelt = (_as_date(number, form) for form in ("%Y", "%Y%m", "%Y%m%d"))
    day = next(filter(None, spelt), "2020-01-31")
    if op == "in":
        meant = f'{quote(column.name)} in ("{day}")'
    elif before:
        meant = f'"{day}" {op} {quote(column.name)}'
    else:
        meant = f'{quote(column.name)} {op} "{day}"'
    return f"compare {quote(column.name)} with a date in quotes, such as {meant}"


def _as_date(number: str, form: str) -> str:
    """The date that a number spells in this form; nothing where it spells none."""
    if len(number) != len(date(2000, 1, 1).strftime(form)) or not number.isdecimal():
        return ""
    try:
        return datetime.strptime(number, form).date().isoformat()  # noqa: DTZ007 - a date, no time
    except ValueError:
        return ""


def _use_levels(column: Column) -> str:
    shown = ", ".join(f'"{level}"' for level in column.levels[:_LEVELS_SHOWN])
    more = ", …" if len(column.levels) > _LEVELS_SHOWN else ""
    return f"use a declared level of {quote(column.name)} in quotes ({shown}{more})"
