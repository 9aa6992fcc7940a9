# SPDX-License-Identifier: Apache-2.0
"""Squared lengths: the same bits for a record whatever block it comes in."""

import numpy as np
import pytest

from reticent_server.numerics.lengths import squared_lengths
from support.seeds import seeded


@pytest.mark.sample(4)
@pytest.mark.parametrize("size", [1, 2, 5, 11, 64])
@pytest.mark.parametrize("padding", [0, 8])
def test_a_column_s_length_does_not_depend_on_its_block(size: int, padding: int) -> None:
    rng = seeded(5)
    whole = rng.standard_cauchy((size, 1000 + padding))[:, :1000]
    expected = np.zeros(1000)
    for row in whole:
        expected += row * row
    for rows in (1, 2, 3, 4, 7, 8, 9, 16, 31, 64, 1000):
        pieces = [whole[:, k : k + rows] for k in range(0, 1000, rows)]
        found = [squared_lengths(each, np.empty(each.shape[1])) for each in pieces]
        copied = [squared_lengths(each.copy(), np.empty(each.shape[1])) for each in pieces]
        assert np.array_equal(np.concatenate(found), expected)
        assert np.array_equal(np.concatenate(copied), expected)


def test_no_components_have_no_length() -> None:
    assert squared_lengths(np.empty((0, 3)), np.empty(3)).tolist() == [0, 0, 0]
    assert squared_lengths(np.empty((0, 1)), np.empty(1)).tolist() == [0]
