# SPDX-License-Identifier: Apache-2.0
"""Where the rows of one version are: what the catalogue stores and a vault reader opens."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A declared column as it is stored: generated names, never text of the curator's.

    values: the stored float64 column. mask: the stored "is missing" column, or None for a column
    that cannot be missing.
    """

    name: str
    values: str
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class VaultTable:
    """A table of the vault with exactly `n` rows, in the order of its position column.

    max_rows: m > 1 where a person has up to m rows. Then n = N·m is the number of places, person
    k's rows are at positions from k·m on, and those that are not stored are places without a row.
    names: a fingerprint of the key under which each row's person is stored (vault.names); empty:
    persons are not named. spine: the id of the spine in whose order persons have their places;
    empty: in an order of the table's own. gaps: whether a person may have no row, where m is 1.
    mark: a keyed hash of the file (vault.names.FileMark), by which it is known again.
    """

    kind: ClassVar[str] = "vault_table"
    table: str
    n: int
    columns: tuple[StoredColumn, ...]
    max_rows: int = 1
    names: str = ""
    spine: str = ""
    gaps: bool = False
    mark: str = ""

    @property
    def has_empty_places(self) -> bool:
        """Whether a place may be without a row."""
        return self.gaps or self.max_rows > 1

    @property
    def persons(self) -> int:
        """N: persons, or rows where each is one."""
        return self.n // self.max_rows


class Form(StrEnum):
    """How a column of a database is read, so that no row of it can make the reading fail.

    number: as float64. decimal: as float64 where its size allows. boolean: as 0 or 1. text: as
    text.
    """

    NUMBER = "number"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a registered table: the declared name, which is also the table's."""

    name: str
    form: Form


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table or view of an external database, of which the first `n` rows are read.

    connection: the name of its URL in the secrets file. table: its name, perhaps behind a schema
    and a point. order: the columns of a key, which are not declared ones; none: SQLite's rowid.
    """

    kind: ClassVar[str] = "sql_table"
    connection: str
    table: str
    order: tuple[str, ...]
    n: int
    columns: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A file of a registered directory, of which the first `rows` rows are read."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """A directory of Parquet files, read in this order; what is added to it later is not read."""

    kind: ClassVar[str] = "parquet_files"
    directory: str
    files: tuple[ParquetFile, ...]

    @property
    def n(self) -> int:
        """The rows of all files together."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A version of a data set under the name that its columns carry in a link."""

    name: str
    dataset: str
    version: int
    table: VaultTable


@dataclass(frozen=True, slots=True)
class Spine:
    """The places of a population's persons: N = n of them, a declared number, whoever is in the
    tables.

    id: a random name, which tables carry whose persons have these places. table: whose persons have
    the first places, in its order; None: nobody has one yet. dataset: the data set whose first
    version `table` is; empty: a register of identifiers. grows: whether a person that has no place
    takes the next free one; else it is left out.
    """

    id: str
    n: int
    grows: bool = False
    table: VaultTable | None = None
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class LinkedTables:
    """Tables about `n` persons, who are the same where their stored names are.

    spine: whose places they have; None: the persons of all tables, sorted by their names, are all.
    """

    kind: ClassVar[str] = "linked_tables"
    n: int
    tables: tuple[NamedTable, ...]
    spine: Spine | None = None


Registered = SqlTable | ParquetFiles
Source = VaultTable | LinkedTables | Registered
