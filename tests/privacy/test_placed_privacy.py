# SPDX-License-Identifier: Apache-2.0
"""Sums of contributions that lie in one place of many: bit for bit those of the same contributions
written out.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import CountSum, GramSum, Placed, VectorSum
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import norm_limit
from support.seeds import seeded

RHO = RHO_UNITS // 2
WILD = (0.0, -0.0, 1.0, -1.0, 1 + 1e-9, 1 - 1e-12, 1e300, -1e300, 1e-320, np.inf, -np.inf, np.nan)


def rows(k: int, groups: int, n: int, elsewhere: float, seed: int) -> Placed:
    """Contributions about as long as the clip 1, some far longer, some that are no numbers, groups
    that do not exist.
    """
    rng = seeded(seed)
    v = rng.normal(size=(k, n)) / sqrt(k) * rng.choice([0.3, 1.0, 30.0], n)
    wild = rng.random((k, n)) < 0.1
    v[wild] = rng.choice(WILD, np.count_nonzero(wild))
    return Placed(v, rng.integers(-2, groups + 2, n), groups, elsewhere)


@pytest.mark.parametrize("elsewhere", [0.0, 0.05, -0.11, 3.0])
@pytest.mark.parametrize(("k", "groups"), [(1, 1), (1, 7), (2, 50), (3, 4)])
def test_vectors_add_up_as_written_out(k: int, groups: int, elsewhere: float) -> None:
    part, placed = (
        VectorSum(k * groups, 1.0, RHO, groups=groups),
        rows(k, groups, 2_000, elsewhere, k + groups),
    )
    written = noisy_sum.encode(replace(part, groups=1), placed.written_out())
    np.testing.assert_array_equal(noisy_sum.encode(part, placed), written)
    assert np.any(written != 0)


@pytest.mark.parametrize(("k", "groups"), [(1, 1), (2, 50), (3, 4)])
def test_gram_matrices_add_up_as_written_out(k: int, groups: int) -> None:
    part, placed = (
        GramSum(k * groups, 1.0, RHO, groups=groups),
        rows(k, groups, 2_000, 0.0, k + groups),
    )
    written = noisy_sum.encode(replace(part, groups=1), placed.written_out())
    np.testing.assert_array_equal(noisy_sum.encode(part, placed), written)
    assert np.any(written != 0)


def changes(part: VectorSum | GramSum, elsewhere: float, groups: int) -> float:
    """What one record's replacement changes a sum by, over values at the clip and beyond it and all
    groups.
    """
    values = np.array([*WILD, 0.5, -0.5, 7.0])
    v, g = (each.ravel() for each in np.meshgrid(values, np.arange(-1, groups)))
    ones = [Placed(v[i : i + 1][None, :], g[i : i + 1], groups, elsewhere) for i in range(len(v))]
    sums = np.array([noisy_sum.encode(part, one).ravel() for one in ones], dtype=float)
    squares = (sums**2).sum(axis=1)
    return float(np.sqrt(np.maximum(squares[:, None] + squares - 2 * sums @ sums.T, 0.0).max()))


@pytest.mark.parametrize("elsewhere", [0.0, 0.3, -2.0])
def test_the_search_for_vectors_stays_within_the_bound(elsewhere: float) -> None:
    part = VectorSum(3, 1.0, RHO, groups=3)
    most = changes(part, elsewhere, 3)
    assert most <= noisy_sum.sensitivity(part) * (1 + 1e-12)
    if not elsewhere:  # inside one group, from one end to the other
        assert most >= noisy_sum.sensitivity(part) * (1 - 1e-6)


def test_the_search_for_gram_matrices_attains_the_bound() -> None:
    part = GramSum(3, 1.0, RHO, groups=3)
    most = changes(part, 0.0, 3)
    assert noisy_sum.sensitivity(part) * (1 - 1e-3) <= most <= noisy_sum.sensitivity(part)


def test_a_record_is_in_one_place_whatever_the_map_says() -> None:
    part, v = VectorSum(4, 1.0, RHO, groups=4), np.ones((1, 6))
    placed = Placed(v, np.array([0, 3, 4, -1, -7, 99]), 4)
    sums = noisy_sum.encode(part, placed)
    assert sums.tolist() == [sums[0], 0, 0, sums[0]]
    assert norm_limit(part) * (1 - 1e-6) <= sums[0] <= norm_limit(part)


def test_a_record_that_is_no_number_contributes_nothing() -> None:
    placed = Placed(np.full((1, 3), np.nan), np.array([0, 1, -1]), 2, 0.4)
    assert noisy_sum.encode(VectorSum(2, 1.0, RHO, groups=2), placed).tolist() == [0, 0]


def test_what_has_no_places_is_refused() -> None:
    placed = Placed(np.ones((1, 3)), np.zeros(3, dtype=np.int64), 2, 0.4)
    grams = (GramSum(2, 1.0, RHO, groups=2), GramSum(2, 1.0, RHO, signed=True, groups=2))
    for part in (*grams, CountSum(2, RHO)):
        with pytest.raises(TypeError):
            noisy_sum.encode(part, placed)
    for part in (VectorSum(3, 1.0, RHO, groups=2), VectorSum(2, 1.0, RHO)):
        with pytest.raises(ValueError, match="planned size"):
            noisy_sum.encode(part, placed)
    with pytest.raises(TypeError):
        noisy_sum.encode(VectorSum(2, 1.0, RHO, groups=2), placed.written_out())


def test_blocks_of_a_gram_matrix_have_their_noise_and_nothing_else_is_released() -> None:
    part = GramSum(100, 1.0, RHO, groups=50)
    scale, off = noisy_sum.scale(part), noisy_sum.off_diagonal_scale(part)
    i, j = np.arange(100), np.arange(50)
    unit = noisy_sum.noise_sd(part) / scale
    drawn = [
        noisy_sum.release(part, Private(np.zeros((100, 100), dtype=np.int64))).values / unit
        for _ in range(40)
    ]
    diagonal = np.concatenate([draw[i, i] for draw in drawn])
    pairs = np.concatenate([draw[j, 50 + j] for draw in drawn])
    assert diagonal.std() == pytest.approx(scale, rel=0.08)  # of 4,000 draws: 7 standard errors
    assert pairs.std() == pytest.approx(off, rel=0.11)  # of 2,000 draws
    for draw in drawn:
        draw[i, i] = draw[j, 50 + j] = draw[50 + j, j] = 0
        assert not draw.any()
