# SPDX-License-Identifier: Apache-2.0
"""Locations and scales of projections: right, bounded on every neighbour, and with the shift
property.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent_server.numerics.depth import depth, outlyingness
from reticent_server.numerics.depth_iqr import IqrProjections
from reticent_server.numerics.depth_mad import MadProjections
from reticent_server.numerics.depth_trimmed import TrimmedProjections, exact_sums, trimmed_ranks
from reticent_server.numerics.order_statistics import quartile_ranks
from support.seeds import seeded
from support.tables.references import projection_depths

FAMILIES = {"iqr": IqrProjections, "mad": MadProjections, "trimmed": TrimmedProjections}
DIRECTIONS = np.rint(64 * np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, -0.6], [0.3, -0.95]]))
REACH = 4


def location_and_scale(name: Any, p: Any) -> tuple[Any, Any]:
    """(m, s) of one projection (n,), by definition."""
    ordered = sorted(p)
    q1, h, q3 = (r - 1 for r in quartile_ranks(len(p)))
    if name == "iqr":
        return ordered[h], ordered[q3] - ordered[q1]
    if name == "mad":
        return ordered[h], sorted(abs(v - ordered[h]) for v in p)[h]
    a, b = trimmed_ranks(len(p))
    middle = ordered[a - 1 : b]
    mean = Fraction(sum(middle), len(middle))
    return mean, sum(abs(v - mean) for v in middle) / len(middle)


def sample(rng: np.random.Generator, n: int) -> Any:
    """(2, n) whole numbers: spread, tied, clustered, heavy-tailed, or with far records."""
    kind = rng.integers(5)
    if kind == 0:
        return np.rint(1000 * rng.normal(size=(2, n)))
    if kind == 1:
        return rng.integers(-2, 3, (2, n)).astype(float)
    if kind == 2:
        return np.rint(100 * rng.normal(size=(2, n)) + 5000 * (rng.random(n) < 0.25))
    if kind == 3:
        return np.rint(300 * rng.standard_cauchy((2, n)))
    return np.rint(np.where(rng.random(n) < 0.1, 1e9, 50 * rng.normal(size=(2, n))))


def replaced(rng: np.random.Generator, data: Any) -> Any:
    """A neighbour: a far record, a copy of another, a median, or a small move."""
    other, row = data.copy(), rng.integers(data.shape[1])
    new = (
        np.array([1e9, -1e9]) * rng.choice([-1, 1], 2),
        data[:, rng.integers(data.shape[1])],
        np.sort(data, axis=1)[:, data.shape[1] // 2],
        data[:, row] + rng.integers(-3, 4, 2),
    )
    other[:, row] = new[rng.integers(4)]
    return other


@pytest.mark.parametrize("name", FAMILIES)
def test_locations_and_scales_are_those_of_the_definition(name: str) -> None:
    rng = seeded(0)
    for n in (4, 5, 17, 250):
        data = sample(rng, n)
        found = FAMILIES[name].measure(data, DIRECTIONS, min(REACH, n))
        for u, location, scale in zip(DIRECTIONS, found.location, found.scale, strict=True):
            expected = location_and_scale(name, [int(v) for v in u @ data])
            assert (
                Fraction(location, found.denominator),
                Fraction(scale, found.denominator),
            ) == expected


def no_more(first: Any, second: Any) -> Any:
    """first ≤ second, exactly; None is infinite."""
    return second is None or all(a <= b for a, b in zip(first, second, strict=True))


def changes(first: Any, second: Any) -> list[Any]:
    return [abs(a - b) for a, b in zip(first, second, strict=True)]


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("least", [1000, pytest.param(10_000, marks=pytest.mark.audit)])
def test_bounds_and_their_shift_on_many_pairs(name: str, least: int) -> None:
    """Walks of up to REACH replacements: what is reached is within the bounds at the start."""
    family, rng, pairs = FAMILIES[name], seeded(least), 0
    least //= 4 if name == "mad" else 1  # takes six times as long as the others
    while pairs < least:
        n = int(rng.integers(5, 40))
        data = sample(rng, n)
        start = here = family.measure(data, DIRECTIONS, REACH)
        for k in range(REACH - 1):
            data = replaced(rng, data)
            there = family.measure(data, DIRECTIONS, REACH)
            assert no_more(changes(here.location, there.location), start.location_change(k))
            assert no_more(changes(here.scale, there.scale), start.scale_change(k))
            assert start.least_scale(k + 1) is None or no_more(
                start.least_scale(k + 1), there.scale
            )
            ends = start.location_range(k + 1)
            if ends is not None:
                assert no_more(ends[0], there.location)
                assert no_more(there.location, ends[1])
            assert_shifted(here, there)
            here, pairs = there, pairs + 1


def assert_shifted(here: Any, there: Any) -> None:
    for k in range(1, REACH):
        assert no_more(there.location_change(k - 1), here.location_change(k))
        assert no_more(there.scale_change(k - 1), here.scale_change(k))
        if here.least_scale(k) is not None:
            assert no_more(here.least_scale(k), there.least_scale(k - 1))
        if here.location_range(k) is not None:
            (low, high), (low_, high_) = here.location_range(k), there.location_range(k - 1)
            assert no_more(low, low_)
            assert no_more(high_, high)


@pytest.mark.slow
def test_the_interquartile_bounds_are_nearly_attained() -> None:
    """The search could see a bound that is too small: single changes come close to it."""
    rng, attained = seeded(2), dict.fromkeys(FAMILIES, 0.0)
    for name, family in FAMILIES.items():
        for _ in range(150):
            data = sample(rng, 11)
            start = family.measure(data, DIRECTIONS, REACH)
            there = family.measure(replaced(rng, data), DIRECTIONS, REACH)
            moved = changes(start.location, there.location)
            shares = [a / b for a, b in zip(moved, start.location_change(0), strict=True) if b]
            attained[name] = max(attained[name], *shares, 0.0)
    assert min(attained.values()) > 0.5


def far_apart(n: int) -> tuple[Any, Any]:
    """Two tables of values next to 2³⁸ that differ in one record by 1: trimmed means differ by
    1/N.
    """
    row = np.full(n, 2.0**38 + 1)
    row[n // 2 :] += 1
    other = row.copy()
    other[n // 2] -= 1
    return row[None, :], other[None, :]


def test_a_trimmed_mean_tells_tables_apart_that_its_bounds_tell_apart() -> None:
    """Rounded to float64, means of values far from 0 move by more than one replacement can move
    them.
    """
    here, there = (
        TrimmedProjections.measure(x, np.array([[1024.0]]), 8) for x in far_apart(400_000)
    )
    assert here.location[0] - there.location[0] == 1024 * here.kept
    assert here.location_change(0) == [1024 * here.kept]
    assert no_more(changes(here.scale, there.scale), here.scale_change(0))


def test_sums_of_whole_numbers_are_exact() -> None:
    rng = seeded(0)
    rows = rng.integers(-(2**52), 2**52, (3, 5000))
    assert exact_sums(rows) == [sum(row) for row in rows.tolist()]
    assert exact_sums(rows[:, :0]) == [0, 0, 0]


@pytest.mark.slow
def test_depths_agree_with_ddalpha_in_two_dimensions() -> None:
    """The maximum deviation scale, 1,000 directions against a grid of 50,000 angles."""
    points, data, expected = projection_depths()
    angles = np.pi * np.arange(1000) / 1000
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    scaled, fine = np.rint(data * 2.0**20), np.rint(directions * 2.0**20)
    found = MadProjections.measure(scaled, fine, 1)
    at = depth(
        points * 2.0**20, fine, np.array(found.location, float), np.array(found.scale, float)
    )
    assert at == pytest.approx(expected, rel=6e-3)


def test_outlyingness_is_the_largest_over_directions() -> None:
    found = outlyingness(
        np.array([[3.0, 0.0], [0.0, -8.0]]), np.eye(2), np.array([1.0, 2.0]), np.array([2.0, 5.0])
    )
    assert found.tolist() == [1.0, 2.0]
