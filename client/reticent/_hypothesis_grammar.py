# SPDX-License-Identifier: Apache-2.0
"""Linear hypotheses in words: "x1 = 0", "x2 = x3", "2*x1 - x2 = 1".

    hypotheses := hypothesis {"," hypothesis}
    hypothesis := side ["=" side]   (without "=": = 0)
    side       := [sign] piece {sign piece}  piece := number | [number "*"] name | name "*" number

A name is a coefficient's, as the release reports it; the longest that fits is taken. A server reads
what it is asked by the same rules: both read the texts of tests/fixtures/hypotheses.json.
"""

import re
from collections.abc import Sequence
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent._errors import InvalidHypothesis

FloatArray = NDArray[np.float64]

MAX_LENGTH = 2_000
"""Characters of one hypothesis: a server's limit, beyond any that is written by hand."""
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[A-Za-z0-9_.]")
_LARGEST = 1e12
"""Bound of factors and constants: the square still leaves four digits beside 1 in a double's
10^28.
"""
_DEPENDENT = 1e-9
"""Singular value of rows of largest entry 1 below which they repeat each other: rounding is 10⁻¹⁶ a
term.
"""

Required = TypeVar("Required", int, float)


def parse(
    text: str | Sequence[str], names: Sequence[str]
) -> tuple[list[str], FloatArray, FloatArray]:
    """(texts, R (k, p), r (k,)) of one text, or of several; raises InvalidHypothesis, also where
    R's rank is below k.
    """
    rows = []
    for part in [text] if isinstance(text, str) else text:
        rows += _Reader(part, names).hypotheses()
    if not rows:
        raise InvalidHypothesis("Give at least one hypothesis, such as 'a = 0'.")
    texts, R, r = zip(*rows, strict=True)
    matrix = np.array(R)
    if np.linalg.matrix_rank(matrix / np.abs(matrix).max(1, keepdims=True), tol=_DEPENDENT) < len(
        R
    ):
        raise InvalidHypothesis("The hypotheses repeat or contradict each other: leave some out.")
    return list(texts), matrix, np.array(r)


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._longest_first = sorted(names, key=len, reverse=True)
        self._text, self._at = text, 0

    def hypotheses(self) -> list[tuple[str, FloatArray, float]]:
        """(text, row of R, value of r) of each, to the end of the text."""
        rows = [self._equation()]
        while self._take(","):
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
        if not np.any(row):
            raise InvalidHypothesis(
                "Every hypothesis must name a coefficient that does not cancel."
            )
        if not np.all(np.abs(row) < _LARGEST) or abs(constant) >= _LARGEST:
            raise InvalidHypothesis("The numbers of a hypothesis must be below 10¹².")
        if self._at - start > MAX_LENGTH:
            raise InvalidHypothesis(f"A hypothesis has at most {MAX_LENGTH} characters.")
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
        raise InvalidHypothesis(
            f"Cannot read the hypothesis at {self._text[self._at : self._at + 20]!r}. Write, for "
            f"example, 'a = 0, b = 2*c' with the coefficients {', '.join(self._names)}."
        )
