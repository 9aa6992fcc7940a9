# SPDX-License-Identifier: Apache-2.0
"""The model algebra: `y ~ terms` multiplied out into a list of terms.

    formula := value "~" sum                     sum     := [sign] item {sign item}
    item    := "0" | "1" | crossing      crossing := interaction {("*" | "/") interaction}
    interaction := factor {(":" | "%in%") factor}
    factor  := "(" sum ")" [("**" | "^") number] | category | basis | person | value
    category := C(column) | C(column, ref="level") | C(column, Sum) | merge(…) | lump(…)
                (formula.categories)
    person  := mean(value), of a person's rows that are in use
    basis   := poly(value, order) | bs(value, knots=[…] [, degree=…])

`0` and `1` stand at the top level only. The semantics are Wilkinson & Rogers' (1973), as in R:
a*b is a + b + a:b, a/b is a + a:b, (a+b)**2 has the products of up to two, a:a is a, a repeated
term counts once, and `-` takes a term out; `+ -1` is `- 1`.
"""

from dataclasses import dataclass
from itertools import product

from reticent_server.domain.design import ColumnValue, Expression, Indicator, PersonMean
from reticent_server.formula.bases import is_basis, parse_basis
from reticent_server.formula.categories import is_category, parse_category, plain_category
from reticent_server.formula.factor import Factor
from reticent_server.formula.labels import label
from reticent_server.formula.tokens import Cursor
from reticent_server.formula.values import is_call, parse_call, parse_value


@dataclass(frozen=True, slots=True)
class Model:
    """A formula multiplied out; terms by number of factors, then as written."""

    response: Expression
    terms: tuple[tuple[Factor, ...], ...]
    intercept: bool


# A set of terms in the order of writing: the factors' keys, and the factors in order.
_Terms = dict[frozenset[str], tuple[Factor, ...]]


