# SPDX-License-Identifier: Apache-2.0
"""Quantiles in which every person counts once (`per`): exact laws of neighbours, and a search over
persons of any rows.

A person's codes are drawn from none to m of them, in one cell, in several, on both sides of a
selection or beyond the grid; what moves is compared with what one row moves, whose bound has to
hold and to be attained.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, QuantileTree, SumStep
from reticent_server.engine.block_sums import block_sums
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.registry import stored_query
from reticent_server.mechanisms import quantile_tree
from reticent_server.mechanisms.selection import Ladder
from reticent_server.pipeline import planning
from reticent_server.vault.places import ABSENT_MASK
from support.attacks.recorder import Served
from support.attacks.selection_laws import distances, tree_law, worst_rho
from support.seeds import seeded

WHOLE = 1 << 26  # what a person weighs
FOUR = Grid(1.0, 4.0, integers=True)
M, N = 4, 400


def shared(
    asked: tuple[float, ...], rho: int, m: int, grid: Grid = FOUR, repeats: int = 1
) -> QuantileTree:
    return QuantileTree(grid, asked, rho, 1, repeats, m, shared=True)


def persons(cells: int, m: int) -> Iterator[np.ndarray]:
    """All persons of up to m rows, as codes (m, 1)."""
    for rows in combinations_with_replacement(range(-1, cells), m):
        yield np.array(rows, dtype=float)[:, None]


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "m"),
    [
        ((0.5,), 2),
        ((0.25, 0.5, 0.75), 2),
        pytest.param((0.5,), 4, marks=pytest.mark.audit),
        pytest.param((0.25, 0.5, 0.75), 3, marks=pytest.mark.audit),
        pytest.param((0.05, 0.1, 0.9), 3, marks=pytest.mark.audit),
    ],
)
def test_persons_cost_what_is_charged_on_every_small_table(
    asked: tuple[float, ...], m: int
) -> None:
    """Some persons, of whom one is any person of up to m rows on 4 cells: the exact loss is within
    ρ, and near it.

    Of four cells one has the rank aimed at before and after: so near is a person who goes from the
    last cell to the first, with others in all cells but one (no two or three others are nearer), or
    most of them in one for ranks far from the middle.
    """
    part, rng = shared(asked, 2 * RHO_UNITS, m), seeded(3)
    worst = 0.0
    near = [np.full((m, len(cells)), cells) for cells in ([0.0, 2, 3], [1.0, 2, 2, 2])]
    for fixed in (rng.integers(-1, 4, (m, 2)).astype(float), *near):
        tables = [quantile_tree.encode(part, np.hstack([fixed, p])) for p in persons(4, m)]
        laws = [tree_law(part, counts) for counts in tables]
        arrays = [np.array([law.get(k, 0.0) for k in laws[0]]) for law in laws]
        for p, q in product(range(len(laws)), repeat=2):
            if p < q:
                worst = max(worst, worst_rho(arrays[p], arrays[q]))
    assert (0.2 if m > 2 else 0.4) * part.rho < worst * RHO_UNITS <= part.rho


@pytest.mark.sample(4)
@pytest.mark.parametrize("asked", [(0.5,), (0.02, 0.5, 0.99), tuple(k / 16 for k in range(1, 16))])
def test_no_person_moves_selections_further_than_a_row(asked: tuple[float, ...]) -> None:
    """Level by level of the recursion, given the selections above: Σ L² over its sub-problems
    against its price, from codes to the levels that are selected from. A person of one row attains
    the price, to the rounding.
    """
    m, cells, rng = 6, 32, seeded(1)
    part = shared(asked, RHO_UNITS // 50, m, Grid(1.0, float(cells), integers=True), 2)
    ladder, exact = quantile_tree.ladder(part), quantile_tree.exact_probabilities(asked)
    nodes = quantile_tree.levels(asked)
    worst = np.zeros(len(nodes))
    for trial in range(150):
        others = rng.integers(-1, cells, (m, 30)).astype(float)
        before, after = (
            quantile_tree.spread(
                quantile_tree.encode(part, np.hstack([others, person(rng, m, cells, trial)])), 2
            )
            for _ in range(2)
        )
        for k, level in enumerate(nodes):
            cuts = np.sort(rng.integers(1, 2 * cells, len(level) - 1))
            if trial % 4 == 1:  # the first has nearly all, and what is between its two ends
                cuts = 2 * cells - 1 - np.arange(len(level) - 1)[::-1]
            ends = [0, *cuts, 2 * cells]
            loss = 0.0
            for node, low, high in zip(level, ends, ends[1:], strict=False):
                if high - low < 2:
                    continue
                r = node.rank(exact)
                moved = np.abs(
                    levels(before[low:high], r, ladder) - levels(after[low:high], r, ladder)
                )
                loss += ladder.loss(int(moved.max())) ** 2
            worst[k] = max(worst[k], loss)
    prices = [price(level, exact, ladder) for level in nodes]
    assert np.all(worst <= prices)
    assert worst[0] >= 0.999 * prices[0]
    assert np.all(worst >= 0.35 * np.array(prices))
    assert quantile_tree.billed_rho(part) >= sum(prices) / 2
    assert quantile_tree.billed_rho(part) * RHO_UNITS <= part.rho


def person(rng: np.random.Generator, m: int, cells: int, trial: int) -> np.ndarray:
    """One at an end of the grid, every other time in full, or anywhere."""
    rows = rng.integers(-1, cells, (m, 1)).astype(float)
    if trial % 2:
        rows[:] = rng.choice([-1.0, 0.0, cells // 2, cells - 1.0])
        rows[1:] = np.where(rng.random() < 0.5, rows[1:], -1.0)
    return rows


def levels(counts: np.ndarray, r: Fraction, ladder: Ladder) -> np.ndarray:
    cumulative = np.concatenate([[0], np.cumsum(counts)])
    return quantile_tree.levels_of(cumulative, r, ladder.steps, shared=True)


def price(level: Any, exact: Any, ladder: Ladder) -> float:
    """The square of what a level's selections may lose: of a row, and of the rounding in each of J
    sub-problems.
    """
    s = sorted(float(max(node.rank(exact), 1 - node.rank(exact))) for node in level)[-2:]
    apart = sum(ladder.loss(ceil(each * ladder.steps)) ** 2 for each in s) if len(s) > 1 else 0.0
    whole = sqrt(max(ladder.loss(ladder.steps) ** 2, apart))
    return (whole + (sqrt(len(level)) * ladder.loss(1) if len(level) > 1 else 0.0)) ** 2


@pytest.mark.parametrize("rho", [1, 50, 10**6, 10**11, 10**15])
@pytest.mark.parametrize("number", [1, 2, 19, 99])
def test_what_is_billed_is_what_was_offered(rho: int, number: int) -> None:
    """Each level at the price that the search above holds to, rounding and all; for one probability
    that of a row.
    """
    asked = tuple(k / (number + 1) for k in range(1, number + 1))
    part = shared(asked, rho, 5)
    ladder, exact = quantile_tree.ladder(part), quantile_tree.exact_probabilities(asked)
    billed = quantile_tree.billed_rho(part)
    assert billed * RHO_UNITS <= rho
    prices = sum(price(level, exact, ladder) for level in quantile_tree.levels(asked)) / 2
    assert billed == pytest.approx(prices, rel=1e-9)
    assert billed >= prices
    if ladder.steps > 2**12:
        assert billed * RHO_UNITS >= 0.99 * rho
    if number == 1:
        assert ladder == quantile_tree.ladder(QuantileTree(FOUR, asked, rho))


def test_persons_weigh_the_same_in_equal_parts_for_their_rows() -> None:
    codes = np.array([[0, 0, -1, 3, np.nan], [-1, 1, -1, 3, 2], [-1, 1, -1, 3, 9]], dtype=float)
    found = quantile_tree.encode(shared((0.5,), RHO_UNITS, 3), codes)
    third = WHOLE // 3
    assert found.tolist() == [WHOLE + third, 2 * third, WHOLE, 3 * third]
    with pytest.raises(ValueError, match="of each person"):
        quantile_tree.encode(shared((0.5,), RHO_UNITS, 4), codes)
    with pytest.raises(ValueError, match="one of each row"):
        quantile_tree.encode(QuantileTree(FOUR, (0.5,), RHO_UNITS), codes)


def test_levels_of_weights_are_whole_parts_of_distances_in_persons() -> None:
    """⌊d D_k/W⌋ by fractions, up to 2²⁹ persons, where products do not fit 64 bits."""
    rng = seeded(0)
    for r in (Fraction(1, 2), Fraction(1, 3), Fraction(8889, 9999)):
        for most in (3 * WHOLE, WHOLE << 24):
            cumulative = np.concatenate([[0], np.cumsum(rng.integers(0, most, 30))])
            for steps in (1, 7, 2**22):
                expected = [int(each * steps / WHOLE) for each in distances(cumulative, r)]
                found = quantile_tree.levels_of(cumulative, r, steps, shared=True)
                assert found.tolist() == expected


COLUMNS = (
    Column("y", ColumnKind.NUMERIC, -8.0, 8.0),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
)
P = (0.2, 0.5, 0.9)


def plan_of(query: dict[str, Any], m: int = M, epsilon: float = 1.0) -> Plan:
    unit = Unit("person", m) if m > 1 else Unit()
    facts = DatasetFacts("d", "d", 1, "v", N, Schema(COLUMNS, unit))
    return planning.plan(facts, stored_query(query), Privacy(epsilon, 1e-6))


def places(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Persons whose rows differ, with more rows where y is large; which of the places have none."""
    rng, own = seeded(seed), seeded(seed + 1).normal(size=N)
    y = np.clip(np.repeat(own, M) + rng.normal(size=N * M), -8, 8)
    absent = rng.random(N * M) > np.repeat(1 / (1 + np.exp(-2 * own)), M)
    return {"y": y, "b": (rng.random(N * M) < 0.7).astype(float)}, absent


