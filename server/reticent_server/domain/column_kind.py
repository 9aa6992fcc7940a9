# SPDX-License-Identifier: Apache-2.0
"""The kinds of columns, and all that the rest of the server asks of one.

A kind is one line of the table: its keys in a schema file, how a drafted file leaves it open, what
a cell that is wrong is told to be, and what its values are. Reading (catalog.schema_file), drafting
and cells (vault), profiles and coding (fitting), formulas, conditions and features of persons
(formula) and questions (kinds) ask for these, never for a kind's name. A new kind is a member and a
line here; where callers must tell it apart, a field of a column's reply (api.replies).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ColumnKind(StrEnum):
    """As the schema file names it."""

    NUMERIC = "numeric"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    ORDERED = "ordered"
    BOOLEAN = "boolean"

    @property
    def traits(self) -> "ColumnTraits":
        """The kind's line of the table: what its cells are, and what may be done with them."""
        return TRAITS[self]

    @property
    def is_whole(self) -> bool:
        """Whether values are whole: each can be counted, or have a dummy."""
        return self.traits.is_whole

    @property
    def is_number(self) -> bool:
        """Whether values are numbers with declared bounds, rather than codes."""
        return self.traits.is_number

    @property
    def has_levels(self) -> bool:
        """Whether values are the positions of declared texts."""
        return self.traits.has_levels

    @property
    def has_order(self) -> bool:
        """Whether one value is below another: conditions with <, ranks, quantiles."""
        return self.traits.has_order

    @property
    def word(self) -> str:
        """How version 1 of the interface names it: callers of it know no other words."""
        return self.traits.word or self.value

    @property
    def has_mean(self) -> bool:
        """Whether values can be added up."""
        return self.is_number or not self.has_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTraits:
    """keys: of the schema file. draft: what a drafted file has, with places for {source}, {levels}
    and {missing}. cell: what a cell must be. heading: of such columns in a form. word: of the
    interface, where it is not the kind's own.
    """

    keys: tuple[str, ...]
    draft: str
    cell: str
    heading: str
    word: str = ""
    is_whole: bool = True
    is_number: bool = False
    has_levels: bool = False
    has_order: bool = True


_BOUNDED = ("kind", "label", "from", "lower", "upper", "missing", "role")
_LEVELS = ("kind", "label", "from", "levels", "other", "missing")

TRAITS: Mapping[ColumnKind, ColumnTraits] = {
    ColumnKind.NUMERIC: ColumnTraits(
        keys=_BOUNDED,
        draft="kind: numeric{source}, lower: , upper: {missing}",
        cell="a finite number",
        heading="Numbers",
        is_whole=False,
        is_number=True,
    ),
    ColumnKind.INTEGER: ColumnTraits(
        keys=_BOUNDED,
        draft="kind: integer{source}, lower: , upper: {missing}",
        cell="an integer",
        heading="Numbers",
        is_number=True,
    ),
    ColumnKind.CATEGORICAL: ColumnTraits(
        keys=_LEVELS,
        draft="kind: categorical{source}, levels: {levels}{missing}",
        cell="one of the declared levels",
        heading="Categories",
        has_levels=True,
        has_order=False,
    ),
    ColumnKind.ORDERED: ColumnTraits(
        keys=_LEVELS,
        draft="kind: ordered{source}, levels: {levels}{missing}",
        cell="one of the declared levels",
        heading="Ordered levels",
        word="categorical",
        has_levels=True,
    ),
    ColumnKind.BOOLEAN: ColumnTraits(
        keys=("kind", "label", "from", "true", "false", "missing"),
        draft="kind: boolean{source}{missing}",
        cell="a word for true or false, such as yes, no, 1, 0",
        heading="True or false",
    ),
}


def published_kind(word: str, *, ordered: bool) -> ColumnKind:
    """The kind that the interface says: its word, and whether its levels have an order."""
    return ColumnKind.ORDERED if ordered else ColumnKind(word)
