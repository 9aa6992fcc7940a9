# SPDX-License-Identifier: Apache-2.0
"""The same invented table as a CSV file, in SQLite, in PostgreSQL and as Parquet files, for
tests.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import ParquetFiles, Registered, SqlTable
from reticent_server.vault.adbc import connected, execute, parse_url
from reticent_server.vault.parquet_source import ParquetReader
from reticent_server.vault.registered import RegisteredReader
from reticent_server.vault.registering import Registration, register_files, register_table
from reticent_server.vault.sql_source import sql_pieces
from support.databases import postgresql
from support.databases.vaults import boolean, categorical, integer, numeric, schema
from support.seeds import seeded

N = 3000
ALL = ("y", "x", "k", "b", "g", "m")
SCHEMA = schema(
    numeric("y", -40, 40),
    numeric("x", -3, 3),
    integer("k", 0, 9),
    boolean("b"),
    categorical("g", "a", "b", "c", missing=("", "NA")),
    numeric("m", 0, 1, missing=("",)),
)
Row = tuple[Any, ...]


def rows(n: int = N, seed: int = 3) -> list[Row]:
    """(id, y, x, k, b, g, m): values outside the bounds, missing ones, and a negative zero."""
    rng = seeded(seed)
    x, e, m = rng.normal(size=(3, n))
    made: list[Row] = []
    for i in range(n):
        g = None if i % 11 == 0 else "NA" if i % 13 == 0 else "abc"[i % 3]
        missing = None if i % 7 == 0 else float(abs(m[i]))
        made.append((i, float(1 + 2 * x[i] + e[i]), float(x[i]), i % 10, i % 2, g, missing))
    made[1] = (*made[1][:2], -0.0, *made[1][3:])
    return made


def write_csv(path: Path, table: Sequence[Row]) -> Path:
    cells = (",".join("" if v is None else str(v) for v in row[1:]) for row in table)
    path.write_text(",".join(ALL) + "\n" + "\n".join(cells) + "\n")
    return path


def write_parquet(directory: Path, table: Sequence[Row], files: int = 3) -> Path:
    """Several files of several row groups, with typed columns and dictionaries."""
    directory.mkdir()
    columns = list(zip(*table, strict=True))
    typed = {
        "y": pa.array(columns[1], pa.float64()),
        "x": pa.array(columns[2], pa.float64()),
        "k": pa.array(columns[3], pa.int16()),
        "b": pa.array([bool(v) for v in columns[4]], pa.bool_()),
        "g": pa.array(columns[5], pa.string()).dictionary_encode(),
        "m": pa.array(columns[6], pa.float64()),
    }
    whole = pa.table(typed)
    size = -(-len(table) // files)
    for k in range(files):
        part = whole.slice(k * size, size)
        pq.write_table(part, directory / f"part-{k}.parquet", row_group_size=400)
    return directory


def write_sql(url: str, table: Sequence[Row], name: str = "people") -> str:
    """A table with plain types of the database; m is a NUMERIC, b a BOOLEAN where there are
    some.
    """
    place = parse_url(url)
    if place.file is not None:
        place.file.touch()
    sqlite = place.file is not None
    types = "REAL INTEGER" if sqlite else '"double precision" smallint'
    real, small = types.replace('"', "").rsplit(" ", 1)
    yes = "INTEGER" if sqlite else "BOOLEAN"
    columns = (
        f"id BIGINT{'' if sqlite else ' PRIMARY KEY'}, y {real}, x {real}, k {small}, b {yes}, g "
        f"TEXT, m {'REAL' if sqlite else 'NUMERIC'}"
    )
    with connected(place, autocommit=True) as connection:
        execute(connection, f"CREATE TABLE {name} ({columns})")
        for start in range(0, len(table), 500):
            values = ", ".join(_literal(row, sqlite) for row in table[start : start + 500])
            execute(connection, f"INSERT INTO {name} VALUES {values}")
    return url


def _literal(row: Row, sqlite: bool) -> str:
    def one(k: int, value: Any) -> str:
        if value is None:
            return "NULL"
        if k == 4 and not sqlite:
            return "TRUE" if value else "FALSE"
        if isinstance(value, float) and k != 6:
            return f"'{value!r}'::double precision" if not sqlite else repr(value)
        return f"'{value}'" if isinstance(value, str) else repr(value)

    return "(" + ", ".join(one(k, v) for k, v in enumerate(row)) + ")"


def sql(url: str, statement: str) -> None:
    """Somebody else's change to the external table."""
    with connected(parse_url(url), autocommit=True) as connection:
        execute(connection, statement)


def new_url(kind: str, folder: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder / 'external.db'}"
    return postgresql.new_database()


def registered(
    place: str | Path, declared: Schema = SCHEMA, table: str = "people", **options: Any
) -> Registration:
    """The registration of a URL's table or of a directory."""
    if isinstance(place, Path):
        return register_files(place, declared, **options)
    return register_table(lambda _: "here", place, table, declared, **options)


def reader(place: str | Path, source: Registered, declared: Schema = SCHEMA) -> RegisteredReader:
    """The reader of a registration."""
    match source:
        case ParquetFiles():
            return ParquetReader(declared, source)
        case SqlTable():
            return RegisteredReader(declared, sql_pieces(str(place), source))


def read(place: str | Path, source: Registered, columns: Sequence[str] = ALL) -> pa.Table:
    batches = list(reader(place, source).batches(columns))
    return pa.Table.from_batches([batch.unwrap() for batch in batches])
