# SPDX-License-Identifier: Apache-2.0
"""Histograms, crosstabs, sums and quantiles: right, honest about their noise, and private."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.formula import mask_design
from reticent_server.kinds.crosstab.plan import plan_crosstab
from reticent_server.kinds.histogram.plan import plan_histogram
from reticent_server.kinds.median.by_selection import plan_exponential_median
from reticent_server.kinds.quantiles.plan import plan_quantiles
from reticent_server.kinds.sum.plan import plan_sum
from reticent_server.mechanisms.noisy_sum import noise_sd
from support.attacks.privacy_losses import step_loss
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

RHO = RHO_UNITS // 20
X = numeric("x", -50.0, 150.0, ("NA",))
K = Column("k", ColumnKind.INTEGER, 1, 5)
G = Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"))
D = Column("d", ColumnKind.BOOLEAN, 0, 1)
COLUMNS = (X, K, G, D)
N = 4000


def data(n: Any = N, seed: int = 0) -> Any:
    rng = seeded(seed)
    missing = rng.random(n) < 0.2
    return block_of(
        {"x": missing},
        x=np.where(missing, 0.0, rng.normal(40, 12, n)),
        k=rng.integers(1, 6, n).astype(float),
        g=rng.integers(0, 3, n).astype(float),
        d=(rng.random(n) < 0.3).astype(float),
    )


def design(columns: Any, where: Any = None, n: Any = N) -> Any:
    return mask_design(columns, facts_of(n, COLUMNS).schema, where)


def test_a_histogram_of_public_bins_counts_each_record_once() -> None:
    block, edges = data(), (0.0, 30.0, 40.0, 60.0)
    plan = plan_histogram(facts_of(N, COLUMNS), design(("x",)), X, edges, 10**18)
    found = answer(plan, block)
    used = block.columns["x"][~block.missing["x"]]
    assert np.rint(found["values"]) == pytest.approx(np.histogram(used, edges)[0], abs=1)
    assert found["edges"] == list(edges)


def cell_counts(plan: Any, block: Any, draws: int) -> Any:
    """(draws, cells) of a released table."""
    return np.array([np.ravel(answer(plan, block)["values"]) for _ in range(draws)])


WHOLE = {
    "a boolean's levels": (D, None, 2),
    "three levels": (G, None, 3),
    "bins over all declared values": (K, (0.0, 2.0, 4.0, 6.0), 3),
}


@pytest.mark.parametrize("name", WHOLE)
def test_cells_that_hold_all_records_add_up_to_the_public_number_of_them(name: str) -> None:
    """And have less noise, as much less as is said: 200 seeded draws."""
    column, bins, size = WHOLE[name]
    plan = plan_histogram(facts_of(N, COLUMNS), design((column.name,)), column, bins, RHO // 50)
    block = data()
    drawn = cell_counts(plan, block, 200)
    assert drawn.sum(axis=1) == pytest.approx(N, abs=1e-6)
    said = plan.forecast["privacy_standard_error"]
    assert said == pytest.approx(noise_sd(plan.part) * np.sqrt(1 - 1 / size))
    edges = bins or np.arange(column.lower, column.upper + 2) - 0.5
    exact = np.histogram(block.columns[column.name], edges)[0]
    assert np.sqrt(np.mean((drawn - exact) ** 2)) == pytest.approx(said, rel=0.15)


OPEN = {
    "missing cells": (design(("x",)), X, (-50.0, 0.0, 150.0)),
    "a condition": (design(("g",), "d == 1"), G, None),
    "bins that leave values out": (design(("k",)), K, (1.0, 2.0, 4.0)),
}


@pytest.mark.parametrize("name", OPEN)
def test_cells_that_some_record_may_be_outside_of_are_as_released(name: str) -> None:
    mask, column, bins = OPEN[name]
    plan = plan_histogram(facts_of(N, COLUMNS), mask, column, bins, RHO // 50)
    assert not plan.adds_up
    assert plan.forecast["privacy_standard_error"] == noise_sd(plan.part)
    assert np.std(cell_counts(plan, data(), 20).sum(axis=1)) > 1


def test_rows_of_persons_do_not_add_up() -> None:
    plan = plan_histogram(facts_of(N, COLUMNS, 3), design(("g",)), G, None, RHO)
    assert not plan.adds_up


def test_edges_belong_to_the_bin_above_and_the_last_to_its_own() -> None:
    block = block_of(k=np.array([1.0, 2.0, 2.0, 4.0, 4.5, 5.0, np.nan]))
    plan = plan_histogram(facts_of(7, COLUMNS), design(("k",)), K, (1.0, 2.0, 4.5), 10**18)
    assert np.rint(answer(plan, block)["values"]).tolist() == [1, 4]


def test_a_histogram_of_levels_and_of_whole_numbers() -> None:
    block = data()
    for column, shown in ((G, ["a", "b", "c"]), (K, ["1", "2", "3", "4", "5"]), (D, ["0", "1"])):
        plan = plan_histogram(facts_of(N, COLUMNS), design((column.name,)), column, None, 10**18)
        found = answer(plan, block)
        truth = [(block.columns[column.name] == column.lower + j).sum() for j in range(len(shown))]
        assert found["levels"] == shown
        assert np.rint(found["values"]).tolist() == truth


def test_a_crosstab_and_its_test() -> None:
    block = data()
    block.columns["k"][:] = np.where(block.columns["d"] > 0, 1.0, block.columns["k"])
    plan = plan_crosstab(facts_of(N, COLUMNS), design(("k", "d"), 'g != "a"'), (K, D), RHO)
    found = answer(plan, block)
    used = block.columns["g"] != 0
    truth = np.array([
        [((block.columns["k"] == k) & (block.columns["d"] == d) & used).sum() for d in (0, 1)]
        for k in range(1, 6)
    ])  # fmt: skip
    assert np.array(found["values"]) == pytest.approx(truth, abs=6 * found["standard_error"])
    assert found["levels"] == [["1", "2", "3", "4", "5"], ["0", "1"]]
    assert found["independence"]["df"] == 4
    assert found["independence"]["p_value"] < 1e-6
    three = plan_crosstab(facts_of(N, COLUMNS), design(("k", "d", "g")), (K, D, G), RHO)
    assert np.shape(answer(three, block)["values"]) == (5, 2, 3)


def test_intervals_of_counts_and_sums_cover_the_table() -> None:
    hits, runs, block = [], 300, data(500)
    edges = (0.0, 30.0, 40.0, 60.0)
    public, mask = facts_of(500, COLUMNS), design(("x",), n=500)
    used = np.where(block.missing["x"], 0.0, block.columns["x"])
    counts = np.histogram(block.columns["x"][~block.missing["x"]], edges)[0]
    for _ in range(runs):
        low, high = answer(plan_sum(public, mask, X, RHO), block)["confidence_interval"]
        hits.append(low <= used.sum() <= high)
        found = answer(plan_histogram(public, mask, X, edges, RHO), block)["confidence_intervals"]
        hits += [a <= c <= b for (a, b), c in zip(found, counts, strict=True)]
    assert 0.92 <= np.mean(hits) <= 0.98


def test_a_sum_of_all_records_needs_noise_for_the_width_of_the_bounds_only() -> None:
    far = numeric("y", 1000.0, 1001.0)
    public = facts_of(10, (far,))
    plan = plan_sum(public, mask_design(("y",), public.schema), far, RHO)
    assert plan.forecast["privacy_standard_error"] == pytest.approx(1 / np.sqrt(2 * 0.05), rel=1e-5)
    assert answer(plan, block_of(y=np.full(10, 1000.5)))["value"] == pytest.approx(10005, abs=20)


def test_quantiles_are_close_in_order_and_as_asked() -> None:
    block, asked = data(40_000), (0.9, 0.1, 0.5, 0.5, 0.25)
    plan = plan_quantiles(facts_of(40_000, COLUMNS), design(("x",)), X, asked, RHO)
    found = answer(plan, block)
    used = block.columns["x"][~block.missing["x"]]
    assert found["probabilities"] == list(asked)
    assert found["values"] == pytest.approx(np.quantile(used, asked), abs=1.0)
    median = plan_exponential_median(facts_of(40_000, COLUMNS), design(("x",)), X, 10**9)
    assert answer(median, block)["value"] == pytest.approx(np.median(used), abs=1.0)


@pytest.mark.parametrize("asked", [(), (0.0, 0.5), (1.0,), (0.5, 0.50001), (0.5,) * 100])
def test_probabilities_that_mean_nothing_are_refused(asked: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidQuery):
        plan_quantiles(facts_of(N, COLUMNS), design(("x",)), X, asked, RHO)


def test_the_exponential_median_is_epsilon_dp() -> None:
    """Every pair of small tables: the exact probabilities of every candidate, within e^ε."""
    epsilon, grid = 10**9, 5
    public = facts_of(3, (K,))
    plan = plan_exponential_median(public, mask_design(("k",), public.schema), K, epsilon)
    assert (plan.own_cost.epsilon, plan.own_cost.delta, plan.own_cost.rho) == (
        epsilon,
        0,
        RHO_UNITS // 8,
    )
    b = plan.forecast["rank_error"] * 3
    laws = {}
    for table in product(range(grid), repeat=3):
        ranks = np.array([sum(v <= c for v in table) for c in range(grid)])
        weights = np.exp(-np.abs(ranks - 1.5) / b)
        laws[table] = weights / weights.sum()
    worst = max(
        np.abs(np.log(laws[a] / laws[other])).max()
        for a in laws for i in range(3) for v in range(grid)
        for other in [(*a[:i], v, *a[i + 1 :])]
    )  # fmt: skip
    assert 0.6 < worst <= 1.0


def test_what_cannot_be_tabulated_is_refused() -> None:
    public = facts_of(N, COLUMNS)
    wide = Column("w", ColumnKind.INTEGER, 0, 5000)
    for call in (
        lambda: plan_histogram(public, design(("x",)), X, None, RHO),
        lambda: plan_histogram(public, design(("x",)), X, (1.0,), RHO),
        lambda: plan_histogram(public, design(("x",)), X, (1.0, 1.0, 2.0), RHO),
        lambda: plan_histogram(public, design(("x",)), X, (0.0, np.inf), RHO),
        lambda: plan_histogram(public, design(("g",)), G, (0.0, 1.0), RHO),
        lambda: plan_histogram(public, design(("x",)), wide, None, RHO),
        lambda: plan_crosstab(public, design(("g",)), (G,), RHO),
        lambda: plan_crosstab(public, design(("g",)), (G, G), RHO),
    ):
        with pytest.raises(InvalidQuery):
            call()


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("max_rows", [1, 2])
@settings(max_examples=80, deadline=None)
@given(
    x=st.floats(allow_nan=True, allow_infinity=True), k=st.integers(-2, 9),
    g=st.integers(0, 2), d=st.integers(0, 1), missing=st.booleans(),
)  # fmt: skip
def test_neighbours_lose_at_most_what_is_charged(
    max_rows: int, x: Any, k: Any, g: Any, d: Any, missing: Any
) -> None:
    block, other = data(6), data(6)
    for row in range(max_rows):
        for name, value in (("x", 0.0 if missing else x), ("k", k), ("g", g), ("d", d)):
            other.columns[name][row] = value
        other.missing["x"][row] = missing
    public = facts_of(6, COLUMNS, max_rows)
    plans = [
        plan_histogram(public, design(("x",)), X, (0.0, 20.0, 40.0), RHO),
        plan_histogram(public, design(("g",), "k >= 3"), G, None, RHO),
        plan_crosstab(public, design(("k", "d", "g")), (K, D, G), RHO),
        plan_sum(public, design(("x",)), X, RHO),
        plan_sum(public, design(("k",)), K, RHO),
        plan_quantiles(public, design(("x",)), X, (0.25, 0.5), RHO),
    ]
    for plan in plans:
        assert step_loss(next(plan.run()), block, other) <= plan.rho
        assert plan.rho <= RHO
