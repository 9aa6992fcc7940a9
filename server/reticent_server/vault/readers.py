# SPDX-License-Identifier: Apache-2.0
"""Readers of a version's rows. Imported by the engine and by the curator's ingest only."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent_server.domain.private import Private
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import Unavailable
from reticent_server.vault.adbc import DRIVER_ERRORS, Permits, parse_url, probe, stream
from reticent_server.vault.places import ABSENT_MASK, filled
from reticent_server.vault.ports import Reader
from reticent_server.vault.registered import MASK_SUFFIX, UNREADABLE


def open_reader(vault_url: str, source: VaultTable, permits: Permits | None = None) -> Reader:
    """A reader of `source`, which is opened anew for every pass (safe for several threads).

    permits: how many such passes hold a connection at once; None: any number.
    """
    return VaultReader(vault_url, source, permits)


def probe_table(vault_url: str, source: VaultTable) -> None:
    """Asks the vault for no row of `source`. Raises SourceAway where it has no such table."""
    probe(parse_url(vault_url), f"{_select(source.table, source.columns, positions=True)} LIMIT 0")


class VaultReader:
    """Reads a table of the vault by position (vault.ports.Reader)."""

    def __init__(self, vault_url: str, source: VaultTable, permits: Permits | None = None) -> None:
        self._vault = parse_url(vault_url)
        self._permits = permits
        self._table = source.table
        self._n = source.n
        self._persons = source.has_empty_places
        self._stored = {column.name: column for column in source.columns}

    @property
    def n(self) -> int:
        """The number of rows that were loaded."""
        return self._n

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        """Private record batches with exactly n rows in all; for no columns, rows without columns.

        Raises KeyError for a column that is not stored, Unavailable (a constant text) when the
        vault fails or does not hold n rows. A table of persons has a row for every place, and the
        mask of those without one (vault.places).
        """
        return self._read([self._stored[name] for name in dict.fromkeys(columns)])

    def _read(self, stored: Sequence[StoredColumn]) -> Iterator[Private[Any]]:
        rows, failed = 0, False
        sql = _select(self._table, stored, positions=self._persons)
        try:
            batches = stream(self._vault, sql, permits=self._permits)
            for batch in filled(batches, self._n) if self._persons else batches:
                rows += batch.num_rows
                yield Private(_shape(batch, stored))
        except DRIVER_ERRORS:
            failed = True
        if failed or rows != self._n:  # outside the handler: no driver text is kept as context
            raise Unavailable(UNREADABLE)


def _select(table: str, stored: Sequence[StoredColumn], *, positions: bool) -> str:
    names = [name for c in stored for name in (c.values, c.mask) if name is not None]
    names = names if names and not positions else ["position", *names]
    # Every name was generated at load: no text of a user is in the statement.
    return f"SELECT {', '.join(names)} FROM {table} ORDER BY position"  # noqa: S608


def _shape(batch: pa.RecordBatch, stored: Sequence[StoredColumn]) -> pa.RecordBatch:
    """The batch under the declared names: float64 values, boolean masks."""
    fields: dict[str, pa.Array] = {}
    if ABSENT_MASK in batch.schema.names:
        fields[ABSENT_MASK] = batch.column(ABSENT_MASK)
    for column in stored:
        fields[column.name] = pc.cast(batch.column(column.values), pa.float64())
        if column.mask is not None:
            fields[column.name + MASK_SUFFIX] = pc.cast(batch.column(column.mask), pa.bool_())
    if not fields:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_pydict(fields)
