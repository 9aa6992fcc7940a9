# SPDX-License-Identifier: Apache-2.0
"""Reading a tail from released running counts, and what a cut takes."""

from dataclasses import replace

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting import row_tail
from reticent_server.fitting.row_tail import (
    LengthGrid,
    allowance_covariance,
    chosen_cut,
    chosen_reach,
    planned_cut,
    tail_shape,
)
from reticent_server.fitting.trust import cut_coefficients, cut_decides
from reticent_server.fitting.whole_scores import PlainScore
from reticent_server.mechanisms import running_counts
from support.seeds import seeded

N, RANK = 20_000, 60.0
GRID = LengthGrid(1.0)


def lengths(alpha: float, n: int = N) -> FloatArray:
    """A Pareto tail, its quantiles in place of draws."""
    return np.asarray((1 - (np.arange(n) + 0.5) / n) ** (-1 / alpha))


def released(values: FloatArray, noise: float = 0.0, grid: LengthGrid = GRID) -> Released:
    """As running counts release it, with noise of a standard deviation in their units."""
    part = grid.part(RHO_UNITS, 1)
    totals = running_counts.factored(part, running_counts.encode(part, grid.codes(values)))
    noisy = totals / (1 << row_tail.FACTOR_BITS)
    rng = seeded(3)
    return Released(noisy + noise * rng.normal(size=len(noisy)), max(noise, 1e-6))


def test_the_farthest_length_has_the_first_position_and_a_short_one_none() -> None:
    edges = GRID.edges
    codes = GRID.codes(np.array([0.0, edges[0], edges[0] * 1.01, edges[-1] * 2, np.inf]))
    assert codes.tolist() == [-1, -1, len(edges) - 1, 0, 0]


def test_numbers_beyond_edges_are_the_running_counts() -> None:
    values = lengths(2.0)
    beyond, noise = GRID.beyond(released(values))
    assert beyond == pytest.approx([np.sum(values > e) for e in GRID.edges], abs=1e-3)
    assert np.all(np.sqrt(np.diag(noise)) < 3e-6)


