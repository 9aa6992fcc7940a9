# SPDX-License-Identifier: Apache-2.0
"""The columns that a question names: declared, of the right kind, and what public facts say of
them.

Whole columns are for mechanisms that are proved for all n records of a table whose unit is a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.design import ColumnValue, Design, Expression, Indicator
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.errors import InvalidPrivacy, InvalidQuery, UnknownColumn
from reticent_server.formula import mask_design

# below it a test of safety needs more records than there are people
LEAST_EPSILON = EPSILON_UNITS // 10**4
# δ = 10⁻¹²: below it a test of safety needs more records than there are people
LEAST_DELTA = DELTA_UNITS // 10**12
_QUARTILES = (0.25, 0.5, 0.75)  # of a profile, with the median between them


def declared(facts: DatasetFacts, name: str) -> Column:
    """The declared column. Raises InvalidQuery."""
    column = facts.schema.column(name)
    if column is None:
        raise UnknownColumn(name)
    return column


def ordered_column(facts: DatasetFacts, name: str) -> Column:
    """The declared column, whose values have an order; of levels they are positions. Raises
    InvalidQuery."""
    column = declared(facts, name)
    if not column.kind.has_order:
        raise InvalidQuery(
            f"{name} is categorical, which has no order; ask for a histogram or a crosstab."
        )
    return column


def numeric_column(facts: DatasetFacts, name: str) -> Column:
    """The same, whose values can be added up. Raises InvalidQuery."""
    column = ordered_column(facts, name)
    if not column.kind.has_mean:
        raise InvalidQuery(
            f"{name} is ordered: it has levels, not numbers; ask for its median or quantiles."
        )
    return column


def bounded_column(facts: DatasetFacts, name: str) -> Column:
    """The declared column, which has a mean. Raises InvalidQuery."""
    column = declared(facts, name)
    if not column.kind.has_mean:
        raise InvalidQuery(
            f"{name} is {column.kind}, which has no mean; ask for a count with a where clause."
        )
    return column


def second_of_two(column: Column, otherwise: str) -> Expression:
    """Whether a record has the second of a column's two values: of a 0/1 column, or of two levels
    that the question's condition does not exclude. Raises InvalidQuery with `otherwise`."""
    values = column.values(3)
    if len(values) != 2 or not (column.kind.has_levels or column.is_dummy):
        raise InvalidQuery(otherwise)
    return ColumnValue(column.name) if column.is_dummy else Indicator(column.name, values[1])


def mask(facts: DatasetFacts, where: str | None, *names: str) -> Design:
    """The records in use: those for which `where` holds and none of the columns is missing."""
    return mask_design(names, facts.schema, where)


def all_records(where: str | None, other: str) -> None:
    """Raises InvalidQuery for a condition where a mechanism is proved for all records only."""
    if where is not None:
        raise InvalidQuery(
            "This mechanism is proved for all n records; with where, ask for the mechanism "
            f"{other}."
        )


def sufficient(offer: PrivacyCost) -> PrivacyCost:
    """The offer, where a test of safety can pass at all. Raises InvalidPrivacy."""
    if offer.epsilon < LEAST_EPSILON or offer.delta < LEAST_DELTA:
        raise InvalidPrivacy("This kind needs epsilon of at least 0.0001 and delta of 1e-12.")
    return offer


@dataclass(frozen=True, slots=True)
class ColumnsMap:
    """Gives the columns (k, rows) as they are stored."""

    names: tuple[str, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (np.stack([block.columns[name] for name in self.names]),)


def whole_columns(facts: DatasetFacts, names: Sequence[str]) -> tuple[Column, ...]:
    """The named columns. Raises InvalidQuery unless the mechanisms are proved for them."""
    one_row_a_unit(facts)
    return tuple(_whole_column(facts, name) for name in names)


def one_row_a_unit(facts: DatasetFacts) -> None:
    """Raises InvalidQuery for a table whose unit may have no row, or several."""
    if facts.schema.unit.many_rows:
        raise InvalidQuery(
            "This kind is proved for tables whose protected unit has exactly one row; here it "
            "may have none, or more. Ask about features of persons (`persons`)."
        )


def _whole_column(facts: DatasetFacts, name: str) -> Column:
    column = declared(facts, name)
    if not column.kind.has_mean:
        raise InvalidQuery("This kind needs numeric columns; a column of levels has no numbers.")
    if column.may_be_missing:
        raise InvalidQuery(
            f"This kind is proved for all n records, and cells of {column.name} may be missing."
        )
    return column


def profile_quantiles(
    facts: DatasetFacts, name: str, probabilities: Sequence[float]
) -> tuple[float, ...] | None:
    """The profile's quantiles of a column, each at the nearest probability that it has (tails that
    were not reliable are not in it); None without any."""
    profile = facts.profile.columns.get(name) if facts.profile else None
    if profile is None or not profile.quantiles:
        return None
    known = list(zip(profile.probabilities, profile.quantiles, strict=False))
    return tuple(min(known, key=lambda pair: abs(pair[0] - p))[1] for p in probabilities)


def released_quartiles(facts: DatasetFacts, name: str) -> tuple[float, float, float] | None:
    """The profile's quartiles and median of a column; None without them, or where they coincide."""
    quartiles = profile_quantiles(facts, name, _QUARTILES)
    if quartiles is None or not quartiles[2] > quartiles[0]:
        return None
    return quartiles[0], quartiles[1], quartiles[2]
