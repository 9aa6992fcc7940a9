# SPDX-License-Identifier: Apache-2.0
"""The privacy suite of private quantiles: exact joint laws of neighbours, ties, and any order of
the rows.
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.grid import Grid
from reticent_server.domain.private import Private
from reticent_server.domain.steps import QuantileTree
from reticent_server.mechanisms import quantile_tree
from reticent_server.numerics.grids import cell_codes, repeats
from support.attacks.selection_laws import (
    ALPHAS,
    distances,
    divergence,
    probabilities,
    tree_law,
    worst_rho,
)
from support.seeds import seeded

FOUR = Grid(1.0, 4.0, integers=True)


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "asked",
    [(0.5,), (0.25, 0.5, 0.75), pytest.param((0.05, 0.1, 0.9), marks=pytest.mark.audit)],
)
@pytest.mark.parametrize("unit_rows", [1, 2])
def test_quantiles_cost_what_is_charged_on_every_small_table(
    asked: tuple[Any, ...], unit_rows: int
) -> None:
    """All tables of n = 4 on 4 cells and all their neighbours: the exact loss is within ρ."""
    part = QuantileTree(FOUR, asked, 2 * RHO_UNITS, unit_rows)
    worst = worst_over_tables(part, 4, unit_rows)
    assert 0.2 * part.rho < worst * RHO_UNITS <= part.rho
    assert quantile_tree.billed_rho(part) * RHO_UNITS <= part.rho


@pytest.mark.parametrize("asked", [(0.5,), (0.25, 0.5, 0.75), (0.1, 0.2, 0.9)])
def test_tables_that_may_be_empty_cost_what_is_charged(asked: tuple[Any, ...]) -> None:
    """The candidate of no records, much the likeliest on such small tables, adds nothing to the
    price.
    """
    grid = Grid(1.0, 2.0, integers=True)
    part = QuantileTree(grid, asked, 2 * RHO_UNITS, repeats=2, may_be_empty=True)
    assert 0 < worst_over_tables(part, 2, 1) * RHO_UNITS <= part.rho


def test_cells_that_are_divided_cost_what_is_charged() -> None:
    """Two cells of two sub-cells each: ties are split, and a neighbour's split is a neighbour's."""
    part = QuantileTree(Grid(1.0, 2.0, integers=True), (0.25, 0.5, 0.75), 2 * RHO_UNITS, repeats=2)
    worst = worst_over_tables(part, 2, 1)
    assert 0.2 * part.rho < worst * RHO_UNITS <= part.rho


def worst_over_tables(part: Any, cells: Any, unit_rows: int) -> Any:
    tables = [c for c in product(range(5), repeat=cells) if sum(c) in (3, 4)]
    laws = {counts: tree_law(part, counts) for counts in tables}
    worst = 0.0
    for a, b in product(tables, repeat=2):
        moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
        if a != b and moved <= 2 * unit_rows and abs(sum(a) - sum(b)) <= unit_rows:
            p, q = (np.array([laws[t].get(k, 0.0) for k in laws[a]]) for t in (a, b))
            worst = max(worst, worst_rho(p, q))
    return worst


@pytest.mark.parametrize("unit_rows", [1, 3])
@pytest.mark.parametrize("asked", [(0.01, 0.5, 0.51), (0.02, 0.5, 0.99), (0.25, 0.5, 0.75)])
def test_the_price_of_a_level_is_attained(asked: tuple[Any, ...], unit_rows: int) -> None:
    """Given the first selection, records leave one half for the other, or cross one of them: the
    worst pair has nearly the price of its level, and the price of both levels is ρ.
    """
    part = QuantileTree(FOUR, asked, 10**4, unit_rows)
    exact, ladder = quantile_tree.exact_probabilities(asked), quantile_tree.ladder(part)
    nodes = quantile_tree.levels(asked)[1]
    first, second = (float(node.rank(exact)) for node in nodes)
    one = unit_rows**2 * ladder.loss(ladder.steps) ** 2 / 2
    price = one * max(1.0, sum(max(r, 1 - r) ** 2 for r in (first, second)))
    crossed, same = crossing(unit_rows), (emptied(second, 0), emptied(second, 0))
    worst = max(
        level_loss(nodes, exact, ladder, pairs)
        for pairs in (
            (
                (emptied(first, 0), emptied(first, unit_rows)),
                (emptied(second, unit_rows), emptied(second, 0)),
            ),
            (crossed, same),
        )
    )
    assert 0.95 * price <= worst <= price
    assert 0.998 * part.rho <= (one + price) * RHO_UNITS <= 1.002 * part.rho


def emptied(r: Any, gone: Any) -> Any:
    """Counts of 102 cells from which `gone` records left that all but one cell sees below, or
    above, itself.

    Half of the other cells have fewer records than the rank r, and half more: with those records
    gone the distances of one half rise by max(r, 1 − r), and those of the other fall by it.
    """
    low = [8 - gone, *[0] * 50, 992, *[0] * 50]
    return np.array(low if r <= 0.5 else low[::-1])


def crossing(records: Any) -> tuple[Any, Any]:
    """Counts of a sub-problem, and those after records went from its first cell to its last."""
    table = np.array([8, *[0] * 50, 984, *[0] * 50, 8])
    other = table.copy()
    other[[0, -1]] += [-records, records]
    return table, other


def level_loss(nodes: Any, exact: Any, ladder: Any, pairs: Any) -> Any:
    """max over α of Σ D_α/α over the sub-problems of a level, for each its counts and those of a
    neighbour.
    """
    found = np.zeros(len(ALPHAS))
    for node, (table, other) in zip(nodes, pairs, strict=True):
        laws = []
        for counts in (table, other):
            cumulative = np.concatenate([[0], np.cumsum(counts)])
            laws.append(
                probabilities(
                    quantile_tree.levels_of(cumulative, node.rank(exact), ladder.steps), ladder
                )
            )
        found += [divergence(*laws, alpha) / alpha for alpha in ALPHAS]
    return found.max()


@pytest.mark.slow
@pytest.mark.parametrize("may_be_empty", [False, True])
def test_release_follows_the_law_that_was_audited(may_be_empty: bool) -> None:
    part = QuantileTree(FOUR, (0.25, 0.5, 0.75), RHO_UNITS, may_be_empty=may_be_empty)
    counts = np.array([3, 1, 0, 4], dtype=np.int64)
    law, total = tree_law(part, tuple(counts)), Private(counts)
    assert may_be_empty == (0.1 < law.get((-1, -1, -1), 0.0) < 0.9)
    keys = [k for k in law if law[k] > 1e-4]
    draws = [
        tuple(int(v) - 1 for v in np.nan_to_num(quantile_tree.release(part, total).values))
        for _ in range(3000)
    ]
    seen = np.array([draws.count(k) for k in keys])
    expected = np.array([law[k] for k in keys])
    assert stats.chisquare(seen, seen.sum() * expected / expected.sum()).pvalue > 1e-6


def test_levels_are_whole_parts_of_distances_in_ranks() -> None:
    """⌊d D_k⌋ by fractions, at ranks that are no whole numbers; one cell at least has level 0."""
    rng = seeded(0)
    for r in (Fraction(1, 2), Fraction(1, 3), Fraction(8889, 9999)):
        cumulative = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 30))])
        for steps in (1, 7, 2**22):
            expected = [int(each * steps) for each in distances(cumulative, r)]
            assert quantile_tree.levels_of(cumulative, r, steps).tolist() == expected
            assert 0 in expected


@pytest.mark.parametrize("seed", range(20))
def test_zeros_of_more_than_half_are_the_median(seed: int) -> None:
    """54 % zeros beside empty candidates, on whose side of the rank four in a hundred records are
    more than on that of any sub-cell's end: the median is 0, as it is of the records.
    """
    rng, n = seeded(seed), 2_000
    values = np.where(np.arange(n) < 0.54 * n, 0.0, rng.uniform(1000.0, 1e5, n))
    grid = Grid(0.0, 1e5)
    part = QuantileTree(grid, (0.5,), RHO_UNITS // 8, 1, repeats(grid))
    counts = Private(quantile_tree.encode(part, cell_codes(values, grid)))
    assert quantile_tree.release(part, counts).values[0] == 0.0


@pytest.mark.parametrize("sub_cells", [1, 2, 8, 1024])
def test_one_more_record_is_one_more_in_one_sub_cell(sub_cells: int) -> None:
    counts = np.array([0, 5, 1023, 7, 4096], dtype=np.int64)
    before = quantile_tree.spread(counts, sub_cells)
    assert before.reshape(5, -1).sum(axis=1).tolist() == counts.tolist()
    assert np.ptp(before.reshape(5, -1), axis=1).max() <= 1
    for cell in range(5):
        more = counts.copy()
        more[cell] += 1
        moved = quantile_tree.spread(more, sub_cells) - before
        assert sorted(moved[moved != 0].tolist()) == [1]
        assert np.flatnonzero(moved)[0] // sub_cells == cell


def test_a_record_moves_where_intervals_meet_by_no_more_than_one() -> None:
    """All tables of up to three records in each of four sub-cells, two a candidate: one more record
    moves every M_k by 0 or 1, and that of one candidate's two is in the middle of the second.
    """
    for counts in product(range(4), repeat=4):
        for low in (0, 1):
            ends = [met([c + (k == more) for k, c in enumerate(counts)], low) for more in range(5)]
            moves = [tuple(each - ends[4]) for each in ends[:4]]
            assert all(set(move) <= {0, 1} and move[-1] == 1 and move[0] == 0 for move in moves)
    assert met([9, 5, 0, 8], 0).tolist() == [0, 11, 14, 18, 22]
    assert met([9, 5, 0, 8], 1).tolist() == [0, 9, 14, 14, 22]


def met(counts: Any, low: int) -> Any:
    return quantile_tree.meeting(np.concatenate([[0], np.cumsum(counts)]), low, 2)


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_split_where_the_rank_is(seed: int) -> None:
    """A value with 40 % of the records, and the median three eighths into it: the split lies there,
    and not an eighth farther, so that quartiles beside it err by noise alone.
    """
    rng, n = seeded(seed), 20_000
    values = rng.uniform(1.0, 1e5, n)
    zeros = round(0.4 * n)
    values[:zeros] = 0.0
    values[zeros : zeros + round(0.35 * n)] *= -1
    grid = Grid(-1e5, 1e5)
    part = QuantileTree(grid, (0.2, 0.5, 0.875), RHO_UNITS // 8, 1, repeats(grid))
    counts = Private(quantile_tree.encode(part, cell_codes(values, grid)))
    found = quantile_tree.release(part, counts).values
    ranks = np.searchsorted(np.sort(values), found)
    assert found[1] == 0.0
    assert np.abs(ranks[[0, 2]] - n * np.array([0.2, 0.875])).max() < 200


def test_any_few_records_of_a_cell_are_spread_over_all_of_it() -> None:
    assert np.flatnonzero(quantile_tree.spread(np.array([2]), 8)).tolist() == [0, 4]
    assert np.flatnonzero(quantile_tree.spread(np.array([4]), 8)).tolist() == [0, 2, 4, 6]


def test_nothing_depends_on_the_order_of_the_rows() -> None:
    """A file that was sorted again, by one place or at random: the counts that are released from
    are the same.
    """
    rng = seeded(1)
    values = np.where(rng.random(20_000) < 0.75, 0.0, rng.normal(size=20_000))
    grid = Grid(-10.0, 10.0)
    part = QuantileTree(grid, (0.5,), RHO_UNITS, 1, repeats(grid))
    counts = [
        quantile_tree.spread(quantile_tree.encode(part, cell_codes(order, grid)), part.repeats)
        for order in (values, np.roll(values, 1), rng.permutation(values), np.sort(values))
    ]
    for other in counts[1:]:
        assert np.array_equal(counts[0], other)


def test_quantiles_are_close_on_data_with_ties() -> None:
    rng = seeded(5)
    values = np.where(rng.random(20_000) < 0.75, 0.0, rng.integers(1, 50, 20_000))
    grid = Grid(0.0, 50.0, integers=True)
    part = QuantileTree(grid, (0.25, 0.5, 0.74, 0.8, 0.95), RHO_UNITS // 100, 1, repeats(grid))
    counts = Private(quantile_tree.encode(part, cell_codes(values, grid)))
    found = quantile_tree.release(part, counts).values
    assert list(found[:3]) == [0.0, 0.0, 0.0]
    assert np.all(np.abs(found[3:] - np.quantile(values, [0.8, 0.95])) <= 2)


@pytest.mark.parametrize("rho", [1, 50, 1000, 10**9, 10**15])
@pytest.mark.parametrize("unit_rows", [1, 40])
def test_what_is_billed_is_what_was_offered(rho: int, unit_rows: int) -> None:
    part = QuantileTree(FOUR, tuple(k / 20 for k in range(1, 20)), rho, unit_rows)
    billed = quantile_tree.billed_rho(part) * RHO_UNITS
    assert billed <= rho
    if quantile_tree.ladder(part).steps > 2**12:
        assert billed >= 0.995 * rho
