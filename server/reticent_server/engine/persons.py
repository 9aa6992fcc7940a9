# SPDX-License-Identifier: Apache-2.0
"""A view with one row a person, made from the rows of persons while they are read.

To the rest of the engine it is a reader as any other: the table that it gives is as public a schema
says (domain.persons: what a feature is, and why neighbours differ in one row of the view). Rows are
read in the order of persons, a bounded number of them at a time and never a part of a person's.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent_server.domain.persons import Feature, PersonView
from reticent_server.domain.private import Private
from reticent_server.domain.steps import Block
from reticent_server.numerics.features import person_values
from reticent_server.vault.person_tables import OneTable
from reticent_server.vault.ports import PersonTables, Reader, RowsOfPersons

ROWS_AT_ONCE = 1 << 18
"""Rows that are sorted together: 2 MB a column, which fits the processor's cache better than
more."""
_MISSING = ":missing"


def view_reader(reader: Reader, view: PersonView, persons: int) -> "PersonViewReader":
    """The view of a data set's rows. persons: N, from the public facts."""
    tables = reader if isinstance(reader, PersonTables) else OneTable(reader, persons)
    return PersonViewReader(tables, view)


class PersonViewReader:
    """Reads the features of a view, one row for each of `tables.persons` persons
    (vault.ports.Reader)."""

    def __init__(self, tables: PersonTables, view: PersonView) -> None:
        self._tables = tables
        self._view = view

    @property
    def n(self) -> int:
        """The number of persons, each of whom is a record here."""
        return self._tables.persons

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        """Private record batches with n rows in all, as of a stored table; for no columns, rows
        without columns."""
        made = _Made(self.n, self._view.only(tuple(columns)).features)
        for table in dict.fromkeys(f.table for f in made.features):
            made.add(table, self._tables.rows_of_persons(table, made.reads(table)))
        yield Private(made.batch(columns))


class _Made:
    """The features of all persons, as far as rows have been read; a person starts without rows."""

    def __init__(self, persons: int, features: Sequence[Feature]) -> None:
        self.features = features
        self._persons = persons
        self._values = {f.column.name: np.zeros(persons) for f in features}
        self._missing = {f.column.name: np.zeros(persons, np.bool_) for f in features}
        everybody = np.arange(persons)
        for feature in features:
            none = Block(0, 0, {name: np.zeros(0) for name in feature.reads}, {})
            self._put(feature, everybody, none, np.zeros(0, np.int64))

    def reads(self, table: str | None) -> tuple[str, ...]:
        """The columns of a table that its features read."""
        own = (name for f in self.features if f.table == table for name in f.reads)
        return tuple(dict.fromkeys(own))

    def add(self, table: str | None, batches: Iterator[Private[RowsOfPersons]]) -> None:
        """The features of one table, from all of its rows."""
        features = [f for f in self.features if f.table == table]
        for rows in _whole_persons(batch.unwrap() for batch in batches):
            owners, slots = _numbered(rows.slots)
            block = Block(0, len(slots), rows.columns, rows.missing)
            for feature in features:
                self._put(feature, owners, block, slots)

    def _put(
        self, feature: Feature, owners: NDArray[np.int64], rows: Block, slots: NDArray[np.int64]
    ) -> None:
        """A feature of some persons. slots: (rows,) of each row its person's index in `owners`."""
        name = feature.column.name
        values, missing = person_values(feature, rows, slots, len(owners))
        self._values[name][owners], self._missing[name][owners] = values, missing

    def batch(self, columns: Sequence[str]) -> pa.RecordBatch:
        """What is made, under the view's names."""
        fields: dict[str, pa.Array] = {}
        may_miss = {f.column.name for f in self.features if f.column.may_be_missing}
        for name in dict.fromkeys(columns):
            fields[name] = pa.array(self._values[name])
            if name in may_miss:
                fields[name + _MISSING] = pa.array(self._missing[name])
        if not fields:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self._persons, pa.struct([])))
        return pa.RecordBatch.from_pydict(fields)


def _numbered(slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The persons in their order, and of each row the index of its person among them."""
    new = np.ones(len(slots), dtype=np.bool_)
    new[1:] = slots[1:] != slots[:-1]
    return slots[new], np.cumsum(new) - 1


def _whole_persons(batches: Iterator[RowsOfPersons]) -> Iterator[RowsOfPersons]:
    """The rows again, about ROWS_AT_ONCE together, where no person is divided."""
    kept: list[RowsOfPersons] = []
    for batch in batches:
        kept.append(batch)
        if sum(len(rows.slots) for rows in kept) < ROWS_AT_ONCE:
            continue
        together = RowsOfPersons.joined(kept)
        others = np.flatnonzero(together.slots != together.slots[-1])
        cut = int(others[-1]) + 1 if len(others) else 0
        if cut:
            yield together.part(0, cut)
        kept = [together.part(cut, len(together.slots))]
    if kept and sum(len(rows.slots) for rows in kept):
        yield RowsOfPersons.joined(kept)
