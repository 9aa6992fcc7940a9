# SPDX-License-Identifier: Apache-2.0
"""Quantised contributions: no record is ever too long, and none depends on its neighbours in a
block.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent_server.domain.scratch import FRESH, ReusedScratch
from reticent_server.domain.steps import (
    FARTHEST_CLIP,
    Block,
    CountSum,
    GramSum,
    OneVector,
    Scaled,
    SumStep,
    VectorSum,
    multiplied,
)
from reticent_server.engine.block_sums import block_sums
from reticent_server.mechanisms import noisy_sum, registry
from reticent_server.mechanisms.quantise import granule, norm_limit, quantise
from support.seeds import seeded

RHO = 10**9
SIZE, ROWS = 3, 6

wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([1e-320, 1e-170, 1e-150, 1e150, 1e170, 2.0**500, 2.0**-500, 5e-324]),
)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [VectorSum, GramSum])
def test_no_record_is_longer_than_the_limit(kind: Any) -> None:
    part = kind(size=SIZE, clip=1.7, rho=RHO)

    @settings(max_examples=300, deadline=None)
    @given(arrays(float, (SIZE, ROWS), elements=wild), arrays(float, ROWS, elements=wild))
    def search(vectors: Any, weights: Any) -> None:
        for contributions in (vectors, Scaled(vectors, weights)):
            q = quantise(part, contributions)
            exact = [[int(v) for v in column] for column in q.T]
            assert all(sum(v * v for v in c) <= norm_limit(part) ** 2 for c in exact)
            assert np.array_equal(q, np.rint(q))

    search()


@pytest.mark.parametrize("kind", [VectorSum, GramSum])
@pytest.mark.parametrize(("x", "w"), [(1e-170, 1e172), (1e-170, 1e308), (5e-324, 1e308)])
def test_squares_that_underflow_hide_no_length(kind: Any, x: float, w: float) -> None:
    part = kind(size=SIZE, clip=1e-12, rho=RHO)
    q = quantise(part, Scaled(np.full((SIZE, 1), x), np.array([w])))
    assert (q * q).sum() <= norm_limit(part) ** 2


@pytest.mark.parametrize("kind", [VectorSum, GramSum])
def test_rounding_up_makes_no_record_too_long(kind: Any) -> None:
    part = kind(size=30, clip=1.0, rho=RHO)
    rng = seeded(5)
    v = np.abs(rng.normal(size=(30, 50_000)))
    v *= (1 + rng.uniform(-5e-4, 5e-4, 50_000)) / np.sqrt((v * v).sum(axis=0))
    v = (np.floor(v / granule(part)) + 0.51) * granule(part)
    q = quantise(part, v)
    assert (q * q).sum(axis=0).max() <= norm_limit(part) ** 2


@pytest.mark.parametrize("kind", [VectorSum, GramSum])
def test_contributions_at_the_clip_are_not_shortened(kind: Any) -> None:
    """They are most of a robust fit's; a limit inside their rounding would send them the slow
    way.
    """
    part = kind(size=SIZE, clip=0.3, rho=RHO)
    rng = seeded(1)
    v = rng.normal(size=(SIZE, 20_000))
    v *= part.clip / np.sqrt((v * v).sum(axis=0))
    assert np.array_equal(quantise(part, v), np.rint(v * (1 / granule(part))))
    longer = quantise(part, 1.001 * v)
    assert not np.array_equal(longer, np.rint(1.001 * v * (1 / granule(part))))
    assert np.abs(longer * granule(part) - v).max() <= granule(part)


@pytest.mark.parametrize("length", [0.999, 1.0, 50.0])
def test_the_vector_of_a_person_is_bounded_as_a_whole_whatever_the_map_gives(length: float) -> None:
    """One contribution for all of a person's rows: two persons are at most Δ apart, and that far
    where both are at the clip.
    """
    part = VectorSum(SIZE, 1.0, RHO, person_rows=7)
    v = length * np.array([[1.0], [1.0], [1.0]]) / np.sqrt(3)
    apart = (registry.encode(part, v) - registry.encode(part, -v)).astype(object)
    delta = noisy_sum.sensitivity(part)
    assert sum(x * x for x in apart) <= delta**2
    assert sum(x * x for x in apart) > (0.999 * min(length, 1.0) * delta) ** 2


def test_rows_instead_of_persons_are_refused() -> None:
    """A vector for each row would have a person's clip as many times as there are rows."""
    part = VectorSum(SIZE, 1.0, RHO, person_rows=3)
    step = SumStep("s", (part,), lambda block: (np.ones((SIZE, block.rows)),))
    with pytest.raises(ValueError, match="whole persons"):
        block_sums(step, Block(0, 6, {}, {}))


