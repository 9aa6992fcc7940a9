# SPDX-License-Identifier: Apache-2.0
"""What is loaded is what is read: same values, same order, from CSV and from Parquet."""

import csv
import io
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.databases.vaults import Vault, boolean, categorical, csv_file, integer, numeric, schema

LEVELS = ("a", "b c", 'say "x"', "é,\n1", "0")
COLUMNS = (
    numeric("x", -1e300, 1e300),
    integer("k", -(2**53), 2**53, missing=("", "NA")),
    boolean("b", missing=("?",)),
    categorical("g", *LEVELS, missing=("", "-")),
    numeric("y.z", -5, 5, missing=("nan",)),
)
NAMES = [c.name for c in COLUMNS]

finite = st.floats(-1e300, 1e300, allow_subnormal=False)
ROWS = st.lists(
    st.tuples(
        finite,
        st.none() | st.integers(-(2**53), 2**53),
        st.none() | st.booleans(),
        st.none() | st.integers(0, len(LEVELS) - 1),
        st.none() | st.floats(-9, 9),
    ),
    min_size=1,
    max_size=30,
)
Record = Sequence[float | None]


def check(vault: Vault, file: Path, rows: list[Record]) -> None:
    loaded = vault.load(file, schema(*COLUMNS))
    assert loaded.source.n == len(rows)
    table = vault.read(loaded.source, NAMES)
    masked = [name for n in NAMES[1:] for name in (n, f"{n}:missing")]
    assert table.schema.names == ["x", *masked]
    for column, cells in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        clip = np.clip([0.0 if c is None else float(c) for c in cells], column.lower, column.upper)
        np.testing.assert_array_equal(table[column.name].to_numpy(), clip)
        assert table[column.name].type == pa.float64()
        if column.may_be_missing:
            missing = table[f"{column.name}:missing"]
            assert (missing.type, missing.to_pylist()) == (pa.bool_(), [c is None for c in cells])
    outside = sum(r[4] is not None and abs(r[4]) > 5 for r in rows)
    assert loaded.clipped == {"x": 0, "k": 0, "b": 0, "g": 0, "y.z": outside}


