# SPDX-License-Identifier: Apache-2.0
"""Steps by groups, attacked: pairs inside a group and pairs that move lose no more than is charged,
and some lose all of it.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.grid import Grid
from reticent_server.domain.steps import (
    Block,
    ByGroup,
    CountSum,
    GramSum,
    OneVector,
    PowerSum,
    QuantileTree,
    RunningCounts,
    Scaled,
    SumStep,
    VectorSum,
)
from reticent_server.engine.block_sums import block_sums
from reticent_server.kinds import registry as kinds
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import (
    disjoint_groups,
    quantile_tree,
    registry,
    running_counts,
)
from reticent_server.mechanisms.disjoint_groups import GroupsMap, grouped
from support.attacks.privacy_losses import step_loss
from support.attacks.selection_laws import (
    ALPHAS,
    divergence,
    log_weights,
    probabilities,
    tree_law,
    worst_rho,
)
from support.fits.regressions import drive, whole
from support.kinds.named_tests import PEOPLE, offer, people
from support.kinds.recipes import facts_of
from support.seeds import seeded

RHO = 10**9
FOUR = Grid(1.0, 4.0, integers=True)


def plane(block: Block) -> Any:
    """A record's vector has the angle t and the length s; w and v are signed lengths."""
    c = block.columns
    return np.stack([np.cos(c["t"]), np.sin(c["t"])]), c


def vector(block: Block) -> Any:
    u, c = plane(block)
    return (u * c["s"],)


def codes(block: Block) -> Any:
    return (block.columns["k"],)


def jointly(block: Block) -> Any:
    u, c = plane(block)
    return Scaled(u, c["s"]), Scaled(u, np.abs(c["s"])), Scaled(u, c["s"])


