# SPDX-License-Identifier: Apache-2.0
"""A private file → a table of the vault, checked cell by cell against the schema."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent_server.domain.derived import Derived
from reticent_server.domain.schema import Column, Schema, Unit
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import CuratorError
from reticent_server.numerics.derive import derived_values
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.cells import Encoded, Fault, encode
from reticent_server.vault.files import FileFormat, read_blocks
from reticent_server.vault.loading import Load
from reticent_server.vault.names import PERSON, file_mark, fingerprint, hashes
from reticent_server.vault.person_rows import PersonRows
from reticent_server.vault.placing import Placing
from reticent_server.vault.units import UnitCounter, unit_texts

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A stored table. n: its rows, or its persons. For the curator only: clipped, by column, how many values were
    outside the bounds; left_out, how many rows beyond `max_rows` of a person are not stored; outside, how many
    persons of the file have no place in the population."""

    source: VaultTable
    clipped: Mapping[str, int]
    left_out: int = 0
    outside: int = 0

    @property
    def n(self) -> int:
        """What is public of the size."""
        return self.source.n // self.source.max_rows


def ingest(
    load: Load,
    path: Path,
    schema: Schema,
    *,
    as_format: FileFormat | None = None,
    strict: bool = False,
    progress: Progress = lambda _: None,
    key: bytes = b"",
    placing: Placing | None = None,
) -> Loaded:
    """Stores every row of a CSV or Parquet file in its order, or by persons, and commits the table.

    as_format: None for what the file begins with. strict: a value outside the bounds is refused instead of clipped, and so is a person's row beyond `max_rows`.
    progress: called after every block with the fraction done. Raises CuratorError naming row and column of the
    first bad cell. key: under which the vault names persons and files (vault.names); empty: it does not. placing: the
    places of the population's persons, which the table takes; None: it has an order of its own.
    """
    clipped = {column.name: 0 for column in schema.columns}
    naming = Naming(schema.unit, key)
    stored = load.create(schema, naming.fingerprint)
    counter, persons = UnitCounter(schema.unit), PersonRows(schema.unit, placing)
    many, placed = schema.unit.several_rows, placing is not None
    for block in read_blocks(path, wanted_columns(schema), as_format):
        encoded = encode_block(schema, block, strict=strict)
        if strict or not many:
            counter.add(block)
        arrays = stored_arrays(stored, encoded) | naming.column(block)
        if placed:
            persons.add_named(names_in(arrays), arrays)
        elif many:
            persons.add(block, arrays)
        else:
            load.append(arrays, block.rows)
        for name, column in encoded.items():
            clipped[name] += column.clipped
        progress(block.done)
    for positions, rows in persons.batches():
        load.append_at(positions, rows)
    if not load.rows:
        raise CuratorError(
            f"{path.name} has no rows{' of persons of the population' if placed else ''}."
        )
    source = load.publish(persons.count if placed or many else None)
    source = replace(source, mark=file_mark(path, key) if key else "")
    if placing is not None:
        source = replace(source, spine=placing.spine.id, gaps=schema.unit.gaps)
    return Loaded(source, clipped, persons.left_out, persons.outside)


def names_in(arrays: Mapping[str, pa.Array]) -> list[str]:
    """The stored hashes of the rows' persons, as texts."""
    names: list[str] = np.asarray(arrays[PERSON]).astype(str).tolist()
    return names


def wanted_columns(schema: Schema) -> list[str]:
    """The file's columns that are read: the declared ones, and the one that names the unit."""
    if schema.derived:
        raise CuratorError("The schema's derived columns have not been read.")
    unit = () if schema.unit.column is None else (schema.unit.column,)
    return list(dict.fromkeys([*(c.source for c in schema.columns if c.source), *unit]))


def encode_block(schema: Schema, block: FileBlock, *, strict: bool) -> dict[str, Encoded]:
    """Every declared column of a block, or an error for its first bad cell in reading order."""
    encoded: dict[str, Encoded] = {}
    first: tuple[Column, Fault] | None = None
    in_file = [column for column in schema.columns if column.source]
    for column in in_file:
        result = encode(column, block.columns[column.source], strict=strict)
        if isinstance(result, Encoded):
            encoded[column.name] = result
        elif first is None or result.index < first[1].index:
            first = column, result
    if first is not None:
        column, fault = first
        place = block.place(fault.index)
        raise CuratorError(f"In {place}, column {column.name}: {fault.reason}.")
    for column in schema.columns:
        if column.recode.derived is not None:
            encoded[column.name] = derive(column, column.recode.derived, encoded)
            if strict and encoded[column.name].clipped:
                raise CuratorError(
                    f"Column {column.name}: a derived value is outside its bounds (strict)."
                )
    return encoded


def derive(column: Column, derived: Derived, encoded: Mapping[str, Encoded]) -> Encoded:
    """A derived column of a block from the stored values of others; missing where one of them is."""
    missing = np.logical_or.reduce([encoded[name].missing for name in derived.reads])
    values = derived_values(derived, {name: encoded[name].values for name in derived.reads})
    known = np.where(missing, column.lower, values)
    stored = np.where(missing, 0.0, np.clip(known, column.lower, column.upper))
    outside = (known < column.lower) | (known > column.upper)
    return Encoded(stored + 0.0, missing, int(outside.sum()))


@dataclass(frozen=True, slots=True)
class Naming:
    """Who names persons: nobody, where the unit is a row or there is no key."""

    unit: Unit
    key: bytes

    @property
    def fingerprint(self) -> str:
        """The key's; empty: rows carry no names."""
        return fingerprint(self.key) if self.key and self.unit.column is not None else ""

    def column(self, block: FileBlock) -> dict[str, pa.Array]:
        """The stored column of a block's names, if there is one. Raises CuratorError for a row without a unit."""
        if not self.fingerprint or self.unit.column is None:
            return {}
        return {PERSON: pa.array(hashes(unit_texts(block, self.unit.column), self.key))}


def stored_arrays(
    stored: tuple[StoredColumn, ...], encoded: Mapping[str, Encoded]
) -> dict[str, pa.Array]:
    arrays: dict[str, pa.Array] = {}
    for column in stored:
        arrays[column.values] = pa.array(encoded[column.name].values)
        if column.mask is not None:
            arrays[column.mask] = pa.array(encoded[column.name].missing)
    return arrays