def below(y: np.ndarray, weights: np.ndarray, value: float) -> float:
    """Of all weight, the share that is at most `value`."""
    return float(weights[y <= value].sum() / weights.sum())


@pytest.mark.parametrize("per", ["person", "first", "last"])
@pytest.mark.parametrize("where", [None, "b == 1"])
def test_what_is_released_is_the_quantile_of_persons(per: str, where: str | None) -> None:
    """Against a loop over persons, in ranks at ε = 90, where 8 ranks off is once in 10¹⁰; n is the
    number of persons.
    """
    cells, absent = places(2)
    used = ~absent & ((cells["b"] == 1) if where else True)
    weights = np.zeros(N * M)
    for k in range(N):
        rows = k * M + np.flatnonzero(used[k * M : k * M + M])
        if len(rows) and per == "person":
            weights[rows] = 1 / len(rows)
        elif len(rows):
            weights[rows[0 if per == "first" else -1]] = 1.0
    asked = {"column": "y", "per": per, "where": where}

    def released(query: dict[str, Any]) -> dict[str, Any]:
        plan = plan_of(query | asked, epsilon=90.0)
        result = Served(plan.facts, {**cells, ABSENT_MASK: absent}).run(plan).release.result
        assert result is not None
        assert result["n"] == N
        return result

    found = [
        *released({"kind": "quantiles", "probabilities": P})["values"],
        released({"kind": "median"})["value"],
        *released({"kind": "iqr"})["quartiles"],
    ]
    shares = [below(cells["y"], weights, value) for value in found]
    assert np.allclose(shares, [*P, 0.5, 0.25, 0.75], atol=8 / weights.sum())
    assert below(cells["y"], used.astype(float), found[1]) < 0.46, "rows have the same median here"


