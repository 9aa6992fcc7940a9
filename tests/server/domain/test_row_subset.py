"""The public subset of rows: a function of positions, one run of every group, everywhere in a table."""

from itertools import pairwise

import numpy as np
import pytest

from reticent_server.domain.row_subset import RUN, RowSubset


def test_one_run_of_each_group():
    found = RowSubset(16).positions(0, 16 * RUN * 500)
    runs = found.reshape(500, RUN)
    assert (np.diff(runs, axis=1) == 1).all()
    assert (runs[:, 0] % RUN == 0).all()
    assert (runs[:, 0] // (16 * RUN) == np.arange(500)).all()


def test_a_stride_of_one_is_everything():
    assert np.array_equal(RowSubset(1).positions(3, 1003), np.arange(3, 1003))


@pytest.mark.parametrize("stride", [2, 16, 1 << 16])
def test_parts_are_those_of_the_whole(stride):
    subset, whole = RowSubset(stride), RowSubset(stride).positions(0, 20_011)
    borders = [0, 1, 7, 64, 65, 4_096, 12_345, 20_011]
    parts = [subset.positions(a, b) for a, b in pairwise(borders)]
    assert np.array_equal(np.concatenate(parts), whole)
    for a, b in pairwise(borders):
        assert subset.count(b, a) == ((whole >= a) & (whole < b)).sum()
    assert subset.positions(100, 100).size == 0


def test_membership_never_changes():
    """The first numbers that splitmix64 is published with (seed 0) end in 7, 4, 7, 4 modulo 8."""
    assert RowSubset(8).positions(0, 256)[::RUN].tolist() == [56, 64 + 32, 128 + 56, 192 + 32]


def test_runs_are_evenly_spread_and_follow_no_period():
    stride, groups = 8, 1 << 14
    choice = RowSubset(stride).positions(0, stride * RUN * groups)[::RUN] // RUN % stride
    for period in (1, 2, 3, 4, 7, 8, 64):
        for phase in range(min(period, 4)):
            counts = np.bincount(choice[phase::period], minlength=stride)
            expected = counts.sum() / stride
            assert ((counts - expected) ** 2 / expected).sum() < 40  # χ²(7), of a fixed sequence
