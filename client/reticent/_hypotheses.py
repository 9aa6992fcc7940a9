"""Linear hypotheses about coefficients, in words like "x1 = 0, x2 = x3" or "2*x1 - x2 = 1".

hypotheses := equation {"," equation}      equation := side ["=" side]   (without "=": = 0)
side := [sign] piece {sign piece}          piece := number | [number "*"] name | name "*" number
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from reticent._errors import InvalidHypothesis, NotEstimable

FloatArray = NDArray[np.float64]
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_.]")
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class WaldTest:
    """H0: R θ = r, tested by (Rθ̂ − r)ᵀ(R C Rᵀ)⁻¹(Rθ̂ − r) ~ χ² with `df` degrees of freedom.

    C counts sampling and privacy noise. Computed from the release: free of charge.
    """

    hypotheses: tuple[str, ...]
    statistic: float
    df: int
    pvalue: float

    def __repr__(self) -> str:
        tested = ", ".join(self.hypotheses)
        return (
            f"Wald test of {tested}: chi2({self.df}) = {self.statistic:.4g}, p = {self.pvalue:.4g}"
        )


def wald(
    hypotheses: Sequence[str], R: FloatArray, r: FloatArray, params: FloatArray, cov: FloatArray
) -> WaldTest:
    """The test of R θ = r, R (k, p), r (k,), with cov (p, p).

    Raises InvalidHypothesis where R's rank is below k, NotEstimable where R C Rᵀ is singular.
    """
    if np.linalg.matrix_rank(R, tol=_TOLERANCE * np.abs(R).max()) < len(R):
        raise InvalidHypothesis("The hypotheses repeat or contradict each other: leave some out.")
    middle = R @ cov @ R.T
    scale = np.sqrt(np.diag(middle))
    if not np.all(scale > 0) or np.linalg.eigvalsh(middle / np.outer(scale, scale))[0] < _TOLERANCE:
        raise NotEstimable("The covariance of what is tested is singular: test less at once.")
    difference = R @ params - r
    statistic = float(difference @ np.linalg.solve(middle, difference))
    return WaldTest(tuple(hypotheses), statistic, len(R), float(chdtrc(len(R), statistic)))


def unresolved_share(R: FloatArray, directions: Sequence[Mapping[str, Any]]) -> float:
    """The largest share of variance in unresolved directions, over all combinations of R's rows (k, p).

    directions: as released, p vectors v_i (p,) with `resolved`: the variance of a combination c is, up to a
    factor, Σ_i (cᵀv_i)².
    """
    vectors = np.array([d["vector"] for d in directions], dtype=np.float64)
    unresolved = np.array([not d["resolved"] for d in directions])
    basis = np.linalg.qr(vectors @ R.T)[0]
    return float(np.linalg.norm(basis[unresolved], 2) ** 2) if unresolved.any() else 0.0


def parse(
    text: str | Sequence[str], names: Sequence[str]
) -> tuple[list[str], FloatArray, FloatArray]:
    """(texts, R (k, p), r (k,)) of one text, or of several; raises InvalidHypothesis."""
    reader = _Reader(text if isinstance(text, str) else ", ".join(text), names)
    rows = [reader.equation()]
    while reader.take(","):
        rows.append(reader.equation())
    if not reader.at_end:
        reader.fail()
    texts, R, r = zip(*rows, strict=True)
    return list(texts), np.array(R), np.array(r)


class _Reader:
    """Reads from left to right; the longest coefficient's name that fits is taken."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._text = text
        self._at = 0
        self._names = tuple(names)
        self._longest_first = sorted(names, key=len, reverse=True)

    @property
    def at_end(self) -> bool:
        self._skip_blanks()
        return self._at == len(self._text)

    def equation(self) -> tuple[str, FloatArray, float]:
        start = self._at
        row, constant = self._side()
        if self.take("="):
            other, moved = self._side()
            row, constant = row - other, constant - moved
        if not np.any(row):
            raise InvalidHypothesis(
                "Every hypothesis must name a coefficient that does not cancel."
            )
        return self._text[start : self._at].strip(), row, -constant

    def take(self, symbol: str) -> bool:
        self._skip_blanks()
        found = self._text.startswith(symbol, self._at)
        self._at += found
        return found

    def fail(self) -> NoReturn:
        raise InvalidHypothesis(
            f"Cannot read the hypothesis at {self._text[self._at : self._at + 20]!r}. Write, for "
            f"example, 'a = 0, b = 2*c' with the coefficients {', '.join(self._names)}."
        )

    def _side(self) -> tuple[FloatArray, float]:
        row, constant = np.zeros(len(self._names)), 0.0
        sign = -1.0 if self.take("-") else 1.0
        if sign > 0:
            self.take("+")
        while True:
            factor, index = self._piece()
            if index is None:
                constant += sign * factor
            else:
                row[index] += sign * factor
            if self.take("+"):
                sign = 1.0
            elif self.take("-"):
                sign = -1.0
            else:
                return row, constant

    def _piece(self) -> tuple[float, int | None]:
        index, factor = self._name(), self._number()
        if index is not None and factor is None:
            return (self._factor() if self.take("*") else 1.0), index
        if index is not None or factor is None:
            self.fail()
        return factor, (self._required_name() if self.take("*") else None)

    def _factor(self) -> float:
        factor = self._number()
        if factor is None:
            self.fail()
        return factor

    def _required_name(self) -> int:
        index = self._name()
        if index is None:
            self.fail()
        return index

    def _name(self) -> int | None:
        self._skip_blanks()
        for name in self._longest_first:
            end = self._at + len(name)
            ends = not (name and _WORD.match(name[-1]) and _WORD.match(self._text, end))
            if self._text.startswith(name, self._at) and ends:
                self._at = end
                return self._names.index(name)
        return None

    def _number(self) -> float | None:
        self._skip_blanks()
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return float(match.group())

    def _skip_blanks(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
