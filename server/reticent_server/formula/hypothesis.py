# SPDX-License-Identifier: Apache-2.0
"""Linear hypotheses in words: "x1 = 0", "x2 = x3", "2*x1 - x2 = 1".

    hypotheses := hypothesis {"," hypothesis}
    hypothesis := side ["=" side]            (without "=": = 0)
    side       := [sign] piece {sign piece}  piece := number | [number "*"] name | name "*" number

A name is a coefficient's, as the model reports it; the longest that fits is taken. Errors hold
constant words and the model's declared names only, never the text that was sent. The client reads
hypotheses about a released fit by the same rules: both read the texts of
tests/fixtures/hypotheses.json.
"""

import re
from collections.abc import Sequence
from typing import NoReturn, TypeVar

import numpy as np

from reticent_server.domain.hypothesis import LinearHypothesis
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery

MAX_LENGTH = 2_000
"""Characters of one hypothesis: beyond any that is written by hand."""
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[A-Za-z0-9_.]")
_LARGEST = 1e12
"""Bound of factors and constants: the square still leaves four digits beside 1 in a double's
10^28."""
_DEPENDENT = 1e-9
"""Singular value of rows of largest entry 1 below which they repeat each other: rounding is 10⁻¹⁶ a
term."""

_HOW_MANY = "Give at least one hypothesis, and at most one for each coefficient."

Required = TypeVar("Required", int, float)


def parse_hypothesis(texts: Sequence[str], names: Sequence[str]) -> LinearHypothesis:
    """Rβ = r from texts with one or more hypotheses each; raises InvalidQuery, also where R has not
    full rank."""
    parsed: list[tuple[str, FloatArray, float]] = []
    for text in texts:
        parsed += _Reader(text, names).hypotheses(len(names) - len(parsed))
    if not parsed:
        raise InvalidQuery(_HOW_MANY)
    rows = np.array([row for _, row, _ in parsed])
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    if np.linalg.matrix_rank(scaled, tol=_DEPENDENT) < len(rows):
        raise InvalidQuery("The hypotheses repeat or contradict each other: leave some out.")
    return LinearHypothesis(
        texts=tuple(text for text, _, _ in parsed),
        rows=tuple(tuple(float(v) for v in row) for row in rows),
        values=tuple(float(value) for _, _, value in parsed),
    )


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._longest_first = sorted(names, key=len, reverse=True)
        self._text, self._at = text, 0

    def hypotheses(self, most: int) -> list[tuple[str, FloatArray, float]]:
        """(text, row of R, value of r) of each, to the end of the text; no more than `most` are
        read."""
        rows: list[tuple[str, FloatArray, float]] = []
        while not rows or self._take(","):
            if len(rows) >= most:
                raise InvalidQuery(_HOW_MANY)
            rows.append(self._equation())
        if self._at < len(self._text):
            self._fail()
        return rows

    def _equation(self) -> tuple[str, FloatArray, float]:
        start = self._at
        row, constant = self._side()
        if self._take("="):
            other, moved = self._side()
            row, constant = row - other, constant - moved
        self._skip()
        if not np.any(row) or self._at - start > MAX_LENGTH:
            self._fail()
        if not np.all(np.abs(row) < _LARGEST) or abs(constant) >= _LARGEST:
            self._fail()
        return self._text[start : self._at].strip(), row, -constant

    def _side(self) -> tuple[FloatArray, float]:
        row, constant = np.zeros(len(self._names)), 0.0
        sign = -1.0 if self._take("-") else 1.0
        if sign > 0:
            self._take("+")
        while True:
            factor, index = self._piece()
            if index is None:
                constant += sign * factor
            else:
                row[index] += sign * factor
            if self._take("+"):
                sign = 1.0
            elif self._take("-"):
                sign = -1.0
            else:
                return row, constant

    def _piece(self) -> tuple[float, int | None]:
        index = self._name()
        if index is not None:
            return (self._required(self._number()) if self._take("*") else 1.0), index
        factor = self._required(self._number())
        return factor, (self._required(self._name()) if self._take("*") else None)

    def _required(self, piece: Required | None) -> Required:
        if piece is None:
            self._fail()
        return piece

    def _name(self) -> int | None:
        self._skip()
        for name in self._longest_first:
            end = self._at + len(name)
            ends = not (_WORD.match(name[-1:]) and _WORD.match(self._text, end))
            if name and self._text.startswith(name, self._at) and ends:
                self._at = end
                return self._names.index(name)
        return None

    def _number(self) -> float | None:
        self._skip()
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return float(match.group())

    def _take(self, symbol: str) -> bool:
        self._skip()
        given = self._text.startswith(symbol, self._at)
        self._at += given
        return given

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _fail(self) -> NoReturn:
        raise InvalidQuery(
            "Write a hypothesis as 'a = 0' or 'a = 2*b', with the model's coefficients: "
            f"{', '.join(self._names)}."
        )