PARTS = {
    "vector": ((VectorSum(2, 1.0, RHO),), vector, None),
    "Gram": ((GramSum(2, 1.0, RHO),), vector, None),
    "counts": ((CountSum(3, RHO),), codes, None),
    "one count": ((CountSum(1, RHO),), codes, None),
    "running counts": ((RunningCounts(2, 1, RHO),), codes, None),
    "one vector": (
        (VectorSum(2, 1.0, RHO), GramSum(2, 1.0, RHO // 3), GramSum(2, 1.0, RHO // 2)),
        jointly,
        OneVector(vector=0, curvature=1, meat=2),
    ),
}
FREE = ("vector", "Gram", "counts", "running counts", "one vector")
"""Where a record that moves loses no more than one that is replaced in its group."""


def by_group(name: str, unit_rows: int = 1, groups: int = 3) -> SumStep:
    parts, map_fn, joint = PARTS[name]
    own = tuple(type(p)(**{**_fields(p), "unit_rows": unit_rows}) for p in parts)
    steps = [SumStep(name, own, map_fn, joint=joint) for _ in range(groups)]
    return grouped(name, "g", [float(g) for g in range(groups)], steps)


def _fields(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def record(**cells: float) -> Block:
    return whole({k: np.array([float(v)]) for k, v in cells.items()})


def records(angles: int = 24) -> list[Block]:
    turns = np.linspace(0, 2 * np.pi, angles, endpoint=False)
    return [
        record(t=t, s=s, k=k, g=g)
        for t, s, k, g in product(turns, (1.0, 9.0, 0.3), (0.0, 1.0), (0.0, 1.0, 7.0))
        if s == 9.0 or t == turns[0]
    ]


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("unit_rows", [1, 3])
@pytest.mark.parametrize("name", PARTS)
def test_a_record_that_moves_or_is_replaced_loses_no_more_than_the_charge_and_one_loses_it(
    name: str, unit_rows: int
) -> None:
    step = by_group(name, unit_rows)
    every = records(24 if name != "one count" else 2)
    first = every[0]
    charge = registry.rho(step)
    shares = [
        step_loss(step, first, other) * unit_rows**2 / charge
        for first in (first, every[-1])
        for other in every
    ]
    assert 0.98 <= max(shares) <= 1 + 1e-9
    one = registry.rho(SumStep(name, *PARTS[name][:2], joint=PARTS[name][2]))
    assert charge == one * (1 if name in FREE else 2)


def test_rows_of_one_unit_in_many_groups_lose_no_more_than_the_charge() -> None:
    for name, seed in product(PARTS, range(8)):
        step, rng = by_group(name, 3), seeded(seed)
        one, other = (
            whole(
                {
                    "t": rng.uniform(0, 6.3, 3),
                    "s": np.full(3, 9.0),
                    "k": np.zeros(3),
                    "g": rng.integers(0, 4, 3).astype(float),
                }
            )
            for _ in range(2)
        )
        assert step_loss(step, one, other) <= registry.rho(step)


def test_no_group_sees_a_record_of_another_or_of_none() -> None:
    block = Block(
        0,
        6,
        {"g": np.array([0.0, 1.0, 0.0, 5.0, 1.0, 1.0]), "k": np.arange(6.0)},
        {"g": np.array([False, False, True, False, False, False])},
        unusable=np.array([False] * 5 + [True]),
    )
    seen: list[list[float]] = []

    def remember(part: Block) -> Any:
        assert part.unusable is None
        seen.append(part.columns["k"].tolist())
        return (np.zeros(part.rows),)

    step = grouped("", "g", (0.0, 1.0), [SumStep("", (CountSum(1, RHO),), remember)] * 2)
    assert [int(x[0]) for x in block_sums(step, block)] == [1, 2]
    assert seen == [[0.0], [1.0, 4.0]]


@dataclass(frozen=True)
class Ordered:
    """A block whose records the engine says to be in the order of the groups 1, 0."""

    ends: tuple[int, ...] = (2, 4)
    missing: int = 4
    unusable: int = 4

    @property
    def block(self) -> Block:
        """Five records of the groups 1, 1, 0, 0 and of none."""
        at = np.arange(5)
        cells = {"g": np.array([1.0, 1.0, 0.0, 0.0, 0.0]), "k": np.zeros(5)}
        lost = {"g": at == self.missing}
        return Block(0, 5, cells, lost, unusable=at == self.unusable, ends=self.ends)


@pytest.mark.parametrize(
    "wrong",
    [
        Ordered((1, 4)),
        Ordered((3, 4)),
        Ordered((2, 5)),
        Ordered((2, 4), missing=3),
        Ordered((2, 4), unusable=0),
        Ordered((2,)),
        Ordered((4, 2)),
        Ordered((2, 6)),
    ],
)
def test_an_order_that_the_engine_claims_is_looked_at(wrong: Ordered) -> None:
    """No group sees a record of another, whatever a block is said to be."""
    step = grouped("", "g", (1.0, 0.0), [SumStep("", (CountSum(1, RHO),), codes)] * 2)
    assert [int(x[0]) for x in block_sums(step, Ordered().block)] == [2, 2]
    with pytest.raises(ValueError, match=r"own only|one after another"):
        block_sums(step, wrong.block)


def test_what_is_not_proved_is_refused() -> None:
    alone = SumStep("", (CountSum(1, RHO),), codes)
    step = grouped("", "g", (0.0, 1.0), [alone, alone])
    with pytest.raises(ValueError, match="has a map by groups"):
        registry.rho(SumStep("", step.parts, codes, joint=step.joint))
    same = GroupsMap("g", (0.0, 0.0), (codes, codes))
    with pytest.raises(ValueError, match="disjoint"):
        registry.rho(SumStep("", step.parts, same, joint=step.joint))
    with pytest.raises(ValueError, match="several groups"):
        registry.rho(
            grouped("", "g", (0.0,), [SumStep("", (VectorSum(2, 1.0, RHO, 1, 3),), vector)])
        )
    with pytest.raises(ValueError, match="one step for each group"):
        grouped("", "g", (0.0, 0.0), [alone, alone])
    with pytest.raises(ValueError, match="no groups"):
        grouped("", "g", (0.0,), [step])
    for shares in ({"shared": True}, {"weighted": True}):
        with pytest.raises(ValueError, match="whole records"):
            quantile_tree.ladder(QuantileTree(FOUR, (0.5,), RHO, may_be_empty=True, **shares))
    with pytest.raises(ValueError, match="those of its groups"):
        disjoint_groups.of_each(ByGroup((1, 1), (None, None)), step.parts[:1])


def test_one_group_costs_what_it_costs_alone_and_two_unlike_ones_what_a_move_does() -> None:
    alone = SumStep("", (CountSum(1, RHO),), codes)
    cheap = SumStep("", (CountSum(1, RHO // 3),), codes)
    assert registry.rho(grouped("", "g", (0.0,), [alone])) == RHO
    assert registry.rho(grouped("", "g", (0.0, 1.0, 2.0), [cheap, alone, cheap])) == RHO + RHO // 3
    assert disjoint_groups.leaving_rho(PowerSum(((0.0, 1.0),), RHO)) == RHO


@pytest.mark.parametrize("length", [1, 4, 48])
def test_a_code_that_leaves_running_counts_costs_half_and_attains_it(length: int) -> None:
    """All positions: the farthest that one code less moves the released integers."""
    part = RunningCounts(2, length, RHO)
    moves = [
        running_counts.factored(part, np.eye(part.bins, dtype=np.int64)[k])
        for k in range(part.bins)
    ]
    worst = max(float(m.astype(float) @ m.astype(float)) for m in moves)
    loss = worst / (2 * running_counts.scale(part) ** 2) * RHO_UNITS
    assert 0.999 * RHO / 2 < loss <= disjoint_groups.leaving_rho(part) == RHO // 2


ASKED = [(0.5,), (0.9,), (0.25, 0.5, 0.75), (0.05, 0.1, 0.9)]


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("may_be_empty", [False, True])
def test_two_trees_between_which_a_record_moves_lose_no_more_than_the_charge(
    asked: tuple[float, ...], may_be_empty: bool
) -> None:
    """All pairs of small tables, one record leaving the one and entering the other: exact laws,
    independent draws.
    """
    part = QuantileTree(FOUR, asked, 2 * RHO_UNITS, may_be_empty=may_be_empty)
    tables = [c for c in product(range(4), repeat=4) if sum(c) <= 4]
    laws = {counts: tree_law(part, counts) for counts in tables}
    leaving, entering = np.zeros(len(ALPHAS)), np.zeros(len(ALPHAS))
    for counts in tables:
        for cell in range(4):
            more = tuple(c + (k == cell) for k, c in enumerate(counts))
            if more in laws:
                p, q = (np.array([laws[t][k] for k in laws[counts]]) for t in (counts, more))
                leaving = np.maximum(leaving, [divergence(q, p, a) / a for a in ALPHAS])
                entering = np.maximum(entering, [divergence(p, q, a) / a for a in ALPHAS])
                assert worst_rho(p, q) * RHO_UNITS <= quantile_tree.leaving_rho(part)
    worst = float((leaving + entering).max()) * RHO_UNITS
    charge = disjoint_groups.of_equal_parts(part)
    assert 0.15 * charge < worst <= charge


@pytest.mark.parametrize("r", [0.5, 0.9, 0.25])
def test_a_record_that_leaves_a_tree_moves_a_level_by_as_much_as_is_billed(r: float) -> None:
    """All small tables: the largest move of a level is ⌈s d⌉, s = max(r, 1 − r)."""
    steps, exact, worst = 1000, Fraction(r).limit_denominator(100), 0
    for counts in product(range(3), repeat=4):
        for cell in range(4):
            more = [c + (k == cell) for k, c in enumerate(counts)]
            levels = [
                quantile_tree.levels_of(np.concatenate([[0], np.cumsum(c)]), exact, steps)
                for c in (counts, more)
            ]
            worst = max(worst, int(np.abs(levels[1] - levels[0]).max()))
    assert worst == round(max(r, 1 - r) * steps)


@pytest.mark.parametrize("asked", ASKED)
def test_a_record_that_leaves_moves_the_level_of_no_records_by_as_much_as_is_billed(
    asked: tuple[float, ...],
) -> None:
    """By ⌈s d⌉ at most, and by that for some numbers of records; twice as much is too much."""
    part = QuantileTree(FOUR, asked, 2 * RHO_UNITS, may_be_empty=True)
    r = asked[(len(asked) - 1) // 2]
    bound = ceil(max(Fraction(str(r)), 1 - Fraction(str(r))) * quantile_tree.ladder(part).steps)

    def moved(records: int) -> int:
        levels = [quantile_tree.empty_level(part, k * records) for k in range(100)]
        return int(max(np.diff(levels)))

    assert moved(1) == bound < moved(2)


def test_the_chance_of_no_records_changes_by_as_much_as_is_billed() -> None:
    """One record enters below the median: the levels of 20,000 cells beside it fall by half a
    record, and that of no records rises by as much. Rising twice as much loses more than billed.
    """
    grid = Grid(1.0, 20_000.0, integers=True)
    part = QuantileTree(grid, (0.5,), RHO_UNITS // 8, may_be_empty=True)
    climb = quantile_tree.ladder(part)

    def loss(factor: int) -> float:
        chances = []
        for low in (199, 200):
            counts = np.zeros(len(grid), dtype=np.int64)
            counts[[0, -1]] = low, 200
            ends = np.concatenate([[0], np.cumsum(counts)])
            cells = quantile_tree.levels_of(ends, Fraction(1, 2), climb.steps)
            empty = quantile_tree.empty_level(part, factor * (low + 200))
            chances.append(float(log_weights([empty], climb)[0]))
            chances[-1] -= float(logsumexp(log_weights([*cells, empty], climb)))
        return abs(chances[0] - chances[1])

    billed = quantile_tree.moving_epsilon(part) / (2 * EPSILON_UNITS)
    assert 0.99 * billed < loss(1) <= billed < 0.7 * loss(2)


@pytest.mark.parametrize("asked", ASKED)
def test_an_empty_tree_says_so(asked: tuple[float, ...]) -> None:
    """With a chance of at least 20/21; and one of 400/ε records hardly ever."""
    part = QuantileTree(FOUR, asked, RHO_UNITS // 8, may_be_empty=True)
    law = tree_law(part, (0, 0, 0, 0))
    assert 20 / 21 <= law[(-1,) * len(asked)] < 40 / 41
    assert tree_law(part, (150, 150, 150, 150))[(-1,) * len(asked)] < 1e-9


@pytest.mark.parametrize("p", [0.9, 0.02])
def test_two_selections_that_move_as_far_lose_all_of_the_charge(p: float) -> None:
    """Of two candidates, each as likely on average: the largest loss of a selection, in both
    trees.
    """
    part = QuantileTree(FOUR, (p,), RHO_UNITS // 1000)
    ladder = quantile_tree.ladder(part)
    moved = int(max(p, 1 - p) * ladder.steps)
    law, other = (probabilities(levels, ladder) for levels in ([0, moved], [moved, 0]))
    charge = disjoint_groups.of_equal_parts(part)
    assert 0.98 * charge < 2 * worst_rho(law, other) * RHO_UNITS <= charge
    assert charge > 1.5 * part.rho


def test_medians_by_group_are_pure_at_epsilon() -> None:
    """A record that moves changes two selections' levels by half of what a replaced one changes
    one's: attained.
    """
    plan: Any = kinds.plan(facts_of(2000, PEOPLE), Median("y", by="g"), offer(1))
    assert plan.cost(offer(1)).delta == 0
    part = plan.plan.one.part
    climb = quantile_tree.ladder(part)
    half = -(-climb.steps // 2)
    both = 4 * climb.loss(half)
    assert 0.999 <= both <= 1.0
    assert quantile_tree.moving_epsilon(part) <= EPSILON_UNITS
    assert quantile_tree.moving_epsilon(part) == pytest.approx(both * EPSILON_UNITS, rel=1e-9)
    # One candidate among many: its chance changes by all of the selection's range.
    before = np.full(20_000, half)
    before[0] = 0
    law, other = (probabilities(levels, climb) for levels in (before, half - before))
    assert 0.99 <= 2 * float(np.abs(np.log(law / other)).max()) <= 1.0


QUERIES = {
    "linear": LinearRegression("y ~ x", by="g"),
    "linear, where": LinearRegression("y ~ x", "k > 2", loss="tukey", by="b"),
    "least squares": LinearRegression("y ~ x", loss="squared", by="g"),
    "glm": Glm("b ~ x", "binomial", by="g"),
    "gamma": Glm("exp(x) ~ b", "gamma", by="g"),
    "quantile regression": QuantileRegression("y ~ x", (0.25, 0.75), by="g"),
    "quantiles": Quantiles("y", (0.1, 0.5), by="g"),
    "median": Median("y", "exponential", "x > 0", "b"),
}


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", QUERIES)
def test_every_step_of_a_fit_by_group_loses_no_more_than_it_is_charged(name: str) -> None:
    """Along a path that was released: any record replaced by any other, inside its group or out of
    it.
    """
    plan = kinds.plan(facts_of(600, PEOPLE), QUERIES[name], offer(2))
    table = people(600, 3)
    trace = drive(plan.run(), whole(table))
    assert sum(map(registry.rho, trace.steps)) == plan.rho <= max(offer(2).rho, plan.rho)
    rng = seeded(11)
    for step in trace.steps:
        if any(isinstance(part, QuantileTree) for part in step.parts):
            continue
        for _ in range(12):
            k, other = int(rng.integers(600)), {c: v.copy() for c, v in table.items()}
            cells = {"y": rng.choice([-10.0, 10.0]), "x": rng.choice([-5.0, 5.0, 0.0])}
            cells |= {"k": rng.integers(10), "g": rng.integers(3), "b": rng.integers(2)}
            for column, value in cells.items():
                other[column][k] = value
            assert step_loss(step, whole(table), whole(other)) <= registry.rho(step)


def test_fits_by_group_cost_a_few_percent_more_than_one() -> None:
    """Twice the counts of one bin, and nothing else."""
    facts = facts_of(20_000, PEOPLE)
    plan: Any = kinds.plan(facts, LinearRegression("y ~ x", by="g"), offer(1))
    alone: Any = kinds.plan(facts, LinearRegression("y ~ x", 'g == "a"'), offer(1))
    assert plan.rho == pytest.approx(offer(1).rho, rel=1e-6)
    assert plan.passes == alone.passes
    assert 0.93 < plan.plan.first.budget.gradients[-1] / alone.budget.gradients[-1] < 1.1
