# SPDX-License-Identifier: Apache-2.0
"""Splits text into tokens of a closed, ASCII alphabet, and walks over them.

The library of a function, as in np.log(x) and splines::bs(x), is read over. Only what stands in
quotes or backticks may hold other printable characters: it is compared with declared names and
never shown.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NoReturn

from reticent_server.domain.dates import date_days
from reticent_server.domain.facts import Profile
from reticent_server.domain.schema import Column, Schema
from reticent_server.errors import InvalidFormula
from reticent_server.formula.limits import Limits

Kind = Literal["name", "number", "string", "operator", "end"]
Place = str
"""What a text is, in errors: "formula", "where condition", "text of feature 2"."""

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?:(?:(?:np|numpy)\.|[A-Za-z][A-Za-z0-9.]{0,40}::)(?=[A-Za-z_][A-Za-z0-9_.]*\())?
        (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | `(?P<backticked>[^`]+)`
      | "(?P<double>[^"]*)"
      | '(?P<single>[^']*)'
      | (?P<operator>\*\*|==|!=|<=|>=|[-~+*:(),<>/=^|&!%\[\]{}.])""",
    re.VERBOSE,
)
_KINDS: dict[str, Kind] = {
    "number": "number",
    "name": "name",
    "backticked": "name",
    "double": "string",
    "single": "string",
    "operator": "operator",
}


@dataclass(frozen=True, slots=True)
class Token:
    """position: of its first character, counted from 1. quoted: a name in backticks."""

    kind: Kind
    text: str
    position: int
    quoted: bool = False


def tokenize(text: str, place: Place, limits: Limits) -> list[Token]:
    """The tokens of a text, the last one being of kind "end"; raises InvalidFormula."""
    if len(text) > limits.max_length:
        raise InvalidFormula(
            f"The {place} is too long: at most {limits.max_length:,} characters are allowed."
        )
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _bad_character(place, at + 1)
        group = str(match.lastgroup)
        if group != "blank":
            tokens.append(_token(match, group, place))
        at = match.end()
    return [*tokens, Token("end", "", len(text) + 1)]


def _token(match: re.Match[str], group: str, place: Place) -> Token:
    text, position = match.group(group), match.start() + 1
    if not text.isprintable():
        raise _bad_character(place, position)
    return Token(_KINDS[group], text, position, quoted=group == "backticked")


def _bad_character(place: Place, position: int) -> InvalidFormula:
    return InvalidFormula(
        f"The character at position {position} of the {place} cannot be used: write names in ASCII "
        "letters, digits, '_' and '.', other column names in `backticks`, levels in quotes, and "
        "close every quote."
    )


class Cursor:
    """A place in a list of tokens, with the schema to look names up in, and the released profile
    where there is one."""

    def __init__(
        self,
        text: str,
        schema: Schema,
        place: Place,
        limits: Limits,
        profile: Profile | None = None,
    ) -> None:
        self.place = place
        self.text = text
        self.profile = profile
        self.limits = limits
        self.columns: Mapping[str, Column] = {c.name: c for c in schema.columns}
        self._tokens = tokenize(text, place, limits)
        self._index = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The token that is read next; "end" after the last one."""
        return self._tokens[self._index]

    @property
    def following(self) -> Token:
        """The token after the current one."""
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """The current token; moves to the next one."""
        token = self.token
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the current token is one of these operators."""
        return self.token.kind == "operator" and self.token.text in texts

    def at_word(self, word: str) -> bool:
        """Whether the current token is this word, not in backticks."""
        return self.token.kind == "name" and not self.token.quoted and self.token.text == word

    def expect(self, text: str) -> None:
        """Reads the given text. Raises InvalidFormula where another token stands there."""
        if not self.at(text):
            self.fail(f"write '{text}'")
        self.advance()

    def expect_end(self, advice: str) -> None:
        """Raises InvalidFormula with the advice where a token is left."""
        if self.token.kind != "end":
            self.fail(advice)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; refuses to go below the depth limit."""
        self._depth += 1
        if self._depth > self.limits.max_depth:
            self.fail(f"nest at most {self.limits.max_depth} levels of brackets")
        yield
        self._depth -= 1

    def column(self) -> Column:
        """Takes a name, which must be that of a declared column."""
        token = self.advance()
        column = self.columns.get(token.text) if token.kind == "name" else None
        if column is None:
            self.fail(
                "unknown column; the data set's description lists its columns",
                token,
            )
        return column

    def number(self, advice: str) -> float:
        """Takes a finite number, with a sign if it has one."""
        sign = -1.0 if self.at("-") else 1.0
        if self.at("-", "+"):
            self.advance()
        if self.token.kind != "number":
            self.fail(advice)
        value = float(self.token.text)
        if value == float("inf"):
            self.fail("write a number that a double can hold")
        self.advance()
        return sign * value

    def date(self) -> float:
        """Takes a date in quotes: days since 1970-01-01."""
        token = self.token
        if token.kind != "string":
            self.fail('write a date in quotes, such as "2020-01-31"')
        days = self.date_of(token)
        self.advance()
        return days

    def date_of(self, token: Token) -> float:
        """The day that a token names."""
        try:
            return date_days(token.text)
        except ValueError:
            self.fail('write a date that the calendar has, such as "2020-01-31"', token)

    def fail(self, advice: str, token: Token | None = None) -> NoReturn:
        """Raises InvalidFormula: what to do, and where."""
        position = (token or self.token).position
        raise InvalidFormula(f"At position {position} of the {self.place}: {advice}.")
