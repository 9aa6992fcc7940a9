# SPDX-License-Identifier: Apache-2.0
"""Contrasts: the columns by which a factor of k levels enters a design, k − 1 beside what spans
their sum, or k in full.

    contrast    columns         numbers                                     in full also
    treatment   [b], [c]        1 at that level; the first is the reference   [a]
    Sum         [S.a], [S.b]    1 at that level, −1 at the last one           [mean]
    Helmert     [H.b], [H.c]    j at level j = 1, 2, …, −1 at those before    [H.intercept]

Names and numbers are patsy's, so those of statsmodels; Helmert's are R's contr.helmert, too. All
are public numbers by level: of a record's cell a column has at most max|number|.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reticent_server.domain.design import Coded, Expression, Indicator


@dataclass(frozen=True, slots=True)
class FactorLevel:
    """A level of a factor, and the stored values (codes) of the column's cells that belong to
    it."""

    text: str
    codes: tuple[float, ...]


CodedColumns = Sequence[tuple[str, Expression]]
"""What stands in the brackets of a column's name, and the column."""


class FactorContrast(Protocol):
    """A way of coding."""

    def columns(self, column: str, levels: Sequence[FactorLevel], *, full: bool) -> CodedColumns:
        """One column fewer than levels, or in full as many."""
        ...

    def baseline(self, levels: Sequence[FactorLevel]) -> FactorLevel:
        """The level that has no column beside what spans their sum."""
        ...


@dataclass(frozen=True, slots=True)
class TreatmentContrast(FactorContrast):
    """An indicator of each level but the first, the reference."""

    def columns(self, column: str, levels: Sequence[FactorLevel], *, full: bool) -> CodedColumns:
        return [
            (level.text, _indicator(column, level)) for level in (levels if full else levels[1:])
        ]

    def baseline(self, levels: Sequence[FactorLevel]) -> FactorLevel:
        return levels[0]


@dataclass(frozen=True, slots=True)
class SumContrast(FactorContrast):
    """Deviations from the mean over levels, of each level but the last."""

    def columns(self, column: str, levels: Sequence[FactorLevel], *, full: bool) -> CodedColumns:
        last = len(levels) - 1
        head = [("mean", _coded(column, levels, [1.0] * len(levels)))] if full else []
        rows = [
            [-1.0 if k == last else float(k == j) for k in range(last + 1)] for j in range(last)
        ]
        return head + [
            (f"S.{levels[j].text}", _coded(column, levels, row)) for j, row in enumerate(rows)
        ]

    def baseline(self, levels: Sequence[FactorLevel]) -> FactorLevel:
        return levels[-1]


@dataclass(frozen=True, slots=True)
class HelmertContrast(FactorContrast):
    """Each level but the first against the mean of those before it."""

    def columns(self, column: str, levels: Sequence[FactorLevel], *, full: bool) -> CodedColumns:
        k = len(levels)
        head = [("H.intercept", _coded(column, levels, [1.0] * k))] if full else []
        rows = [[-1.0] * j + [float(j)] + [0.0] * (k - j - 1) for j in range(1, k)]
        return head + [
            (f"H.{levels[j].text}", _coded(column, levels, row))
            for j, row in enumerate(rows, start=1)
        ]

    def baseline(self, levels: Sequence[FactorLevel]) -> FactorLevel:
        return levels[0]


CONTRASTS: dict[str, FactorContrast] = {
    "Sum": SumContrast(),
    "Helmert": HelmertContrast(),
    "Treatment": TreatmentContrast(),
}


def _indicator(column: str, level: FactorLevel) -> Expression:
    if len(level.codes) == 1:
        return Indicator(column, level.codes[0])
    return _coded(column, [level], [1.0])


def _coded(column: str, levels: Sequence[FactorLevel], numbers: Sequence[float]) -> Coded:
    pairs = [
        (code, number)
        for level, number in zip(levels, numbers, strict=True)
        for code in level.codes
        if number != 0
    ]
    pairs.sort()
    return Coded(column, tuple(c for c, _ in pairs), tuple(v for _, v in pairs))
