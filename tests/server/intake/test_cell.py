# SPDX-License-Identifier: Apache-2.0
"""Files that would take the server's memory or time: read in a process with limits, and refused in
one sentence.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent_server.domain.reading import UNSAID
from reticent_server.domain.schema import MAX_COLUMNS, MAX_TEXT
from reticent_server.errors import Conflict, CuratorError, SecondPerson, Unavailable
from reticent_server.intake.cell import CellLimits, in_cell, turn
from reticent_server.intake.looking import LIMITS, Look, looked, refuse_unpacked
from reticent_server.vault.csv_file import BLOCK_BYTES, MOST_BLANK, csv_blocks
from reticent_server.vault.files import read_blocks
from reticent_server.vault.parquet_file import unpacked_bytes
from support.intake import orders
from support.tables.drafts import draft_schema

SMALL = CellLimits(memory=64 << 20, seconds=20, waits=600, reply=1000)
MB = 1 << 20


def refused(order: Callable[[], bytes], limits: CellLimits = SMALL) -> str:
    with pytest.raises(CuratorError) as caught:
        in_cell(order, limits, "rows.csv")
    return caught.value.detail


@pytest.mark.slow
def test_a_reply_comes_back_and_no_longer_one() -> None:
    assert in_cell(orders.Says(1000), SMALL, "rows.csv") == b"x" * 1000
    assert refused(orders.Says(1001)).startswith("rows.csv cannot be read")
    assert refused(orders.Says(100 * MB), replace(SMALL, memory=512 * MB)).count(".") == 3


@pytest.mark.slow
def test_memory_time_and_files_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert in_cell(orders.Takes(16 * MB), SMALL, "rows.csv") == b"%d" % (2 * MB)
    assert "64 MB of memory" in refused(orders.Takes(256 * MB))
    assert in_cell(orders.Counts(), SMALL, "rows.csv") == b"%d" % SMALL.seconds
    assert "or 1 s" in refused(orders.Spins(), replace(SMALL, seconds=1))
    refused(orders.Sleeps(), replace(SMALL, waits=1))
    refused(orders.Writes())
    assert in_cell(orders.Writes(), replace(SMALL, writes=True), "rows.csv") == b"written"


@pytest.mark.slow
def test_what_a_library_says_goes_nowhere(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    assert orders.SECRET not in refused(orders.Tells())
    said = capfd.readouterr()
    assert orders.SECRET not in caplog.text + said.out + said.err


@pytest.mark.slow
def test_errors_of_ours_come_back_as_they_are() -> None:
    with pytest.raises(Conflict, match="there already"):
        in_cell(orders.Refuses(), SMALL, "rows.csv")
    with pytest.raises(SecondPerson) as caught:
        in_cell(orders.Proposes(), SMALL, "rows.csv")
    assert caught.value.proposal_id == "prop_1"


@pytest.mark.slow
def test_a_look_has_no_settings_and_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RETICENT_SECRETS_JSON", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    names = in_cell(orders.Lists(), SMALL, "rows.csv").decode().split()
    assert not [name for name in names if name.startswith(("RETICENT", "AWS"))]
    with_all = in_cell(orders.Lists(), replace(SMALL, reply=100_000, writes=True), "rows.csv")
    assert b"AWS_SECRET_ACCESS_KEY" in with_all


def test_one_at_a_time_of_each_kind(tmp_path: Path) -> None:
    again = turn(tmp_path, "look", 0.0)
    with (
        turn(tmp_path, "look", 0.0),
        turn(tmp_path, "load", 0.0),
        pytest.raises(Unavailable, match="Another file"),
    ):
        again.__enter__()
    with turn(tmp_path, "look", 0.0):
        pass


@pytest.mark.slow
def test_a_look_sees_columns_and_first_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x,when,who is it\n1,2020-01-02,ä\n2,2020-02-03,\n", "utf-8")
    opened = looked(Look(file, MB))
    assert [(c.source, c.name, c.kind) for c in opened.columns] == [
        ("x", "x", "numeric"),
        ("when", "when", "date"),
        ("who is it", "who_is_it", "categorical"),
    ]
    assert opened.of("who is it") == ("ä", "")
    assert "ä" not in repr(opened)
    file.write_text("x\n")
    with pytest.raises(CuratorError, match="no rows"):
        looked(Look(file, MB))


@pytest.mark.slow
def test_a_small_file_of_much_text_is_refused(tmp_path: Path) -> None:
    """One page of 100 MB in a file of some KB: by its footer where it was sent, by the limit where
    it stays.
    """
    file = tmp_path / "bomb.parquet"
    pq.write_table(
        pa.table({"t": ["x" * MB] * 100}), file, compression="zstd", use_dictionary=False
    )
    assert file.stat().st_size < 64 << 10
    with pytest.raises(CuratorError, match="when it is unpacked"):
        looked(Look(file, 4 * MB))
    with pytest.raises(CuratorError, match="64 MB of memory"):
        looked(Look(file, None), replace(LIMITS, memory=64 * MB))


def test_cells_that_a_footer_says_nothing_of_are_counted(tmp_path: Path) -> None:
    """A run of equal cells takes bytes in the file, and 8 bytes a cell in memory."""
    file = tmp_path / "runs.parquet"
    pq.write_table(pa.table({"x": np.ones(3 * MB, np.int64)}), file)
    assert unpacked_bytes(file) >= 24 * MB
    refuse_unpacked(file, 2 * MB)
    with pytest.raises(CuratorError, match="16 MB when it is unpacked"):
        refuse_unpacked(file, MB)


@pytest.mark.slow
def test_long_cells_come_in_short_blocks(tmp_path: Path) -> None:
    text = "x" * 100_000
    (tmp_path / "a.csv").write_text("a\n" + f"{text}\n" * 200)
    lengths = [block.rows for block in csv_blocks(tmp_path / "a.csv", ["a"], UNSAID)]
    assert sum(lengths) == 200
    assert max(lengths) <= 1.1 * BLOCK_BYTES / len(text)
    pq.write_table(pa.table({"a": [text * 10] * 150}), tmp_path / "a.parquet", use_dictionary=False)
    lengths = [block.rows for block in read_blocks(tmp_path / "a.parquet", ["a"], UNSAID)]
    assert sum(lengths) == 150
    assert max(lengths) < 100


@pytest.mark.slow
def test_a_draft_is_of_so_many_columns_with_names_of_so_many_letters(tmp_path: Path) -> None:
    """On the command line, too, and for Parquet."""
    for width in (MAX_COLUMNS, MAX_COLUMNS + 1):
        names = [f"c {i}" for i in range(width)]
        (tmp_path / f"{width}.csv").write_text(
            ",".join(names) + "\n" + ",".join("1" * width) + "\n"
        )
        pq.write_table(pa.table({name: [1] for name in names}), tmp_path / f"{width}.parquet")
    for ending in ("csv", "parquet"):
        assert draft_schema(tmp_path / f"{MAX_COLUMNS}.{ending}").count("kind: ") >= MAX_COLUMNS
        with pytest.raises(CuratorError, match="501 columns"):
            draft_schema(tmp_path / f"{MAX_COLUMNS + 1}.{ending}")
    (tmp_path / "long.csv").write_text("a" * (MAX_TEXT + 1) + "\n1\n")
    with pytest.raises(CuratorError, match="longer than 256"):
        draft_schema(tmp_path / "long.csv")


@pytest.mark.slow
def test_the_longest_reply_of_a_look_is_within_its_limit(tmp_path: Path) -> None:
    names = [f"{i:03}" + '"' * (MAX_TEXT - 3) for i in range(MAX_COLUMNS)]
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    cells = ",".join(["\x01" * 60] * MAX_COLUMNS)
    (tmp_path / "wide.csv").write_text(quoted + "\n" + f"{cells}\n" * 6)
    assert len(Look(tmp_path / "wide.csv", 64 * MB)()) < LIMITS.reply


def test_blank_lines_have_an_end(tmp_path: Path) -> None:
    file = tmp_path / "blank.csv"
    file.write_text("a\n" + "\n" * MOST_BLANK + "1\n" + "\n" * MOST_BLANK)
    assert [block.rows for block in csv_blocks(file, ["a"], UNSAID)] == [1]
    file.write_text("a\n" + "\n" * (MOST_BLANK + 1) + "1\n")
    with pytest.raises(CuratorError, match="too many blank lines"):
        list(csv_blocks(file, ["a"], UNSAID))
