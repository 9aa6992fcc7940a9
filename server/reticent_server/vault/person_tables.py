# SPDX-License-Identifier: Apache-2.0
"""Rows in the order of persons: of one table, or of several that are linked by the names of
persons.

A link's persons are those of its population's spine, in their places there (vault.placing); a
person may have no row in some of the tables, and whoever has no place is left out. A link in a
population without a spine has the persons of all of its tables, each once, in the order of their
names: its N says how many these are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent_server.domain.private import Private
from reticent_server.domain.schema import ABSENT
from reticent_server.domain.source import LinkedTables, Spine, VaultTable
from reticent_server.errors import Unavailable
from reticent_server.vault.adbc import DRIVER_ERRORS, Permits, VaultUrl, parse_url, stream
from reticent_server.vault.names import PERSON
from reticent_server.vault.placing import OUTSIDE, persons_of
from reticent_server.vault.ports import Reader, RowsOfPersons
from reticent_server.vault.readers import open_reader
from reticent_server.vault.registered import BAD_SUFFIX, MASK_SUFFIX, UNREADABLE


class OneTable:
    """A table in which person k has the places k·m … k·m + m − 1, m = n/N; some may hold no row
    (PersonTables)."""

    def __init__(self, reader: Reader, persons: int) -> None:
        self._reader = reader
        self._persons = persons

    @property
    def persons(self) -> int:
        """N, the number of persons, with or without rows."""
        return self._persons

    def rows_of_persons(
        self, _table: str | None, columns: Sequence[str]
    ) -> Iterator[Private[RowsOfPersons]]:
        """The rows of all persons. Raises Unavailable where the table is not of N persons."""
        if self._reader.n % self._persons:
            raise Unavailable(UNREADABLE)
        present = _InOrder(self._reader.n // self._persons, columns)
        for batch in self._reader.batches(columns):
            yield batch.map(present.of)


class _InOrder:
    """Rows of consecutive places, m of each person."""

    def __init__(self, m: int, columns: Sequence[str]) -> None:
        self._m = m
        self._columns = columns
        self._next = 0

    def of(self, batch: pa.RecordBatch) -> RowsOfPersons:
        """The rows of the next batch of places."""
        places = np.arange(self._next, self._next + batch.num_rows)
        self._next += batch.num_rows
        return _present(batch, places // self._m, self._columns)


class LinkedReader:
    """Reads tables that are linked (PersonTables); it has no rows of its own."""

    def __init__(self, vault_url: str, source: LinkedTables, permits: Permits | None) -> None:
        self._vault_url = vault_url
        self._permits = permits
        self._tables = {table.name: table.table for table in source.tables}
        self._n = source.n
        self._spine = source.spine
        self._places: Mapping[str, NDArray[np.int64]] | None = None

    @property
    def persons(self) -> int:
        """N, the number of persons in the population's places."""
        return self._n

    @property
    def n(self) -> int:
        """N: a record of linked tables is a person."""
        return self._n

    def batches(self, _columns: Sequence[str]) -> Iterator[Private[Any]]:
        """A link is read by tables only."""
        raise Unavailable(UNREADABLE)

    def rows_of_persons(
        self, table: str | None, columns: Sequence[str]
    ) -> Iterator[Private[RowsOfPersons]]:
        """The rows of a table, whose columns are named `table.column`. Raises Unavailable."""
        if self._places is None:
            self._places = self._placed()
        source, places = self._tables[table or ""], self._places[table or ""]
        reader = open_reader(self._vault_url, source, self._permits)
        own = [name.partition(".")[2] for name in columns]

        def named(rows: RowsOfPersons) -> RowsOfPersons:
            place = places[rows.slots]
            there = place != OUTSIDE
            return RowsOfPersons(
                place[there],
                {f"{table}.{name}": values[there] for name, values in rows.columns.items()},
                {f"{table}.{name}": mask[there] for name, mask in rows.missing.items()},
            )

        for batch in OneTable(reader, source.persons).rows_of_persons(None, own):
            yield batch.map(named)

    def _placed(self) -> Mapping[str, NDArray[np.int64]]:
        """Of each table the places, among all persons, of its own. Raises Unavailable where these
        are not N."""
        vault = parse_url(self._vault_url)
        if self._spine is not None:
            tables, spine = self._tables.items(), self._spine
            return {n: _in_spine(vault, t, spine, self._permits) for n, t in tables}
        names = {n: _names(vault, t, self._permits) for n, t in self._tables.items()}
        everybody = np.unique(np.concatenate(list(names.values())))
        if len(everybody) != self._n:
            raise Unavailable(UNREADABLE)
        return {name: np.searchsorted(everybody, own) for name, own in names.items()}


def number_of_persons(vault: VaultUrl, tables: Sequence[VaultTable]) -> int:
    """How many persons there are in any of the tables: the N of their link, which is published.
    Raises Unavailable."""
    return len(np.unique(np.concatenate([_names(vault, table, None) for table in tables])))


def _in_spine(
    vault: VaultUrl, table: VaultTable, spine: Spine, permits: Permits | None
) -> NDArray[np.int64]:
    """(table.persons,) the spine's place of each of a table's: the same, or found by the name where
    the table was loaded before there was a spine."""
    if table.spine == spine.id or spine.table is None:
        return np.arange(table.persons)
    names, places = persons_of(vault, spine.table, permits)
    order = np.argsort(names)
    own = _names(vault, table, permits)
    index = order[np.searchsorted(names, own, sorter=order).clip(max=len(order) - 1)]
    return np.where(names[index] == own, places[index], OUTSIDE)


def _names(vault: VaultUrl, table: VaultTable, permits: Permits | None) -> NDArray[np.int64]:
    # The first of a person's places holds a row. Every name in the statement was generated at load.
    sql = (
        f"SELECT {PERSON} FROM {table.table} "  # noqa: S608
        f"WHERE position % {table.max_rows} = 0 ORDER BY position"
    )
    failed, parts = False, [np.zeros(0, np.int64)]
    try:
        batches = stream(vault, sql, permits=permits)
        parts += [np.asarray(batch.column(0)).astype(np.int64) for batch in batches]
    except DRIVER_ERRORS:
        failed = True
    names = np.concatenate(parts)
    if (
        failed or len(names) != table.persons
    ):  # outside the handler: no driver text is kept as context
        raise Unavailable(UNREADABLE)
    return names


def _present(
    batch: pa.RecordBatch, slots: NDArray[np.int64], columns: Sequence[str]
) -> RowsOfPersons:
    """A batch's rows, those of no place left out; a cell that cannot be read counts as missing."""
    stored = set(batch.schema.names)
    there = np.ones(batch.num_rows, np.bool_)
    if ABSENT + MASK_SUFFIX in stored:
        there = ~_mask(batch, ABSENT + MASK_SUFFIX)
    missing: dict[str, NDArray[np.bool_]] = {}
    for name in columns:
        masks = [_mask(batch, name + s) for s in (MASK_SUFFIX, BAD_SUFFIX) if name + s in stored]
        if masks:
            missing[name] = np.logical_or.reduce(masks)[there]
    values = {name: np.asarray(batch.column(name))[there] for name in columns}
    return RowsOfPersons(slots[there], values, missing)


def _mask(batch: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.bool_)