class ModelParser:
    """Reads a formula from a cursor; one use. person_means: whether mean(...) of a person is a
    term. levels: whether the response may be a categorical column, whose value is then its level's
    code."""

    def __init__(self, cursor: Cursor, *, person_means: bool = False, levels: bool = False) -> None:
        self._cursor = cursor
        self._levels = levels
        self._person_means = person_means
        self._intercept = True
        self._expansion = 0

    def parse(self) -> Model:
        """The whole formula: response, terms by their order, and whether there is an intercept.
        Raises InvalidFormula, which says where and what to write instead."""
        response = self._response()
        terms = self._sum(top=True)
        self._cursor.expect_end("use + - * / : and brackets only, or leave the rest out")
        ordered = sorted(terms.values(), key=len)
        return Model(response, tuple(ordered), self._intercept)

    def parse_terms(self) -> list[tuple[Factor, ...]]:
        """The terms of a text without response and intercept, such as `C(g)`, `log(x)` or `x*g`."""
        terms = self._sum()
        self._cursor.expect_end("use + - * / : and brackets only, or leave the rest out")
        return list(terms.values())

    def _response(self) -> Expression:
        cursor, start = self._cursor, self._cursor.token
        if cursor.token.kind != "name":
            cursor.fail("write the response, a column or a function of a column, and '~'")
        if start.text == "C" and is_call(cursor):
            cursor.fail("the response must be numeric, not C(...); use a numeric or 0/1 column")
        response = self._of_levels() or parse_value(cursor)
        if cursor.at("+", "-", "*", ":"):
            cursor.fail("use a single response and write '~' after it")
        if not cursor.at("~"):
            cursor.fail("write '~' after the response (powers as I(x**2))")
        cursor.advance()
        return response

    def _of_levels(self) -> Expression | None:
        """A categorical column of two levels as a response: whether it is the second one; of
        several its code, where that is asked for."""
        column = self._cursor.columns.get(self._cursor.token.text)
        if column is None or len(column.levels) < 2 or is_call(self._cursor):
            return None
        values = column.values(3)
        if len(values) < 2:
            self._cursor.fail("where leaves one level of the response: it needs two")
        if not self._levels and len(values) != 2:
            return None
        self._cursor.advance()
        return ColumnValue(column.name) if self._levels else Indicator(column.name, values[1])

    def _sum(self, *, top: bool = False) -> _Terms:
        cursor, terms = self._cursor, _Terms()
        sign = cursor.advance().text if cursor.at("+", "-") else "+"
        while True:
            if top and cursor.token.kind == "number":
                self._set_intercept(sign)
            elif sign == "+":
                terms |= _without(self._crossing(), terms)
            else:
                terms = _without(terms, self._crossing())
            if not cursor.at("+", "-"):
                return terms
            self._check_number_of(terms)
            sign = cursor.advance().text
            if sign == "+" and cursor.at("-"):
                sign = cursor.advance().text

    def _set_intercept(self, sign: str) -> None:
        value = self._cursor.token.text
        if value not in {"0", "1"}:
            self._cursor.fail("the only numbers among the terms are 0 and 1; use a column")
        self._cursor.advance()
        if self._cursor.at("*", ":", "**"):
            self._cursor.fail("leave 0 and 1 alone: write + or - after it")
        self._intercept = (value == "1") == (sign == "+")

    def _crossing(self) -> _Terms:
        terms = self._interaction()
        while self._cursor.at("*", "/"):
            nested = self._cursor.advance().text == "/"
            right = self._interaction()
            both = self._multiply(self._product(terms) if nested else terms, right)
            if not nested:
                terms = terms | _without(right, terms)
            terms = terms | _without(both, terms)
            self._check_number_of(terms)
        return terms

    def _interaction(self) -> _Terms:
        terms = self._factor()
        while self._cursor.at(":", "%"):
            self._multiplied()
            terms = self._multiply(terms, self._factor())
            self._check_number_of(terms)
        return terms

    def _multiplied(self) -> None:
        """Reads ":" or "%in%", which say the same."""
        if self._cursor.advance().text == ":":
            return
        if not self._cursor.at_word("in"):
            self._cursor.fail("write %in%, or ':'")
        self._cursor.advance()
        self._cursor.expect("%")

    def _product(self, terms: _Terms) -> _Terms:
        """All factors of the terms, multiplied: what a right side is nested in."""
        first, *others = ({key: factors} for key, factors in terms.items())
        for other in others:
            first = self._multiply(first, other)
        return first

    def _power(self, terms: _Terms) -> _Terms:
        """The products of up to as many of the terms as the exponent says."""
        start, most = self._cursor.advance(), self._cursor.limits.max_factors
        exponent = self._cursor.number("write a whole number after the power")
        if not (exponent.is_integer() and 1 <= exponent <= most):
            self._cursor.fail(f"use a whole power from 1 to {most}", start)
        found = terms
        for _ in range(int(exponent) - 1):
            found = found | _without(self._multiply(found, terms), found)
            self._check_number_of(found)
        return found

    def _factor(self) -> _Terms:
        cursor, start = self._cursor, self._cursor.token
        if cursor.at("("):
            with cursor.nested():
                cursor.advance()
                terms = self._sum()
                cursor.expect(")")
            if cursor.at("**", "^"):
                terms = self._power(terms)
        else:
            factor = self._leaf()
            terms = {frozenset((factor.key,)): (factor,)}
        if cursor.at("**", "^"):
            cursor.fail("write a power as I(x**2), a crossing with '*' or ':'", start)
        return terms

    def _leaf(self) -> Factor:
        cursor = self._cursor
        if cursor.token.kind == "number":
            cursor.fail("write 0 and 1 as terms of their own, outside brackets, for the intercept")
        if cursor.at("."):
            cursor.fail("name the columns: '.' would spend on every one that is declared")
        if cursor.token.kind != "name":
            cursor.fail("write a column, a function of a column, or C(column)")
        if is_call(cursor):
            if cursor.at_word("offset"):
                cursor.fail(
                    'leave offset(...) out, and name its column in the field offset="t"; for '
                    'offset(log(t)) that is the field exposure="t"'
                )
            if is_category(cursor):
                return parse_category(cursor)
            if is_basis(cursor):
                name, functions = parse_basis(cursor)
                return Factor(name, name, functions[0][1], basis=functions)
            if cursor.at_word("mean"):
                return self._person_mean()
            return _numeric(parse_call(cursor))
        start, column = cursor.token, cursor.column()
        if column.kind.has_levels:
            return plain_category(cursor, column, start)
        # Not parse_value, which would read x**2 as a power.
        return _numeric(ColumnValue(column.name))

    def _person_mean(self) -> Factor:
        cursor, start = self._cursor, self._cursor.token
        if not self._person_means:
            cursor.fail(
                "mean(...) of a person's rows is for linear_regression by newton, on a data set "
                "with several rows a "
                "person",
                start,
            )
        cursor.advance()
        with cursor.nested():
            cursor.expect("(")
            value = parse_value(cursor)
            cursor.expect(")")
        return _numeric(PersonMean(f"\x00mean {label(value)}", value))

    def _multiply(self, left: _Terms, right: _Terms) -> _Terms:
        self._expansion += len(left) * len(right)
        if self._expansion > self._cursor.limits.max_expansion:
            self._cursor.fail("use fewer '*', ':' and brackets: there are too many products")
        terms = _Terms()
        for a, b in product(left.values(), right.values()):
            factors = a + tuple(f for f in b if all(f.key != g.key for g in a))
            if len(factors) > self._cursor.limits.max_factors:
                most = self._cursor.limits.max_factors
                self._cursor.fail(f"use at most {most} factors in an interaction")
            terms.setdefault(frozenset(f.key for f in factors), factors)
        return terms

    def _check_number_of(self, terms: _Terms) -> None:
        most = self._cursor.limits.max_columns
        if len(terms) > most:
            self._cursor.fail(f"use at most {most} design columns; there are too many terms")


def _without(terms: _Terms, known: _Terms) -> _Terms:
    return {k: v for k, v in terms.items() if k not in known}


def _numeric(expression: Expression) -> Factor:
    name = label(expression)
    return Factor(name, name, expression)
