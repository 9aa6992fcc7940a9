# SPDX-License-Identifier: Apache-2.0
"""Subsample and aggregate: a unit's records touch as many blocks, and no more leaves than is
charged.

The attack takes the path of a release with the division of the records held fixed: estimates of
blocks, codes and contributions of neighbours; then the division's own law, which must not know the
records.
"""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent_server.domain.columns import BlockMean, BlockModel, SubsampleAggregate
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.grid import Grid
from reticent_server.domain.private import Private
from reticent_server.mechanisms import column_registry, noisy_sum, quantile_tree, secret_blocks
from reticent_server.mechanisms import subsample_aggregate as sa
from reticent_server.mechanisms._sampler import DiscreteGaussian
from reticent_server.numerics.grids import cell_codes
from support.attacks.privacy_losses import loss_of_sums
from support.seeds import seeded

EQUATIONS = ("huber", "location_scale", "binomial", "poisson", "gamma")
NASTY = (0.0, 1.0, -1.0, 3.0, 1e6, -1e6, 1e300, 1e-300, np.nan, np.inf, -np.inf)
RHO = RHO_UNITS // 50


def part_of(
    equation: Any, blocks: Any, *, unit_rows: int = 1, bounds: Any = (-5.0, 5.0), rho: Any = RHO
) -> SubsampleAggregate:
    model = BlockModel(equation, 2, 1.345, 100.0, True)
    mean = BlockMean(Grid(*bounds), sum(bounds) / 2, rho // 3, rho - rho // 3)
    return SubsampleAggregate(model, blocks, (mean, mean), unit_rows)


def table(rng: np.random.Generator, n: int, equation: Any) -> Any:
    """(4, n): in use, response, intercept, a term."""
    y = rng.normal(size=n) if equation in ("huber", "location_scale") else rng.integers(0, 2, n)
    rows = np.vstack([np.ones(n), y, np.ones(n), rng.normal(size=n)])
    return rows[:2] if equation == "location_scale" else rows


def sums_of(part: Any, mean: Any, T: Any, window: Any) -> tuple[Any, Any]:
    """Exact integer statistics of an estimate's quartiles and mean, at a window that was
    released.
    """
    tree, unit = sa.quartile_tree(part, mean), sa.mean_sum(part, mean)
    centre, half = window
    counts = quantile_tree.encode(tree, cell_codes(T, mean.candidates))
    scaled = np.clip((T - centre) / half, -1, 1)[None, :]
    return counts, noisy_sum.encode(unit, scaled)


@pytest.mark.slow
@given(
    equation=st.sampled_from(EQUATIONS),
    seed=st.integers(0, 10**6),
    blocks=st.integers(2, 12),
    unit_rows=st.integers(1, 4),
    cells=st.lists(st.sampled_from(NASTY), min_size=16, max_size=16),
)
@settings(max_examples=40, deadline=None)
def test_neighbours_differ_in_few_blocks_and_lose_what_is_charged(
    equation: Any, seed: int, blocks: Any, unit_rows: int, cells: Any
) -> None:
    rng = seeded(seed)
    n = 90
    rows, part = table(rng, n, equation), part_of(equation, blocks, unit_rows=unit_rows)
    replaced = rng.choice(n, size=unit_rows, replace=False)
    other = rows.copy()
    other[:, replaced] = np.array(cells).reshape(4, 4)[: len(rows), :unit_rows]
    other[0, replaced] = np.array(cells[:unit_rows]) > 0
    order = rng.permutation(n)
    T, U = (sa.estimates(part, r, order) for r in (rows, other))
    assert np.isfinite(T).all()
    assert np.isfinite(U).all()
    touched = np.any(T != U, axis=0).sum()
    assert touched <= sa.touched(part) == min(unit_rows, blocks)
    for j, mean in enumerate(part.means):
        window = sa.window(mean, *np.quantile(T[j], [0.4, 0.6]))
        (counts, total), (counts_2, total_2) = (sums_of(part, mean, V[j], window) for V in (T, U))
        assert np.abs(counts - counts_2).sum() <= 2 * touched
        assert counts.sum() == counts_2.sum() == blocks
        unit = sa.mean_sum(part, mean)
        assert loss_of_sums(unit, total, total_2) <= unit.rho * (1 + 1e-9)


def test_the_bound_of_the_mean_is_attained() -> None:
    """One block's estimate goes from the one end of the window to the other."""
    part = part_of("huber", 4)
    (mean, _), T = part.means, np.array([0.0, 0.0, 0.0, -5.0])
    other = T.copy()
    other[3] = 5.0
    totals = [sums_of(part, mean, V, (0.0, 1.0))[1] for V in (T, other)]
    unit = sa.mean_sum(part, mean)
    assert loss_of_sums(unit, *totals) == pytest.approx(unit.rho, rel=1e-3)


@pytest.mark.parametrize("unit_rows", [1, 3])
def test_the_bound_of_the_quartiles_is_attained(unit_rows: int) -> None:
    """The blocks of one unit go from the lower bound to the upper one: both selections move by as
    many ranks.
    """
    part = part_of("huber", 40, unit_rows=unit_rows)
    mean, T = part.means[0], np.linspace(-5.0, 5.0, 40)
    T[:3] = -5.0
    other = T.copy()
    other[:unit_rows] = 5.0
    tree = sa.quartile_tree(part, mean)
    ladder = quantile_tree.ladder(tree)
    first, second = (rank_levels(tree, sums_of(part, mean, V, (0.0, 1.0))[0]) for V in (T, other))
    moved = int(np.abs(first - second).max())
    selections = len(quantile_tree.levels(tree.probabilities))
    assert selections * ladder.loss(moved) ** 2 / 2 * RHO_UNITS == pytest.approx(
        mean.rho_quartiles, rel=1e-3
    )
    assert selections * ladder.loss(moved) ** 2 / 2 * RHO_UNITS <= mean.rho_quartiles


def rank_levels(tree: Any, counts: Any) -> Any:
    """The levels of all cells, of a selection over all records."""
    counts = quantile_tree.spread(counts, tree.repeats)
    cumulative = np.concatenate([[0], np.cumsum(counts)])
    steps = quantile_tree.ladder(tree).steps
    return quantile_tree.levels_of(cumulative, Fraction(1, 2), steps)


def test_what_is_billed_is_what_is_charged() -> None:
    for unit_rows in (1, 3):
        part = part_of("huber", 50, unit_rows=unit_rows)
        billed = 0.0
        for mean in part.means:
            tree, unit = sa.quartile_tree(part, mean), sa.mean_sum(part, mean)
            billed += quantile_tree.billed_rho(tree)
            billed += DiscreteGaussian(noisy_sum.scale(unit)).rho(noisy_sum.sensitivity(unit))
        charged = column_registry.cost(part)
        assert billed * RHO_UNITS <= charged.rho
        assert billed * RHO_UNITS == pytest.approx(charged.rho, rel=1e-3)
        assert (charged.epsilon, charged.delta, charged.rho_delta) == (0, 0, 0)


@pytest.mark.slow
def test_the_order_is_uniform_and_blocks_are_of_public_sizes() -> None:
    """All 24 orders of four positions alike: χ² of 24,000 draws, 23 degrees of freedom."""
    counts = Counter(tuple(secret_blocks.secret_order(4).tolist()) for _ in range(24_000))
    assert set(counts) == set(permutations(range(4)))
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < 80
    for n, k in ((10, 3), (9, 3), (7, 7), (100, 32)):
        division = secret_blocks.division(secret_blocks.secret_order(n), k)
        sizes = (division >= 0).sum(axis=1)
        assert set(sizes) <= {n // k, -(-n // k)}
        assert sorted(division[division >= 0].tolist()) == list(range(n))
    assert secret_blocks.division(np.array([3, 0, 2, 1, 4]), 2).tolist() == [[3, 2, 4], [0, 1, -1]]


def test_equal_random_numbers_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [b"\0" * 24, np.array([3, 1, 2], dtype=np.uint64).tobytes()]
    monkeypatch.setattr(secret_blocks, "token_bytes", lambda size: draws.pop(0)[:size])
    assert secret_blocks.secret_order(3).tolist() == [1, 2, 0]


def test_the_division_is_drawn_anew_and_knows_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every release draws an order of n positions, whatever the records are."""
    seen, real = [], secret_blocks.secret_order

    def order(n: int) -> Any:
        seen.append(real(n))
        return seen[-1]

    monkeypatch.setattr(sa, "secret_order", order)
    part, rng = part_of("huber", 5), seeded(1)
    for rows in (table(rng, 60, "huber"), np.full((4, 60), np.nan)):
        column_registry.release(part, Private(rows))
    assert [len(o) for o in seen] == [60, 60]
    assert seen[0].tolist() != seen[1].tolist()


@pytest.mark.parametrize("equation", EQUATIONS)
def test_a_fit_takes_the_same_steps_whatever_the_records(
    equation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in decompositions and sorts, on good, separated, masked and worthless tables."""
    part, rng = part_of(equation, 6), seeded(2)
    good = table(rng, 120, equation)
    separated, masked = good.copy(), good.copy()
    separated[1] = separated[-1] > 0
    masked[0] = 0
    found = []
    for rows in (good, separated, masked, np.full_like(good, np.nan), good * 1e300):
        calls = Counter()
        for name in ("eigh", "sort"):
            owner = np.linalg if name == "eigh" else np
            real = getattr(owner, name)

            def counted(
                *args: Any, real: Any = real, name: Any = name, calls: Any = calls, **options: Any
            ) -> Any:
                calls[name] += 1
                return real(*args, **options)

            monkeypatch.setattr(owner, name, counted)
        sa.estimates(part, rows, np.arange(120))
        monkeypatch.undo()
        found.append(dict(calls))
    assert all(calls == found[0] for calls in found)


def test_blocks_without_an_estimate_count_as_the_public_default() -> None:
    part = part_of("huber", 4, bounds=(1.0, 7.0))
    T = sa.estimates(part, np.full((4, 40), np.nan), np.arange(40))
    assert (T == 4.0).all()
    rows = table(seeded(3), 40, "huber")
    assert (sa.estimates(part, rows, np.arange(40)) >= 1.0).all()


def test_a_release_on_worthless_records_is_a_reply() -> None:
    part = part_of("binomial", 6)
    for rows in (np.full((4, 60), np.nan), np.zeros((4, 60)), np.full((4, 60), 1e300)):
        found = column_registry.release(part, Private(rows))
        assert np.isfinite(found.values).all()
        assert found.values.shape == (8,)


@pytest.mark.slow
def test_the_window_of_a_mean_is_made_of_released_quartiles() -> None:
    """Its noise is that of the window around what was released, not around the blocks' own
    quartiles.
    """
    part = part_of("huber", 8)
    for seed in range(5):
        rows = table(seeded(seed), 80, "huber")
        found = column_registry.release(part, Private(rows)).values.reshape(2, 4)
        for mean, (value, noise, first, third) in zip(part.means, found, strict=True):
            centre, half = sa.window(mean, first, third)
            assert noise == half * noisy_sum.noise_sd(sa.mean_sum(part, mean)) / part.blocks
            assert abs(value - centre) < half + 10 * noise
            assert {first, third} <= set(mean.candidates.points.tolist())