def test_weights_are_the_lengths_of_the_vectors() -> None:
    rng = seeded(2)
    scaled = Scaled(rng.normal(size=(SIZE, 500)), rng.normal(size=500))
    part = VectorSum(SIZE, 2.0, RHO)
    difference = quantise(part, scaled) - quantise(part, multiplied(scaled))
    assert np.abs(difference).max() <= 1


@pytest.mark.slow
def test_a_record_is_the_same_alone_in_used_memory_and_beside_shared_vectors() -> None:
    rng = seeded(3)
    u, w, a = rng.standard_cauchy((SIZE, 4096)), rng.normal(size=4096), rng.random(4096)
    u[:, 7] = np.nan
    parts = (VectorSum(SIZE, 1.0, RHO), GramSum(SIZE, 1.0, RHO), VectorSum(SIZE, 0.1, RHO))
    scratch = ReusedScratch()
    whole = registry.encode_all(parts, (Scaled(u, w), Scaled(u, a), u), scratch)
    single = [0, 0, 0]
    for i in range(4096):
        cut = slice(i, i + 1)
        x = np.ascontiguousarray(u[:, cut])
        found = registry.encode_all(parts, (Scaled(x, w[cut]), Scaled(x, a[cut]), x), scratch)
        single = [a + b for a, b in zip(single, found, strict=True)]
    for one, all_at_once in zip(single, whole, strict=True):
        assert np.array_equal(one, all_at_once)
    fresh = registry.encode_all(parts, (Scaled(u, w), Scaled(u, a), u), FRESH)
    assert all(np.array_equal(x, y) for x, y in zip(fresh, whole, strict=True))


def test_gram_sums_of_many_rows_are_the_plain_product() -> None:
    rng = seeded(4)
    for size in (1, 2, 11, 30):
        part = GramSum(size, 1.0, RHO)
        v = rng.normal(size=(size, 5000)) / size
        q = quantise(part, v).astype(object)
        assert np.array_equal(registry.encode(part, v), q @ q.T)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 11, 13])
@pytest.mark.parametrize("joint", [False, True])
def test_gram_sums_hold_nothing_of_what_their_memory_held(size: int, joint: bool) -> None:
    """Rows of zeros follow some integers: they are zeros in each block, and leave no entry."""
    rng, scratch = seeded(size), ReusedScratch()
    parts = (VectorSum(size, 1.0, RHO), GramSum(size, 1.0, RHO), GramSum(size, 1.0, RHO))
    for rows in (700, 300):
        for name in ("integers", "meat"):
            scratch.array(name, 2 * size + 8, 4096)[:] = np.nan
        v = Scaled(rng.normal(size=(size, rows)) / size, np.ones(rows))
        if joint:
            one = OneVector(vector=0, curvature=1, meat=2)
            _, gram, meat = registry.encode_all(parts, (v, v, v), scratch, one)
            assert meat.shape == (size, size)
        else:
            gram = registry.encode(parts[1], v, scratch)
        q = quantise(parts[1], v).astype(object)
        assert q.shape == (size, rows)
        assert np.array_equal(gram, q @ q.T)


def test_codes_are_not_scaled() -> None:
    with pytest.raises(TypeError):
        registry.encode(CountSum(2, RHO), Scaled(np.zeros((1, 2)), np.zeros(2)))


def test_memory_is_used_again_and_rows_do_not_collide_in_the_cache() -> None:
    scratch = ReusedScratch()
    first = scratch.array("x", 3, 512)
    again = scratch.array("x", 2, 100)
    assert np.shares_memory(first, again)
    assert first.shape == (3, 512)
    assert first.strides[0] % 2048 != 0
    assert not np.shares_memory(first, scratch.array("y", 3, 512))


@pytest.mark.parametrize("kind", [VectorSum, GramSum])
def test_clips_at_which_floats_lose_the_limit_are_refused(kind: Any) -> None:
    for clip in (FARTHEST_CLIP, 1 / FARTHEST_CLIP):
        part = kind(size=SIZE, clip=clip, rho=RHO)
        with np.errstate(all="ignore"):
            for length in (1.0, 1.5, 1e-5, 1e300):
                q = quantise(part, np.full((SIZE, ROWS), clip * length / np.sqrt(SIZE)))
                assert (q * q).sum(axis=0).max() <= norm_limit(part) ** 2
    for clip in (0.0, -1.0, 5e-324, 1e-302, 1e299, np.inf, np.nan):
        with pytest.raises(ValueError, match="a clip is between"):
            kind(size=SIZE, clip=clip, rho=RHO)
