# SPDX-License-Identifier: Apache-2.0
"""Cells of a registered source: each by itself, in a time that no cell decides."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.schema import Column, ColumnKind, Recode
from reticent_server.vault import cells
from reticent_server.vault.cells import Encoded, Fault, check, encode
from support.seeds import seeded

ROWS = 1 << 16
X = Column("x", ColumnKind.NUMERIC, 1.0, 9.0)
G = Column("g", ColumnKind.CATEGORICAL, 0, 1, ("a", "é"), ("NA",))
B = Column("b", ColumnKind.BOOLEAN, 0, 1)


def texts(values: Any) -> Any:
    """A column of texts from bytes, of which some are not UTF-8, as files and databases give it."""
    stored = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers(), stored.null_count)


BROKEN = [b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"a\x80"]


def test_a_text_that_is_not_utf8_is_a_bad_cell_and_no_other() -> None:
    found = check(G, texts([b"a", *BROKEN, "é".encode(), b" a ", None, b"NA", b"b"]))
    assert found.bad.tolist() == [False] + [True] * 6 + [False] * 4 + [True]
    assert found.missing.tolist() == [False] * 9 + [True] * 2 + [False]
    assert found.values.tolist() == [0.0] + [0.0] * 6 + [1.0, 0.0, 0.0, 0.0, 0.0]
    found = check(X, texts([b"2", *BROKEN, b"+3.5", b".5e1", b"x", b"1e999", b"nan", b"inf"]))
    assert found.bad.tolist() == [False] + [True] * 6 + [False] * 2 + [True] * 4
    assert found.values.tolist() == [2.0] + [1.0] * 6 + [3.5, 5.0] + [1.0] * 4


@pytest.mark.slow
def test_utf8_is_told_as_python_tells_it() -> None:
    rng = seeded(0)
    some = [bytes(rng.integers(0, 256, rng.integers(0, 5), dtype=np.uint8)) for _ in range(20_000)]
    some += [bytes([a, b]) for a in range(256) for b in range(0, 256, 3)]
    some += [
        bytes([a, b, c])
        for a in range(0xE0, 0xF6)
        for b in range(0x7E, 0xC2)
        for c in (0x7F, 0x80, 0xBF)
    ]
    some += [bytes([a, b, 0x80, 0xBF]) for a in range(0xEE, 0xF8) for b in range(0x7E, 0xC2)]
    level = Column("g", ColumnKind.CATEGORICAL, 0, 0, ("?",))
    taken = []

    def codes(values: Any, levels: Any) -> Any:
        taken.append(values.is_valid().to_numpy(zero_copy_only=False))
        return np.zeros(len(values))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_codes", codes)
        check(level, texts(some))
    for value, valid in zip(some, taken[0], strict=True):
        try:
            value.decode()
        except UnicodeDecodeError:
            assert not valid
        else:
            assert valid


def blocks() -> Iterator[Any]:
    """Columns and cells: as they should be, and with one, or all, of what could be slow."""
    numbers = [b"%d.25" % (k % 10) for k in range(ROWS)]
    levels = [b"a" if k % 3 else "é".encode() for k in range(ROWS)]
    for column, good, bad in (
        (X, numbers, b"\xff"), (X, numbers, b"secret"), (X, numbers, b"1e999"), (X, numbers, b""),
        (G, levels, b"\xff"), (G, levels, b"zz"), (B, [b"yes"] * ROWS, b"\xe9"),
    ):  # fmt: skip
        yield column, good, [[*good[:-1], bad], [bad, *good[1:]], [bad] * ROWS]


@pytest.mark.slow
def test_no_cell_decides_how_long_the_others_take() -> None:
    """Processor time of a block with one bad cell, or with nothing else, against one with none: it
    was a thousand times as much. The least of a few runs, so that a busy machine does not show.
    """
    for column, good, others in blocks():
        usual = least_time(column, good)
        for other in others:
            assert least_time(column, other) <= 4 * usual + 0.02


def least_time(column: Any, values: Any) -> Any:
    block, found = texts(values), []
    for _ in range(5):
        start = process_time()
        check(column, block)
        found.append(process_time() - start)
    return min(found)


def test_a_failure_that_nobody_has_foreseen_is_found_by_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of a thousand cells that no function can take: a bad cell, and twenty passes."""
    real, calls = cells._check, []

    def fails(column: Any, part: Any) -> Any:
        calls.append(len(part))
        if "7" in part.to_pylist():
            raise pa.ArrowInvalid
        return real(column, part)

    monkeypatch.setattr(cells, "_check", fails)
    found = check(X, texts([b"5"] * 400 + [b"7"] + [b"6"] * 599))
    assert np.flatnonzero(found.bad).tolist() == [400]
    assert found.values.tolist() == [5.0] * 400 + [1.0] + [6.0] * 599
    assert len(calls) <= 2 * 10 + 1


RICH = Column(
    "rich",
    ColumnKind.BOOLEAN,
    0,
    1,
    missing=("?",),
    recode=Recode("Salary", ((">50K", 1.0), ("true", 1.0), ("<=50K", 0.0))),
)
SCHOOL = Column(
    "school",
    ColumnKind.CATEGORICAL,
    0,
    2,
    ("low", "high", "rest"),
    ("?",),
    Recode("", (("9th", 0.0), ("10th", 0.0), ("BA", 1.0)), 2.0),
)


def test_texts_of_the_file_stand_for_values() -> None:
    found = check(RICH, texts([b" >50K", b"<=50K", b"?", b"yes", b"TRUE", b""]))
    assert found.values.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert found.missing.tolist() == [False, False, True, False, False, False]
    assert found.bad.tolist() == [False, False, False, True, True, True]
    typed = check(RICH, pa.array([True, None]))
    assert typed.values.tolist() == [1.0, 0.0]
    assert typed.missing.tolist() == [False, True]


def test_a_catch_all_takes_every_other_text_but_not_an_empty_or_unreadable_one() -> None:
    found = check(SCHOOL, texts([b"9th", b"10th", b"BA", b"PhD", b"?", b"", b"\xff"]))
    assert found.values.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    assert found.missing.tolist() == [False] * 4 + [True, False, False]
    assert found.bad.tolist() == [False] * 5 + [True, True]
    numbers = Column(
        "k", ColumnKind.CATEGORICAL, 0, 1, ("one", "rest"), (), Recode("", (("1", 0.0),), 1.0)
    )
    assert check(numbers, pa.array([1, 2])).values.tolist() == [0.0, 1.0]


def test_encoding_a_file_agrees_with_checking_a_registered_one() -> None:
    cells = texts([b"9th", b"BA", b"PhD", b"?"])
    stored = encode(SCHOOL, cells, strict=True)
    assert isinstance(stored, Encoded)
    assert stored.values.tolist() == check(SCHOOL, cells).values.tolist()
    refused = encode(RICH, texts([b">50K", b"rich"]), strict=False)
    assert refused == Fault((("'rich' is not one of the declared texts", (1,), 1),), 1)
