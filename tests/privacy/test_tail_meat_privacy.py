# SPDX-License-Identifier: Apache-2.0
"""A meat of a vector's last entries, attacked: no two records lose more than the price of both, and
a pair loses all of it.

As in test_one_vector_privacy, what a pair loses is computed from the integers that are added and
from the scales of the noise that is drawn.
"""

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.scratch import FRESH
from reticent_server.domain.steps import GramSum, OneVector, Placed, SumStep, VectorSum
from reticent_server.mechanisms import registry, tail_meat
from reticent_server.mechanisms.quantise import GRAM_BITS, granule
from support.attacks.privacy_losses import drawn_scales

UNIT = RHO_UNITS // 100
RATIOS = (0.3, 0.5, 0.7, 0.9, 1.0)
"""f: below ½ less is free."""


def step_of(f: float, times: float, *, clip: float = 1.3, unit_rows: int = 1) -> SumStep:
    """A vector of three entries, and a meat of the last two that costs `times` what is free."""
    vector = VectorSum(3, clip, 20 * UNIT, unit_rows)
    meat = GramSum(2, clip * sqrt(f), 1, unit_rows)
    rho = int(vector.rho * tail_meat.share(vector, meat) * times)
    parts = (vector, GramSum(2, meat.clip, rho, unit_rows))
    return SumStep("tail", parts, lambda _: (), joint=OneVector(vector=0, tail=1))


def points_of(step: Any, vectors: Any) -> Any:
    """(rows, entries) of what each record adds: a squared distance is a loss in RHO_UNITS."""
    rows, scales = [], None
    for x in vectors.T:
        one = np.ascontiguousarray(x[:, None])
        sums = registry.encode_all(step.parts, [one, one[1:]], FRESH, step.joint)
        scales = scales or [drawn_scales(p, s) for p, s in zip(step.parts, sums, strict=True)]
        rows.append(np.concatenate([(s / z).ravel() for s, z in zip(sums, scales, strict=True)]))
    return np.array(rows) * sqrt(RHO_UNITS / 2)


def worst(points: Any) -> float:
    squares = (points**2).sum(axis=1)
    return float((squares[:, None] + squares - 2 * points @ points.T).max())


def records(clip: float, f: float) -> Any:
    """(3, rows) of length `clip`: all shares of the last two entries up to f, at all angles, and
    some beyond it that no map should give.
    """
    shares = [*np.linspace(0, f, 13), *np.linspace(0.98 * f, f, 3), (1 + f) / 2, 1.0]
    turns = np.concatenate([np.linspace(0, 2 * np.pi, 24, endpoint=False), [3.0, 3.1, 3.13]])
    rows = [
        (sign * sqrt(1 - P), sqrt(P) * np.cos(turn), sqrt(P) * np.sin(turn))
        for P, turn, sign in product(shares, turns, (-1, 1))
    ]
    return clip * np.array([*rows, (0, 0, 0)]).T


@pytest.mark.sample(4)
@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("f", RATIOS)
def test_no_pair_loses_more_than_both_cost_and_one_loses_all_that_the_vector_does(
    f: float, times: float
) -> None:
    step = step_of(f, times)
    price, found = registry.rho(step), worst(points_of(step, records(1.3, f)))
    assert 0.995 * step.parts[0].rho < found <= price
    if times <= 1:
        assert step.parts[0].rho <= price < 1.002 * step.parts[0].rho
    else:
        assert price < step.parts[0].rho + step.parts[1].rho


@pytest.mark.parametrize("f", [0.5, 0.7, 0.9])
def test_twice_of_what_is_free_is_not(f: float) -> None:
    """By the same search, so that it would find a claim that is too large."""
    step = step_of(f, 2.0)
    assert worst(points_of(step, records(1.3, f))) > 1.02 * step.parts[0].rho


def test_all_rows_of_a_unit_together() -> None:
    step = step_of(0.7, 1.0, unit_rows=3)
    points = points_of(step, records(1.3, 0.7)) * 3
    assert 0.995 * step.parts[0].rho < worst(points) <= registry.rho(step)


def test_no_pair_of_any_numbers_loses_more() -> None:
    step = step_of(0.7, 1.0)

    @settings(max_examples=100, deadline=None)
    @given(arrays(float, (3, 6), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)))
    def search(vectors: Any) -> None:
        assert worst(points_of(step, vectors)) <= registry.rho(step)

    search()


def test_the_meat_is_of_the_vectors_integers_and_within_its_limit() -> None:
    rng = np.random.default_rng(3)
    step, v = step_of(0.7, 1.0), rng.normal(size=(3, 400)) / 4
    sums = registry.encode_all(step.parts, [v, np.full((2, 400), np.nan)], FRESH, step.joint)
    found = sums[1] * granule(step.parts[1]) ** 2
    np.testing.assert_allclose(found, v[1:] @ v[1:].T, atol=0.05)
    far = registry.encode_all(step.parts, [1e300 * v[:, :1], v[1:, :1]], FRESH, step.joint)
    assert np.trace(far[1]) <= 4**GRAM_BITS


@pytest.mark.parametrize("rho", [1000, 10**9, 10**15, 3 * 10**16 + 7])
@pytest.mark.parametrize("f", RATIOS)
@pytest.mark.parametrize("stop", [1.0, 1.5, 3.0])
def test_what_is_planned_costs_no_more_than_was_offered(rho: int, f: float, stop: float) -> None:
    """Also where clips are stretched afterwards, up to rounding."""
    vector, meat = VectorSum(9, 1.1, rho), GramSum(4, 1.1 * sqrt(f), rho)
    own, free = tail_meat.with_free_meat(vector, meat, rho)
    parts = VectorSum(9, 1.1 * stop, own), GramSum(4, 1.1 * sqrt(f) * stop, free)
    assert 0.99 * rho - 20 < tail_meat.rho(*parts) <= rho
    assert free >= 0.99 * own * tail_meat.share(*parts) - 1


@pytest.mark.parametrize(
    "parts",
    [
        (VectorSum(2, 1.0, 5), GramSum(3, 1.0, 5)),
        (VectorSum(3, 1.0, 5), GramSum(2, 1.1, 5)),
        (VectorSum(3, 1.0, 5), GramSum(2, 1.0, 5, signed=True)),
        (VectorSum(3, 1.0, 5, 2), GramSum(2, 1.0, 5)),
        (GramSum(2, 1.0, 5), VectorSum(3, 1.0, 5)),
    ],
)
def test_a_price_of_parts_that_are_not_so_made_is_refused(parts: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="vector"):
        registry.rho(SumStep("tail", parts, lambda _: (), joint=OneVector(vector=0, tail=1)))


def test_a_meat_that_has_others_with_it_is_refused() -> None:
    parts = (VectorSum(2, 1.0, 5), GramSum(2, 1.0, 5), GramSum(2, 1.0, 5))
    with pytest.raises(ValueError, match="alone"):
        registry.rho(SumStep("t", parts, lambda _: (), joint=OneVector(vector=0, meat=1, tail=2)))
    placed = Placed(np.ones((3, 1)), np.zeros(1, dtype=np.int64), 1)
    step = step_of(0.7, 1.0)
    with pytest.raises(TypeError, match="written out"):
        registry.encode_all(step.parts, [placed, np.ones((2, 1))], FRESH, step.joint)