def test_noise_at_an_edge_is_what_it_is_told_to_be() -> None:
    part = GRID.part(RHO_UNITS // 1000, 1)
    zeros = Private(np.zeros(part.bins, dtype=np.int64))
    draws = np.array([GRID.beyond(running_counts.release(part, zeros))[0] for _ in range(400)])
    told = np.sqrt(np.diag(GRID.beyond(running_counts.release(part, zeros))[1]))
    ratios = draws.std(axis=0) / told
    assert ratios.min() > 0.75  # 400 draws: a relative error of .035; 7 of them
    assert ratios.max() < 1.25


@pytest.mark.parametrize("alpha", [2.0, 3.0, 5.0])
def test_the_cut_leaves_a_rank_of_records_beyond_it(alpha: float) -> None:
    cut = chosen_cut(GRID, released(lengths(alpha)), N, RANK)
    assert np.sum(lengths(alpha) > cut.length) == pytest.approx(RANK, rel=0.25)


def test_a_cut_below_the_noise_is_found_by_the_curve() -> None:
    """55 records of noise at an edge, as at epsilon = 1."""
    cut = chosen_cut(GRID, released(lengths(3.0), 38.0), N, RANK)
    assert 20 < np.sum(lengths(3.0) > cut.length) < 180


def test_heavier_tails_have_a_smaller_index_and_a_larger_excess() -> None:
    heavy, light = (chosen_cut(GRID, released(lengths(a), 10.0), N, RANK) for a in (1.1, 4.0))
    assert heavy.alpha < 1.5 < light.alpha
    assert not heavy.told
    assert light.told
    assert heavy.excess / heavy.length > 2 * light.excess / light.length


def test_the_excess_is_at_least_that_of_the_records() -> None:
    values = lengths(3.0)
    cut = chosen_cut(GRID, released(values), N, RANK)
    own = np.maximum(values - cut.length, 0).sum()
    assert 0.7 * own < cut.excess < 3 * own


def test_the_mean_square_is_that_of_cut_lengths() -> None:
    values = lengths(3.0)
    cut = chosen_cut(GRID, released(values), N, RANK)
    assert cut.squares == pytest.approx(np.mean(np.minimum(values, cut.length) ** 2), rel=0.1)


def test_noise_far_out_is_no_tail() -> None:
    """A far edge that noise makes clear by chance is not where the tail ends."""
    found = released(lengths(6.0), 1.0)
    values = found.values.copy()
    values[8] += 30.0
    cut = chosen_cut(GRID, replace(found, values=values), N, RANK)
    assert cut.length < 6


def test_without_a_clear_tail_no_interval_is_told() -> None:
    cut = chosen_cut(GRID, Released(np.zeros(48), 50.0), 100, RANK)
    assert not cut.told
    assert cut.length < 10
    flags = cut_coefficients(np.ones(2, bool), np.ones(2), np.ones(2), told=cut.told)
    assert not flags.estimable.any()
    assert flags.heavy is not None
    assert flags.heavy.all()


def test_a_few_records_decide_where_the_allowance_is_most_of_the_error() -> None:
    assert [cut_decides(x, 1.0, told=True) for x in (2.9, 3.1)] == [False, True]
    assert cut_decides(0.0, 1.0, told=False)


def test_a_planned_cut_leaves_its_rank_of_heavy_tailed_residuals() -> None:
    rows = np.full(500, 2.0)
    cut = planned_cut(rows, N, RANK, PlainScore(1.0).beyond)
    rng = seeded(5)
    beyond = np.mean(np.abs(rng.standard_t(5, size=2_000_000)) * 2.0 > cut.length)
    assert beyond * N == pytest.approx(RANK, rel=0.1)  # a standard error of .013


def test_a_planned_cut_takes_what_the_profile_s_tail_leads_to_expect() -> None:
    """Of a Pareto response of index 2: the slope grows by the bend to the cut, and no more is taken
    for granted without a profile.
    """
    rows, rng = np.full(4096, 2.0), seeded(6)
    heavy, longer = (rng.permutation(lengths(a, 4096)) for a in (2.0, 1.0))
    plain = planned_cut(rows, N, RANK, PlainScore(1.0).beyond)
    cut = planned_cut(rows, N, RANK, PlainScore(1.0).beyond, heavy)
    x = np.log(0.05 / (RANK / N)) / 2.0
    assert cut.alpha == pytest.approx(2.0 * (1 + 0.4 * min(x, 1.2)), rel=0.02)
    assert cut.excess > plain.excess * 1.5
    assert (plain.told, cut.told) == (True, True)
    assert not planned_cut(rows, N, RANK, PlainScore(1.0).beyond, longer).told
    assert not planned_cut(rows, N, RANK, PlainScore(1.0).beyond, -longer).told


def test_the_reach_grows_with_tails_that_public_rows_lack() -> None:
    public = np.minimum(lengths(6.0, 2000), 2.0)
    same = chosen_reach(GRID, released(np.tile(public, 10)), N, public, 1e-4, 2.0)
    heavy = chosen_reach(GRID, released(lengths(2.1)), N, public, 1e-4, 2.0)
    assert same[0] < 2.5
    assert same[1] == 0
    assert heavy[0] > 2 * same[0]


def test_an_allowance_is_of_every_direction_of_the_score() -> None:
    H = np.diag([2.0, 0.5])
    assert allowance_covariance(0.1, H) == pytest.approx(np.diag([0.0025, 0.04]))
    floored = allowance_covariance(0.1, np.diag([1.0, 1e-9]))
    assert floored[1, 1] == pytest.approx(1e4)


def bounded(n: int = N) -> FloatArray:
    """Two hundred long lengths that end at 6, the others short."""
    ends = 6 - 3 * (np.arange(200) + 0.5) / 200
    return np.append(np.full(n - 200, 0.6), ends)


def test_a_tail_with_an_end_is_seen_where_its_shape_is_known() -> None:
    """Public lengths are 1.2 times as long and a third more of them: the shape is moved to what is
    released.
    """
    public = bounded() * 1.2
    weights = np.where(public > 1, 1.33, 1.0)
    shape = tail_shape(public, weights / weights.sum())
    values = bounded()
    with_shape = chosen_cut(GRID, released(values, 10.0), N, RANK, shape)
    without = chosen_cut(GRID, released(values, 10.0), N, RANK)
    assert with_shape.length == pytest.approx(6 - 3 * RANK / 200, rel=0.15)
    own = np.maximum(values - with_shape.length, 0).sum()
    assert own < with_shape.excess < RANK * with_shape.length / 8
    assert with_shape.alpha > 1.5 * without.alpha


def test_a_shape_that_nothing_contradicts_stays_what_it_is() -> None:
    values = lengths(3.0)
    shape = tail_shape(values, np.full(N, 1 / N))
    cut = chosen_cut(GRID, released(values), N, RANK, shape)
    assert np.sum(values > cut.length) == pytest.approx(RANK, rel=0.1)
    own = np.maximum(values - cut.length, 0).sum()
    assert own < cut.excess < 1.6 * own


@pytest.mark.parametrize(("alpha", "believed"), [(0.9, False), (1.1, False), (2.5, True)])
def test_the_slope_before_the_cut_decides_whether_its_index_is_believed(
    alpha: float, *, believed: bool
) -> None:
    """A Pareto law has one index everywhere, which no bend at the cut may hide; noise of 20 records
    at an edge takes up to a quarter off.
    """
    values = lengths(alpha)
    slope = row_tail.bulk_slope(*_numbers(values), N)
    assert slope is not None
    assert 0.75 * alpha < slope < alpha
    found = chosen_cut(GRID, released(values), N, RANK)
    assert replace(found, alpha=2.0, bulk=slope).told is believed


def _numbers(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Without noise, and the covariance of noise."""
    return GRID.edges, GRID.beyond(released(values))[0], GRID.beyond(released(values, 15.0))[1]


def test_too_few_edges_tell_no_slope_and_nothing_is_declined_for_it() -> None:
    values = np.full(N, 1.0)
    cut = chosen_cut(GRID, released(values), N, RANK)
    assert row_tail.bulk_slope(*_numbers(values), N) is None
    assert replace(cut, alpha=2.0, bulk=None).told


def test_the_more_coordinates_the_less_a_cut_leans_on_one_and_never_more_than_all() -> None:
    shares = [row_tail.leaning(q) for q in (1, 4, 16, 64)]
    assert shares == pytest.approx([0.85, 0.425, 0.2125, 0.10625])
    assert PlainScore(1.0).leaning(4, 0.01) == shares[1]
