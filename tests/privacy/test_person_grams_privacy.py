# SPDX-License-Identifier: Apache-2.0
"""Whole Gram sums: a person's integers are within the bound whatever the vectors, and no pair of
persons is farther apart.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.scratch import FRESH
from reticent_server.domain.steps import Block, GramSum, OneVector, Scaled, SumStep, VectorSum
from reticent_server.engine.block_sums import block_sums
from reticent_server.mechanisms import noisy_sum, one_vector, person_grams
from reticent_server.mechanisms.person_grams import quantise_persons, squared_norms_of_persons
from reticent_server.mechanisms.quantise import granule, norm_limit
from reticent_server.numerics.person_grams import gram_lengths
from support.attacks.seeded_noise import seed_noise
from support.seeds import seeded

SHAPES = [(2, 3), (3, 8), (5, 2), (9, 4)]
CLIP = 1.5


def whole(d: int, m: int, rho: int = RHO_UNITS // 100) -> GramSum:
    return GramSum(d, CLIP, rho, 1, person_rows=m, whole=True)


def persons(d: int, m: int, rng: Any) -> Iterator[Any]:
    """(d, m) vectors of a person: usual, at the clip, far beyond it, of one row, of equal rows, no
    numbers, none.
    """
    for length in (0.1, 1.0, 1.0 + 1e-12, 1.0 - 1e-9, 3.0, 1e9, 1e300):
        v = rng.normal(size=(d, m))
        v *= CLIP / np.sqrt(gram_lengths(v, m)) * np.sqrt(length)
        yield v
        one = np.zeros((d, m))
        one[:, rng.integers(m)] = v[:, 0] / np.linalg.norm(v[:, 0]) * CLIP * np.sqrt(length)
        yield one
        yield np.repeat(v[:, :1], m, axis=1)
        axis = np.zeros((d, m))
        axis[rng.integers(d)] = CLIP * np.sqrt(length / m)
        yield axis
    for bad in (np.nan, np.inf, -np.inf):
        v = rng.normal(size=(d, m))
        v[rng.integers(d), rng.integers(m)] = bad
        yield v
        yield np.full((d, m), bad)
    yield np.zeros((d, m))


def grams(part: GramSum, v: Any) -> Any:
    """The exact Gram matrix of one person's integers, as Python's own."""
    q = quantise_persons(part, v)
    assert np.array_equal(q, np.rint(q))
    rows = [[int(x) for x in row] for row in q]
    return [[sum(a * b for a, b in zip(i, j, strict=True)) for j in rows] for i in rows]


def squared(A: Any, B: Any = None) -> int:
    """‖A − B‖_F², exactly."""
    zero = [[0] * len(A) for _ in A] if B is None else B
    return sum(
        (a - b) ** 2 for i, j in zip(A, zero, strict=True) for a, b in zip(i, j, strict=True)
    )


@pytest.mark.parametrize(("d", "m"), SHAPES)
def test_no_person_is_longer_than_the_bound_and_no_pair_farther_apart_than_the_sensitivity(
    d: int, m: int
) -> None:
    part, rng = whole(d, m), seeded(3)
    most = norm_limit(part) ** 4
    every = [grams(part, v) for v in persons(d, m, rng)]
    assert max(map(squared, every)) <= most
    assert max(map(squared, every)) > 0.99 * most
    worst = max(squared(a, b) for a in every for b in every)
    assert worst <= noisy_sum.sensitivity(part) ** 2


def test_persons_that_are_still_too_long_contribute_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound does not rest on the room that is left for rounding."""
    part, most = whole(3, 8), norm_limit(whole(3, 8)) ** 4
    monkeypatch.setattr(person_grams, "persons_norm", lambda part: 2.0 * norm_limit(part) ** 2)
    every = [squared(grams(part, v)) for v in persons(3, 8, seeded(3))]
    assert max(every) <= most
    assert every.count(0) > 5


@pytest.mark.parametrize(("d", "m"), SHAPES)
def test_persons_along_different_axes_attain_the_sensitivity(d: int, m: int) -> None:
    """Their Gram matrices have the product 0. With the Δ of a vector (2C²) more would be paid than
    anybody can move.
    """
    part, sides = whole(d, m), []
    for axis in (0, 1):
        v = np.zeros((d, m))
        v[axis] = CLIP
        sides.append(grams(part, v))
    found = squared(*sides) / noisy_sum.sensitivity(part) ** 2
    assert 0.99 < found <= 1


