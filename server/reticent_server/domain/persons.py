# SPDX-License-Identifier: Apache-2.0
"""Features of a person: a table with one row a person, each cell made of the person's own rows.

The formula layer builds these values (formula.features); engine.persons computes them.

Privacy. A feature is f(R), R the multiset of the rows of one person, brought within its column's
public bounds or levels. So for any two tables that differ in the rows of one person, of whatever
numbers (none, one, more than `max_rows`), the views differ in one row, and both are tables of the
view's public schema: every mechanism that is proved for a table whose unit is a row is proved for
persons. What the view has as public is the number of persons and the declared features; nothing of
it depends on the number of rows.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from reticent_server.domain.design import Expression, Predicate
from reticent_server.domain.schema import Column, Schema

FeatureFunction = Literal[
    "count", "any", "all", "share", "first", "last", "min", "max", "mean", "sum"
]


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of a view: `function` over those of a person's rows that are in use.

    A row is in use where `where` holds and no cell that is read is missing, unreadable or gives a
    value that is not finite. value: of a row, for first, last, min, max, mean and sum. condition:
    of a row, for any, all and share. by: the column that orders the rows, for first and last; rows
    that are equal in it are ordered by value, so that no stored order matters. none: the value of a
    person without a row in use; None: it is missing there. reads: the columns that are read. table:
    whose rows they are, None for a data set of one table. column: its name, kind, bounds and levels
    in the view.
    """

    column: Column
    function: FeatureFunction
    reads: tuple[str, ...]
    value: Expression | None = None
    condition: Predicate | None = None
    by: str | None = None
    where: Predicate | None = None
    none: float | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class PersonView:
    """The features of a query. schema: of the table with one row a person."""

    features: tuple[Feature, ...]
    schema: Schema

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of rows that are read, each once."""
        return tuple(dict.fromkeys(name for f in self.features for name in f.reads))

    @property
    def digest(self) -> str:
        """A name of the features in caches of columns: the same for the same texts only."""
        return sha256(repr(self.schema.features).encode()).hexdigest()

    def only(self, names: tuple[str, ...]) -> "PersonView":
        """The view with the named features only."""
        kept = tuple(f for f in self.features if f.column.name in names)
        return PersonView(kept, self.schema)
