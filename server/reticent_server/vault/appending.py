# SPDX-License-Identifier: Apache-2.0
"""A new wave of rows: the old version's rows and a file's in one new table; the old table stays as
it is.

Persons are found again by their stored names (vault.names). A person with rows in both has them
together, in canonical order, of which the first `max_rows` are kept, as at a load.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import DRIVER_ERRORS, VaultUrl, stream
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.ingest import (
    Loaded,
    Naming,
    Progress,
    as_read,
    encoded_blocks,
    names_in,
    stored_arrays,
)
from reticent_server.vault.loading import Load
from reticent_server.vault.names import PERSON, file_mark
from reticent_server.vault.person_rows import PersonRows
from reticent_server.vault.placing import Placing

_NOT_NAMED = (
    "The version's persons have no names in the vault, or under another key than the secrets "
    "file's, so that "
    "a wave cannot find them; load the whole table again."
)
_UNREADABLE = "The version's rows cannot be read; nothing was appended."
Arrays = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Wave:
    """A file of new rows. strict: as at a load. key: under which persons are named. placing: their
    places in the population, if it has a spine.
    """

    path: Path
    strict: bool
    key: bytes
    progress: Progress = lambda _: None
    placing: Placing | None = None


def append(load: Load, old: VaultTable, schema: Schema, wave: Wave) -> Loaded:
    """Stores the old rows and the wave's, and commits the table. Raises CuratorError naming row and
    column.
    """
    naming = Naming(schema.unit, wave.key)
    if old.names != naming.fingerprint or (schema.unit.column is not None and not old.names):
        raise CuratorError(_NOT_NAMED)
    stored = load.create(schema, naming.fingerprint)
    clipped = {column.name: 0 for column in schema.columns}
    rows = _Together(load, schema, wave)
    for arrays in _old_rows(load.vault, old, stored):
        rows.add(arrays)
    kept = rows.count
    for each in encoded_blocks(wave.path, as_read(wave.path, schema), strict=wave.strict):
        block, encoded = each.block, each.columns
        rows.add(stored_arrays(stored, encoded) | naming.column(block), block)
        for name, column in encoded.items():
            clipped[name] += column.clipped
        wave.progress(block.done)
    if rows.count == kept:
        raise CuratorError(f"{wave.path.name} has no rows.")
    return rows.published(clipped)


class _Together:
    """Rows of both, stored at once where each is by itself, and at the end where persons have
    places or several rows.
    """

    def __init__(self, load: Load, schema: Schema, wave: Wave) -> None:
        self._load = load
        self._unit = schema.unit
        self._wave = wave
        self._by_persons = wave.placing is not None or schema.unit.several_rows
        self._persons = PersonRows(schema.unit, wave.placing)
        self._seen = set[int]()
        self.count = 0

    def add(self, arrays: Arrays, block: FileBlock | None = None) -> None:
        """block: of the file, for an error's place."""
        rows = len(next(iter(arrays.values())))
        self.count += rows
        if PERSON in arrays and not self._unit.several_rows:
            self._once(np.asarray(arrays[PERSON]).tolist(), block)
        if self._by_persons:
            self._persons.add_named(names_in(arrays), arrays)
        else:
            self._load.append(arrays, rows)

    def _once(self, names: list[int], block: FileBlock | None) -> None:
        """Each person has one row. Raises CuratorError for the first that has another."""
        for index, name in enumerate(names):
            if name in self._seen and block is not None:
                raise CuratorError(
                    f"In {block.place(index)}, column {self._unit.column}: the unit has a row "
                    "already, and "
                    "`unit: max_rows` allows one."
                )
            self._seen.add(name)

    def published(self, clipped: dict[str, int]) -> Loaded:
        """Stores what is left and commits."""
        placing = self._wave.placing
        for positions, arrays in self._persons.batches():
            self._load.append_at(positions, arrays)
        left_out = self._persons.left_out
        if self._wave.strict and left_out:
            raise CuratorError(
                f"{left_out} rows are more than the {self._unit.max_rows} that `unit: max_rows` "
                "allows a "
                f"{self._unit.column}; leave --strict out to keep each one's first rows."
            )
        table = self._load.publish(self._persons.count if self._by_persons else None)
        table = replace(table, mark=file_mark(self._wave.path, self._wave.key))
        if placing is not None:
            table = replace(table, spine=placing.spine.id, gaps=self._unit.gaps)
        return Loaded(table, clipped, left_out, self._persons.outside)


def _old_rows(
    vault: VaultUrl, old: VaultTable, stored: tuple[StoredColumn, ...]
) -> Iterator[Arrays]:
    """The stored columns of the old version, by batches, under the names of the new table."""
    names = [name for c in stored for name in (c.values, c.mask) if name is not None]
    names += [PERSON] if old.names else []
    sql = f"SELECT {', '.join(names)} FROM {old.table} ORDER BY position"  # noqa: S608 - generated names
    masks = {c.mask for c in stored}
    failed = old.columns != stored
    try:
        for batch in () if failed else stream(vault, sql):
            columns = {name: np.asarray(batch.column(name)) for name in names}
            yield {n: pa.array(v.astype(np.bool_) if n in masks else v) for n, v in columns.items()}
    except DRIVER_ERRORS:
        failed = True
    if failed:  # outside the handler: no driver text is kept as context
        raise CuratorError(_UNREADABLE)