@pytest.mark.parametrize(("d", "m"), SHAPES)
def test_sums_are_those_of_clipped_persons_and_do_not_depend_on_blocks(d: int, m: int) -> None:
    part, rng = whole(d, m), seeded(5)
    v = rng.normal(size=(d, 40 * m))
    v *= CLIP / np.linalg.norm(v, axis=0) * np.repeat(rng.choice([0.3, 0.99], 40), m)
    v[:, 2 * m : 3 * m] = 0.0
    total = noisy_sum.encode(part, v) * granule(part) ** 2
    assert 3 < np.sum(gram_lengths(v, m) > CLIP**2) < 37
    weights = np.minimum(1, CLIP**2 / np.maximum(gram_lengths(v, m), 1e-9))
    wanted = (v * np.repeat(weights, m)) @ v.T
    np.testing.assert_allclose(total, wanted, atol=2e-3 * np.abs(wanted).max())
    halves = [noisy_sum.encode(part, v[:, cut]) for cut in (slice(0, 7 * m), slice(7 * m, None))]
    np.testing.assert_array_equal(sum(halves), noisy_sum.encode(part, v))
    scaled = Scaled(v / 2, np.full(v.shape[1], 2.0))
    np.testing.assert_array_equal(noisy_sum.encode(part, scaled), noisy_sum.encode(part, v))


def test_lengths_are_the_same_by_places_and_by_coordinates() -> None:
    rng = seeded(6)
    for d, m in SHAPES:
        v = rng.normal(size=(d, 5 * m))
        own = [
            np.linalg.norm(v[:, k * m : k * m + m] @ v[:, k * m : k * m + m].T) for k in range(5)
        ]
        np.testing.assert_allclose(gram_lengths(v, m), own)
        q = np.rint(1000 * v)
        np.testing.assert_allclose(np.sqrt(squared_norms_of_persons(q, m)), gram_lengths(q, m))


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_the_noise_is_made_for_the_sensitivity(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Diagonal σ = Δ/√(2ρ), σ/√2 off it: 64 and 2016 draws. The true scale is accepted, and 0.7 and
    1.3 times it are not.
    """
    seed_noise(monkeypatch, "whole gram sums")
    part = whole(64, 4)
    values = noisy_sum.release(part, Private(np.zeros((64, 64), np.int64))).values
    sigma = np.sqrt(2) * CLIP**2 / np.sqrt(2 / 100) * factor
    sigma *= 2.0**26 * granule(part) ** 2 / CLIP**2
    upper = values[np.triu_indices(64, 1)] / (sigma / np.sqrt(2))
    found = float(np.mean(np.append(upper, values.diagonal() / sigma) ** 2))
    assert (abs(found - 1) < 5 * np.sqrt(2 / 2080)) == (factor == 1.0)


def test_what_a_whole_sum_is_not_proved_for_is_refused() -> None:
    part = whole(3, 4)
    with pytest.raises(ValueError, match="whole persons"):
        quantise_persons(part, np.ones((3, 6)), FRESH)
    vector = VectorSum(3, CLIP, 10**9)
    for parts in ((vector, part), (part,)):
        joint = OneVector(vector=0 if len(parts) > 1 else None, curvature=len(parts) - 1)
        with pytest.raises(ValueError, match="price of its own"):
            one_vector.rho_of(parts, joint)


@pytest.mark.parametrize("places", [4, 12, 13])
def test_the_engine_takes_a_vector_for_each_place_of_whole_persons(places: int) -> None:
    block = Block(0, 12, {}, {})
    step = SumStep("s", (whole(3, 4),), _Ones(places))
    if places == 12:
        assert block_sums(step, block)[0].shape == (3, 3)
        return
    with pytest.raises(ValueError, match="whole persons"):
        block_sums(step, block)


class _Ones:
    def __init__(self, places: int) -> None:
        self.places = places

    def __call__(self, block: Block) -> Any:
        return (np.ones((3, self.places)),)
