# SPDX-License-Identifier: Apache-2.0
"""The random subset of rows: a function of key and position, each row by itself."""

from itertools import pairwise

import numpy as np
import pytest

from reticent_server.domain.row_subset import CHUNK, RowSubset

KEY = b"of one release"


def test_a_stride_of_one_is_everything() -> None:
    assert np.array_equal(RowSubset(1, KEY).positions(3, 1003), np.arange(3, 1003))
    assert RowSubset(1).count(1003, 3) == 1000


@pytest.mark.parametrize("stride", [2, 8, 256])
def test_parts_are_those_of_the_whole(stride: int) -> None:
    n = 3 * CHUNK + 11
    subset, whole = RowSubset(stride, KEY), RowSubset(stride, KEY).positions(0, n)
    assert (np.diff(whole) > 0).all()
    assert subset.count(n) == len(whole)
    borders = [0, 1, 7, 64, 65, 4_096, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5, n]
    parts = [subset.positions(a, b) for a, b in pairwise(borders)]
    assert np.array_equal(np.concatenate(parts), whole)
    for a, b in pairwise(borders):
        assert subset.count(b, a) == ((whole >= a) & (whole < b)).sum()
    assert subset.positions(100, 100).size == 0


@pytest.mark.parametrize("stride", [2, 8])
def test_rows_are_chosen_one_by_one_at_the_stated_rate(stride: int) -> None:
    """Counts, pairs at any distance, and pairs over two keys: as of independent coins."""
    n, p = 1 << 18, 1 / stride
    chosen = np.zeros((2, n))
    for row, key in zip(chosen, (b"one", b"other"), strict=True):
        row[RowSubset(stride, key).positions(0, n)] = 1
    coins = (chosen - p) / np.sqrt(p * (1 - p))
    assert np.abs(coins.sum(axis=1)).max() < 5 * np.sqrt(n)
    for lag in (1, 2, 3, 4, 7, 8, 16, 64, 4096, CHUNK):
        assert np.abs((coins[:, lag:] * coins[:, :-lag]).sum(axis=1)).max() < 5 * np.sqrt(n)
    assert abs((coins[0] * coins[1]).sum()) < 5 * np.sqrt(n)
    for period in (3, 8):
        sums = np.array([coins[:, phase::period].sum(axis=1) for phase in range(period)])
        assert np.abs(sums).max() < 5 * np.sqrt(n / period)


@pytest.mark.parametrize("unit", [2, 5, 7])
def test_units_come_whole_or_not_at_all(unit: int) -> None:
    """Those of a key are the same units for any number of places, and any cut gives the same
    places.
    """
    n = 3 * unit * 5_000
    subset = RowSubset(8, KEY, unit)
    whole = subset.positions(0, n)
    units = whole.reshape(-1, unit)
    assert (units % unit == np.arange(unit)).all()
    assert np.array_equal(units[:, 0] // unit, RowSubset(8, KEY).positions(0, n // unit))
    borders = [0, 1, unit, 4 * unit + 1, 999, n // 2, n]
    parts = [subset.positions(a, b) for a, b in pairwise(borders)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert [subset.count(b, a) for a, b in pairwise(borders)] == [len(part) for part in parts]


def test_the_key_is_not_shown() -> None:
    assert "release" not in repr(RowSubset(4, KEY))
