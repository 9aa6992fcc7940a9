# SPDX-License-Identifier: Apache-2.0
"""A file of text once more, as a file of another program: what each extra of the server reads."""

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pandas as pd
import pyreadstat


def stata(table: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_dta(table, str(path))


def database(table: pd.DataFrame, path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("create table people as select * from given")


def workbook(table: pd.DataFrame, path: Path) -> None:
    table.to_excel(path, index=False, engine="xlsxwriter")


WRITERS: Mapping[str, Callable[[pd.DataFrame, Path], None]] = {
    "dta": stata,
    "duckdb": database,
    "xlsx": workbook,
}


def write(text: Path, suffix: str) -> None:
    """The table of `text`, beside it, with the other suffix."""
    WRITERS[suffix](pd.read_csv(text), text.with_suffix(f".{suffix}"))