@pytest.mark.parametrize("per", ["person", "first"])
@pytest.mark.parametrize("kind", ["quantiles", "median", "iqr"])
def test_the_noise_is_that_of_one_row_a_person(kind: str, per: str) -> None:
    query = {"kind": kind, "column": "y"}
    of_persons, of_one = plan_of(query | {"per": per}), plan_of(query, m=1)
    assert of_persons.planned.forecast["rank_error"] == pytest.approx(
        of_one.planned.forecast["rank_error"], rel=1e-3
    )
    assert of_persons.planned.own_cost == of_one.planned.own_cost
    assert plan_of(query).planned.parts[0].unit_rows == M


@pytest.mark.parametrize("kind", ["quantiles", "median", "iqr"])
def test_what_cannot_be_asked_of_persons(kind: str) -> None:
    query = {"kind": kind, "column": "y", "per": "person"}
    with pytest.raises(InvalidQuery, match="several rows a person"):
        plan_of(query, m=1)
    if kind != "iqr":
        with pytest.raises(InvalidQuery, match="cannot be combined with `by`"):
            plan_of(query | {"by": "b"})
    if kind != "quantiles":
        with pytest.raises(InvalidQuery, match="per is for the mechanism"):
            plan_of(query | {"mechanism": "ptr"})


def test_places_without_a_row_weigh_nothing() -> None:
    """Whatever stands there, from blocks to the sums that are selected from."""
    step = next(plan_of({"kind": "quantiles", "column": "y", "per": "person"}).planned.run())
    assert isinstance(step, SumStep)
    cells, absent = places(4)
    found = []
    for fill in (0.0, 7.0):
        y = np.where(absent, fill, cells["y"])
        block = Block(0, N * M, {"y": y}, {ABSENT: absent})
        found.append(block_sums(step, block)[0])
    assert np.array_equal(*found)
    people = np.count_nonzero(~absent.reshape(N, M).all(axis=1))
    assert people - 1e-6 * N < found[0].sum() / WHOLE <= people