def as_csv(rows: list[Record], style: int) -> str:
    """One of several spellings of the same rows, with a column that the schema does not name."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=("\n", "\r\n")[style % 2])
    pad = ("", " ", "\t")[style % 3]
    writer.writerow([f"{pad}{name} " for name in ["unused", *NAMES]])
    truths = (("false", "true"), ("0", "1"), ("No", "YES"))[style % 3]
    for x, k, b, g, y in rows:
        cells = [
            repr(x) if x >= 0 or style % 2 else f"{x:.17e}",
            ("", "NA")[style % 2] if k is None else f"{k:+d}" if style % 2 else f"{k}",
            "?" if b is None else truths[int(b)],
            "-" if g is None else LEVELS[int(g)],
            "nan" if y is None else repr(y),
        ]
        writer.writerow(["junk, \n"] + [cell + pad for cell in cells])
    return out.getvalue()


def as_parquet(rows: list[Record], style: int) -> pa.Table:
    x, k, b, g, y = (list(column) for column in zip(*rows, strict=True))
    levels = pa.array([None if c is None else LEVELS[c] for c in g], pa.string())
    spellings = [
        levels,
        levels.dictionary_encode(),
        pa.array(levels.to_pylist(), pa.large_string()),
    ]
    truths = pa.array(b, pa.bool_())
    arrays = [
        pa.array(range(len(rows))),
        pa.array(x, pa.float64()),
        pa.array(k, pa.int64()),
        truths if style % 2 else truths.cast(pa.int8()),
        spellings[style % 3],
        pa.array([float("nan") if c is None and style % 2 else c for c in y], pa.float64()),
    ]
    return pa.table(arrays, names=["unused", *NAMES])


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, style=st.integers(0, 5), parquet=st.booleans(), size=st.integers(1, 7))
def test_any_table_comes_back(
    sqlite_vault: Vault, tmp_path: Path, rows: list[Record], style: int, parquet: bool, size: int
) -> None:
    module = "parquet_file" if parquet else "csv_file"
    with patch(f"reticent_server.vault.{module}.rows_per_block", return_value=size):
        if parquet:
            pq.write_table(as_parquet(rows, style), tmp_path / "rows.parquet", row_group_size=5)
            check(sqlite_vault, tmp_path / "rows.parquet", rows)
        else:
            check(sqlite_vault, csv_file(tmp_path, as_csv(rows, style)), rows)


@pytest.mark.slow
@pytest.mark.sample(4)
def test_both_databases_give_the_same(vault: Vault, tmp_path: Path) -> None:
    rows: list[Record] = [
        (1e300, None, True, 3, None),
        (-0.0, 2**53, None, None, 7.5),
        (0.1, -1, False, 0, -5.0),
    ]
    many = rows * 22_000  # several batches of every reader
    check(vault, csv_file(tmp_path, as_csv(many, 1)), many)


def test_zeros_have_no_sign(vault: Vault, tmp_path: Path) -> None:
    file = csv_file(tmp_path, "x\n-0.0\n-1e-400\n0\n")
    table = vault.read(vault.load(file, schema(numeric("x"))).source, ["x"])
    assert not np.signbit(table["x"].to_numpy()).any()


def test_a_subset_of_columns_in_any_order_and_none(vault: Vault, tmp_path: Path) -> None:
    file = csv_file(tmp_path, "a,b\n1,2\n3,4\n")
    source = vault.load(file, schema(numeric("a"), integer("b"))).source
    assert vault.read(source, ["b", "a", "b"]).to_pydict() == {"b": [2.0, 4.0], "a": [1.0, 3.0]}
    assert vault.read(source, []).num_rows == 2
    with pytest.raises(KeyError):
        vault.read(source, ["c"])


def test_typed_parquet_cells_are_compared_by_their_text(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    columns = {
        "k": pa.array([-9, 3, 250], pa.int16()),
        "i": pa.array([0, 1, None], pa.uint8()),
        "f": pa.array([1.0, float("nan"), 2.5], pa.float32()),
        "t": pa.array([True, False, None]),
        "n": pa.nulls(3),
        "d": pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("3.25")]),
    }
    pq.write_table(pa.table(columns), tmp_path / "typed.parquet")
    declared = schema(
        integer("k", missing=("-9", "NA")),
        categorical("i", "1", "0", missing=("",)),
        categorical("f", "2.5", "1", missing=("",)),
        categorical("t", "false", "true", missing=("",)),
        numeric("n", missing=("",)),
        numeric("d", 0, 2),
    )
    loaded = sqlite_vault.load(tmp_path / "typed.parquet", declared)
    table = sqlite_vault.read(loaded.source, list(columns)).to_pydict()
    assert table == {
        "k": [0.0, 3.0, 100.0],
        "k:missing": [True, False, False],
        "i": [1.0, 0.0, 0.0],
        "i:missing": [False, False, True],
        "f": [1.0, 0.0, 0.0],
        "f:missing": [False, True, False],
        "t": [1.0, 0.0, 0.0],
        "t:missing": [False, False, True],
        "n": [0.0, 0.0, 0.0],
        "n:missing": [True, True, True],
        "d": [1.0, 2.0, 2.0],
    }
    assert loaded.clipped == {"k": 1, "i": 0, "f": 0, "t": 0, "n": 0, "d": 1}


def test_byte_order_mark_blank_lines_and_quotes(sqlite_vault: Vault, tmp_path: Path) -> None:
    text = '\ufeff x , g\r\n\r\n 1 , "a\nb"\n2,c\n\n'
    source = sqlite_vault.load(
        csv_file(tmp_path, text), schema(numeric("x"), categorical("g", "c", "a\nb"))
    ).source
    assert sqlite_vault.read(source, ["x", "g"]).to_pydict() == {"x": [1.0, 2.0], "g": [1.0, 0.0]}
