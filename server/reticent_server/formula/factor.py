# SPDX-License-Identifier: Apache-2.0
"""A factor of a term, and the levels that a column declares."""

from dataclasses import dataclass

from reticent_server.domain.design import Expression, FunctionName
from reticent_server.domain.schema import Column
from reticent_server.formula.contrasts import FactorContrast, FactorLevel, TreatmentContrast

_TREATMENT = TreatmentContrast()


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a term: an expression, a basis, or a categorical column with levels and their
    contrast.

    label: as reported. key: equal for two spellings of the same factor (g and C(g)). basis: labels
    and functions of a basis, of which `expression` is the first. function: whose values the levels
    are, of a date.
    """

    key: str
    label: str
    expression: Expression | None = None
    column: str = ""
    levels: tuple[FactorLevel, ...] = ()
    basis: tuple[tuple[str, Expression], ...] = ()
    contrast: FactorContrast = _TREATMENT
    function: FunctionName | None = None


def column_levels(column: Column) -> tuple[FactorLevel, ...]:
    """A column's declared levels, of other kinds the whole numbers between the bounds; but those
    that the question's condition excludes."""
    values = column.values(column.size)
    names = (column.levels[int(v)] if column.kind.has_levels else str(int(v)) for v in values)
    return tuple(FactorLevel(name, (v,)) for name, v in zip(names, values, strict=True))
