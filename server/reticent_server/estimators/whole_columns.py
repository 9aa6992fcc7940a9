"""Columns for mechanisms that are proved for all n records of a table whose unit is a row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.errors import InvalidQuery

_QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class ColumnsMap:
    """Gives the columns (k, rows) as they are stored."""

    names: tuple[str, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (np.stack([block.columns[name] for name in self.names]),)


def whole_columns(facts: DatasetFacts, names: Sequence[str]) -> tuple[Column, ...]:
    """The named columns. Raises InvalidQuery unless the mechanisms are proved for them."""
    if facts.schema.unit.max_rows > 1:
        raise InvalidQuery(
            "This kind is proved for data sets whose protected unit has one row; here it has more."
        )
    return tuple(_whole_column(facts, name) for name in names)


def _whole_column(facts: DatasetFacts, name: str) -> Column:
    column = facts.schema.column(name)
    if column is None:
        raise InvalidQuery("The query names a column that the data set does not have.")
    if column.kind is ColumnKind.CATEGORICAL:
        raise InvalidQuery("This kind needs numeric columns; a categorical one has no order.")
    if column.may_be_missing:
        raise InvalidQuery(
            f"This kind is proved for all n records, and cells of {column.name} may be missing."
        )
    return column


def profile_quantiles(
    facts: DatasetFacts, name: str, probabilities: Sequence[float]
) -> tuple[float, ...] | None:
    """The profile's quantiles of a column, each at the nearest probability that it has (tails that were not
    reliable are not in it); None without any."""
    found = facts.profile.columns.get(name) if facts.profile else None
    if found is None or not found.quantiles:
        return None
    known = list(zip(found.probabilities, found.quantiles, strict=False))
    return tuple(min(known, key=lambda pair: abs(pair[0] - p))[1] for p in probabilities)


def released_quartiles(facts: DatasetFacts, name: str) -> tuple[float, float, float] | None:
    """The profile's quartiles and median of a column; None without them, or where they coincide."""
    found = profile_quantiles(facts, name, _QUARTILES)
    if found is None or not found[2] > found[0]:
        return None
    return found[0], found[1], found[2]
