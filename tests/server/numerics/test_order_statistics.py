# SPDX-License-Identifier: Apache-2.0
"""Order statistics within k replacements, against every sample within k replacements."""

from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.columns import GeometricBins, UniformBins
from reticent_server.numerics.lattices import lattice_between, to_lattice
from reticent_server.numerics.order_statistics import (
    largest_gap,
    local_sensitivity,
    quartile_ranks,
    safe_distance,
    smallest_gap,
    window,
)
from reticent_server.numerics.partitions import bin_of, centre, edges
from reticent_server.numerics.smooth_sensitivity import smooth_sensitivity
from support.seeds import seeded

VALUES = (0.0, 1.0, 3.0, 7.0)


def test_quartiles_are_the_first_values_that_enough_records_do_not_exceed() -> None:
    for n in range(1, 30):
        ordered = np.arange(1, n + 1)
        expected = np.quantile(ordered, [0.25, 0.5, 0.75], method="inverted_cdf")
        assert quartile_ranks(n) == tuple(expected)


@lru_cache
def within(sample: Any, k: Any) -> Any:
    """Every sample with at most k records replaced."""
    found = set()
    for rows in combinations(range(len(sample)), k):
        for new in product(VALUES, repeat=k):
            changed = list(sample)
            for row, value in zip(rows, new, strict=True):
                changed[row] = value
            found.add(tuple(sorted(changed)))
    return found


SAMPLES = [tuple(s) for s in product(VALUES, repeat=5) if list(s) == sorted(s)]


def windows(sample: Any, reach: int = 4) -> list[Any]:
    ordered = np.array(sample)
    return [window(ordered, rank, reach) for rank in quartile_ranks(len(sample))]


@pytest.mark.parametrize("k", [0, 1, 2])
def test_bounds_hold_for_every_sample_within_k_replacements(k: int) -> None:
    q1, h, q3 = (r - 1 for r in quartile_ranks(5))
    for sample in SAMPLES:
        low, middle, high = windows(sample)
        for other in within(sample, k):
            for neighbour in within(other, 1):
                moved = abs(other[h] - neighbour[h])
                assert moved <= local_sensitivity(middle, k)
            gap = other[q3] - other[q1]
            assert smallest_gap(low, high, k) <= gap <= largest_gap(low, high, k)


def test_the_bounds_are_attained() -> None:
    """The local sensitivity within distance k is exact where the sample is inside the values'
    range.
    """
    _, h, _ = quartile_ranks(5)
    for k in (0, 1):
        attained = 0
        for sample in SAMPLES:
            exact = max(abs(a[h - 1] - b[h - 1]) for a in within(sample, k) for b in within(a, 1))
            attained += exact == local_sensitivity(windows(sample)[1], k)
        assert attained > 5


def test_the_shift_property() -> None:
    for sample in SAMPLES:
        low, middle, high = windows(sample)
        for neighbour in within(sample, 1):
            low_, middle_, high_ = windows(neighbour)
            for k in (1, 2, 3):
                assert local_sensitivity(middle_, k - 1) <= local_sensitivity(middle, k)
                assert smallest_gap(low_, high_, k - 1) >= smallest_gap(low, high, k)
                assert largest_gap(low_, high_, k - 1) <= largest_gap(low, high, k)


def test_windows_of_several_samples_at_once() -> None:
    rows = np.sort(seeded(0).normal(size=(3, 9)), axis=1)
    together = window(rows, 5, 6)
    assert together.shape == (3, 13)
    for row, found in zip(rows, together, strict=True):
        assert np.array_equal(found, window(row, 5, 6))
        assert found[0] == -np.inf
        assert found[-1] == np.inf
        assert np.array_equal(found[2:11], row)


@pytest.mark.parametrize("truth", range(7))
def test_safe_distance(truth: int) -> None:
    assert safe_distance(lambda k: k <= truth, 6) == truth


def naive_smooth_sensitivity(ordered: Any, rank: Any, beta: Any, upper: Any) -> Any:
    x = [0.0, *ordered, upper]
    pairs = ((i, j) for i in range(rank + 1) for j in range(rank, len(x)) if i < j)
    return max((x[j] - x[i]) * np.exp(-beta * (j - i - 1)) for i, j in pairs)


def test_smooth_sensitivity_against_its_definition() -> None:
    rng = seeded(2)
    for _ in range(300):
        n = int(rng.integers(1, 40))
        ordered = np.sort(np.rint(rng.uniform(0, 1000, n) * rng.choice([1, 0.5, 0.01])))
        beta, (_, h, _) = 10 ** rng.uniform(-4, 1), quartile_ranks(n)
        found = smooth_sensitivity(ordered, h, beta, 1000.0)
        assert found == pytest.approx(naive_smooth_sensitivity(ordered, h, beta, 1000.0), rel=1e-12)


def test_lattices_are_public_fine_and_exact_for_whole_numbers() -> None:
    for lower, upper in ((0.0, 1e7), (-3.0, 5.0), (0.0, 1.0), (1.5, 1.5), (-1e-9, 2e-9)):
        lattice = lattice_between(lower, upper)
        assert lattice.size <= 2**40
        steps = to_lattice(lattice, np.array([lower, upper, np.nan, -np.inf, 1e30]))
        assert steps[[0, 2, 3]].tolist() == [0.0, 0.0, 0.0]
        assert steps[1] == pytest.approx(lattice.size, rel=1e-9)
        assert steps[4] == lattice.size
        assert lattice.origin + lattice.step * steps[1] == pytest.approx(upper)
    whole = lattice_between(0.0, 20.0)
    assert [whole.origin + whole.step * s for s in to_lattice(whole, np.arange(21.0))] == list(
        range(21)
    )


@pytest.mark.parametrize("bins", [GeometricBins(1.0, 1.3, 20), UniformBins(0.7)])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_bins_are_monotone_and_hold_their_centres(bins: Any, shift: float) -> None:
    values = np.sort(seeded(1).uniform(-3, 200, 500))
    numbers = [bin_of(bins, shift, v) for v in [-np.inf, *values, np.inf]]
    assert numbers == sorted(numbers)
    for value in values:
        number = bin_of(bins, shift, value)
        low, high = edges(bins, shift, number)
        assert (low <= value < high) or number == -1
        assert number == -1 or high == np.inf or low < centre(bins, shift, number) < high
