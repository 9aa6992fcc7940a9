# SPDX-License-Identifier: Apache-2.0
"""A private file → a table of the vault, checked cell by cell against the schema."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent_server.domain.derived import Derived
from reticent_server.domain.schema import Column, Schema, Unit
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import CuratorError
from reticent_server.numerics.derive import derived_values
from reticent_server.vault.blocks import FileBlock, FileFault
from reticent_server.vault.cells import Encoded, encode
from reticent_server.vault.files import read_blocks
from reticent_server.vault.loading import Load
from reticent_server.vault.names import PERSON, file_mark, fingerprint, hashes
from reticent_server.vault.person_rows import PersonRows
from reticent_server.vault.placing import Placing
from reticent_server.vault.problems import Problems
from reticent_server.vault.understanding import understood
from reticent_server.vault.units import UnitCounter, unit_texts

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A stored table. n: its rows, or its persons. For the curator only: clipped, by column, how
    many values were outside the bounds; left_out, how many rows beyond `max_rows` of a person are
    not stored; outside, how many persons of the file have no place in the population.
    """

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
    strict: bool = False,
    progress: Progress = lambda _: None,
    key: bytes = b"",
    placing: Placing | None = None,
) -> Loaded:
    """Stores every row of a file in its order, or by persons, and commits the table. What the
    schema does not say of how the file is read is understood from it.

    strict: a value outside the bounds is refused instead of clipped, and so is a person's row
    beyond `max_rows`. progress: called after every block with the fraction done. Raises
    CuratorError naming rows and columns of bad cells. key: under which the vault names persons and
    files (vault.names); empty: it does not. placing: the places of the population's persons, which
    the table takes; None: it has an order of its own.
    """
    clipped = {column.name: 0 for column in schema.columns}
    naming = Naming(schema.unit, key)
    stored = load.create(schema, naming.fingerprint)
    counter, persons = UnitCounter(schema.unit), PersonRows(schema.unit, placing)
    many, placed = schema.unit.several_rows, placing is not None
    for each in encoded_blocks(path, as_read(path, schema), strict=strict):
        block, encoded = each.block, each.columns
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


def encode_block(
    schema: Schema, block: FileBlock, problems: Problems, *, strict: bool
) -> dict[str, Encoded] | None:
    """Every declared column of a block; None where a cell of the file is bad, which `problems` then
    knows.
    """
    encoded: dict[str, Encoded] = {}
    numbers = schema.reading.numbers
    for position, column in enumerate(schema.columns):
        if column.source:
            cells = block.columns[column.source]
            result = encode(column, cells, strict=strict, numbers=numbers)
            if isinstance(result, Encoded):
                encoded[column.name] = result
            else:
                problems.add(block, column.name, position, result)
    if problems:
        return None
    for column in schema.columns:
        if column.recode.derived is not None:
            encoded[column.name] = derive(column, column.recode.derived, encoded)
            if strict and encoded[column.name].clipped:
                raise CuratorError(
                    f"Column {column.name}: a derived value is outside its bounds (strict)."
                )
    return encoded


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block of a file, whose columns are all good."""

    block: FileBlock
    columns: Mapping[str, Encoded]


def encoded_blocks(path: Path, schema: Schema, *, strict: bool) -> Iterator[EncodedBlock]:
    """The blocks of a file until one has a bad cell; the rest is then only looked at, and all that
    is wrong is said. Raises CuratorError naming rows and columns.
    """
    problems = Problems()
    try:
        for block in read_blocks(path, wanted_columns(schema), schema.reading):
            columns = encode_block(schema, block, problems, strict=strict)
            if columns is not None:
                yield EncodedBlock(block, columns)
    except FileFault as fault:
        problems.refuse(fault.detail)
    problems.refuse()


def as_read(path: Path, schema: Schema) -> Schema:
    """The schema with everything said of how the file is read: by itself, else understood. Raises
    CuratorError.
    """
    numeric = [c.source for c in schema.columns if c.source and _is_of_numbers(c)]
    reading = understood(path, schema.reading, wanted_columns(schema), list(dict.fromkeys(numeric)))
    return replace(schema, reading=reading)


def _is_of_numbers(column: Column) -> bool:
    """Whether texts are read as numbers."""
    return column.kind.is_number and not (column.is_date or column.reads_texts)


def derive(column: Column, derived: Derived, encoded: Mapping[str, Encoded]) -> Encoded:
    """A derived column of a block from the stored values of others; missing where one of them
    is.
    """
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
        """The stored column of a block's names, if there is one. Raises CuratorError for a row
        without a unit.
        """
        if not self.fingerprint or self.unit.column is None:
            return {}
        return {PERSON: pa.array(hashes(unit_texts(block, self.unit.column), self.key))}


def stored_arrays(
    stored: tuple[StoredColumn, ...], encoded: Mapping[str, Encoded]
) -> dict[str, pa.Array]:
    """Arrow arrays by the names of the stored columns: values, and masks where cells
    may be missing."""
    arrays: dict[str, pa.Array] = {}
    for column in stored:
        arrays[column.values] = pa.array(encoded[column.name].values)
        if column.mask is not None:
            arrays[column.mask] = pa.array(encoded[column.name].missing)
    return arrays
