# SPDX-License-Identifier: Apache-2.0
"""Quantiles with intervals: they hold the law's quantiles, whatever the law, cost what is offered,
and end at the column's bounds where the counts do not tell.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.grid import Grid
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import CountSum, QuantileTree, Released
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.iqr.by_quantiles import range_with_interval
from reticent_server.kinds.iqr.kind import KIND as IQR
from reticent_server.kinds.iqr.kind import Iqr
from reticent_server.kinds.median.kind import KIND as MEDIAN
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantiles.kind import KIND as QUANTILES
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.quantile_intervals import (
    BelowMap,
    distance,
    edges_of,
    with_ends,
)
from reticent_server.mechanisms import quantile_tree
from reticent_server.mechanisms.noisy_sum import noise_sd
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 4000
AGE = Column("age", ColumnKind.INTEGER, 0, 120)
PAY = numeric("pay", 0.0, 1e5, ("NA",))
RHO = RHO_UNITS // 57  # what (1, 10⁻⁶) allows
OFFER = PrivacyCost(10**9, 10**9, RHO)
P = (0.25, 0.5, 0.9)
BELOW = CountSum(7, RHO // 3)


def pay(rng: Any, n: int = N) -> Any:
    return rng.lognormal(3.0, 1.0, n)


def block(values: Any, missing: Any = None) -> Any:
    missing = np.zeros(len(values), bool) if missing is None else missing
    return block_of({"pay": missing}, pay=np.where(missing, 0.0, values), age=np.zeros(len(values)))


def planned(kind: Any, query: Any, n: int = N) -> Any:
    return kind.plan(facts_of(n, (AGE, PAY)), query, OFFER)


def hits(query: Quantiles, draw: Any, runs: int) -> Any:
    """(k,) shares of intervals that hold the quantiles of the law."""
    plan, rng = planned(QUANTILES, query), seeded(0)
    truth = np.exp(3.0 + stats.norm.ppf(query.probabilities))
    ends = np.array(
        [answer(plan, draw(rng))["confidence_intervals"] for _ in range(runs)], dtype=float
    )
    return np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0)


@pytest.mark.slow
def test_intervals_hold_the_quantiles_of_the_law() -> None:
    """.95 at least; seeded."""
    query = Quantiles("pay", P, intervals=True)
    assert np.all(hits(query, lambda rng: block(pay(rng)), 20) >= 0.8)


@pytest.mark.audit
@pytest.mark.parametrize("where", [None, "pay < 1e5"])
def test_intervals_hold_in_most_of_many_tables(where: str | None) -> None:
    """With a sixth of the cells missing; seeded: .95 less three deviations of 300 runs."""
    query = Quantiles("pay", P, where=where, intervals=True)
    found = hits(query, lambda rng: block(pay(rng), rng.random(N) < 1 / 6), 300)
    assert np.all(found >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300))


@pytest.mark.parametrize("where", [None, "age >= 0"])
def test_what_is_offered_is_not_exceeded(where: str | None) -> None:
    for probabilities in (P, (0.5,), tuple(np.arange(1, 100) / 100)):
        plan = planned(QUANTILES, Quantiles("pay", probabilities, where=where, intervals=True))
        assert RHO // 2 < plan.rho <= RHO
        trees = [p for p in plan.parts if hasattr(p, "probabilities")]
        assert quantile_tree.billed_rho(trees[0]) * RHO_UNITS <= trees[0].rho


def test_ends_are_as_far_as_sampling_and_noise_may_carry_a_rank() -> None:
    """From the median: 1.96 deviations of sampling and of three counts, each a half, and what the
    selection and the counts err together in one table of a hundred."""
    plan = planned(QUANTILES, Quantiles("pay", (0.5,), intervals=True))
    noise, counts = max(quantile_tree.error_scales(plan.part)), 0.75 * noise_sd(plan.below) ** 2
    ((low, high),) = plan.ends
    said = 1.95996 * np.sqrt(N / 4 + counts) + 2.32635 * np.sqrt(counts + 2 * noise**2)
    assert (0.5 - low) * N == pytest.approx(said, abs=1.0)
    assert (high - 0.5) * N == pytest.approx(said, abs=1.0)


@pytest.mark.slow
def test_fewer_records_in_use_mean_wider_intervals() -> None:
    """The released number of them says how wide: a tenth is in use, so ends lie √10 farther. The
    median of five, as one end of a hundred is the column's bound."""
    values = pay(seeded(1), 20 * N)
    few = np.arange(20 * N) % 10 > 0
    plan = planned(QUANTILES, Quantiles("pay", (0.5,), intervals=True), 20 * N)
    wide, narrow = (
        np.median(
            [
                np.diff(answer(plan, block(values, missing))["confidence_intervals"])
                for _ in range(5)
            ]
        )
        for missing in (few, None)
    )
    assert 2.0 < wide / narrow < 8.0


@pytest.mark.parametrize("share", [0.505, 0.54])
def test_an_end_in_the_gap_beside_a_shared_value_is_not_believed(share: float) -> None:
    """Zeros of slightly more than half, and nothing up to 3,000: the law's median is 0, and of the
    gap's thousands of candidates the noise chooses one in most tables, of an end that is aimed
    beyond the zeros. Of 54 % zeros both ends may be 0: more have it than sampling explains."""
    wide = share > 0.52
    rng, plan = (
        seeded(5),
        planned(QUANTILES, Quantiles("pay", (0.5,), intervals=True)),
    )
    for _ in range(6):
        values = np.where(np.arange(N) < share * N, 0.0, 3000 + pay(rng))
        ((low, high),) = answer(plan, block(values))["confidence_intervals"]
        assert low == 0.0 <= high
        assert high > 0.0 or wide
        ((low, high),) = answer(plan, block(5e4 - values))["confidence_intervals"]
        assert low <= 5e4 <= high
        assert low < 5e4 or wide


def test_ends_that_the_counts_do_not_tell_are_bounds() -> None:
    """200 records at ε = 1; and beyond the 99.9th per cent there are four."""
    few = answer(
        planned(QUANTILES, Quantiles("pay", P, intervals=True), 200),
        block(pay(seeded(2), 200)),
    )
    assert few["confidence_intervals"][2][1] == 1e5
    far = answer(
        planned(QUANTILES, Quantiles("pay", (0.5, 0.999), intervals=True)),
        block(pay(seeded(2))),
    )
    assert far["confidence_intervals"][1][1] == 1e5
    assert far["confidence_intervals"][0][1] < 40


def test_a_count_is_believed_where_neither_law_nor_noise_explains_it() -> None:
    """By hand: 60 and 40 of 100 about the median, without noise: 10 off, where 1.96 · 5 may be."""
    counts = Released(np.array([60.0, 40.0]), 0.0)
    found, need = distance(0.5, 7.0, np.array([7.0]), counts, 1)
    assert (found, need) == (pytest.approx(10.0), pytest.approx(1.959964 * 5))
    _, noisy = distance(0.5, 7.0, np.array([7.0]), replace(counts, sd=6.0), 4)
    assert noisy == pytest.approx(1.959964 * np.sqrt(4 * 25 + 36 / 2))


def test_ends_that_no_budget_is_left_for_are_left_out() -> None:
    """With a million rows a unit, three ranks are selected at this ρ, and nine are not."""
    plain = QuantileTree(Grid(1.0, 1000.0, integers=True), P, 1000, 10**6)
    part, ends = with_ends(plain, P, 1e9, 10**6, BELOW)
    assert part == plain
    assert ends == ((None, None),) * 3


@pytest.mark.parametrize("records", [4.0, 37.0, 900.0, 3999.5, 1e9])
@pytest.mark.parametrize("m", [1, 3])
def test_a_tree_with_the_ends_of_any_number_of_records_costs_what_was_planned(
    m: int, records: float
) -> None:
    """The second tree has other probabilities, by a released number, at the planned ρ."""
    plain = QuantileTree(Grid(1.0, 1000.0, integers=True), P, RHO, m)
    part, _ = with_ends(with_ends(plain, P, N, m, BELOW)[0], P, records, m, BELOW)
    assert part.rho == RHO
    assert quantile_tree.billed_rho(part) * RHO_UNITS <= RHO


def test_whole_numbers_are_not_moved_down_to_the_cell_before() -> None:
    """Every value is a candidate: a column of one value has it at both ends."""
    found = answer(planned(MEDIAN, Median("age", intervals=True)), block_of(age=np.full(N, 47.0)))
    assert found["confidence_interval"] == [47.0, 47.0]
    assert found["value"] == 47.0


def test_an_upper_end_counts_the_records_at_itself() -> None:
    """Edges part values as `x < edge` does: one at a lower end, one just after an upper one."""
    edges = edges_of([(1.0, 2.0), (2.0, 2.0)])
    assert edges.tolist() == [1.0, 2.0, np.nextafter(2.0, np.inf)]
    plan = planned(MEDIAN, Median("pay", intervals=True))
    rows = BelowMap(plan.map_fn, edges)
    assert rows(block(np.array([0.5, 1.0, 1.5, 2.0, 2.5])))[0].tolist() == [0, 1, 1, 2, 3]


def test_the_interval_of_a_range_is_what_both_quartiles_allow() -> None:
    found = range_with_interval([10.0, 30.0], [(8.0, 12.0), (28.0, 33.0)], N)
    assert found.confidence_interval == (16.0, 25.0)
    apart = range_with_interval([10.0, 11.0], [(8.0, 12.0), (9.0, 13.0)], N)
    assert apart.confidence_interval == (0.0, 5.0)
    one, both = (
        planned(QUANTILES, Quantiles("pay", (0.25, 0.75), intervals=True)),
        planned(IQR, Iqr("pay", intervals=True)),
    )
    assert (one.level, both.level) == (0.95, pytest.approx(0.975))


@pytest.mark.slow
def test_ranks_err_as_wide_as_is_said() -> None:
    """Where candidates are as dense as records; the deeper the selection, the wider: seeded."""
    n, grid = 20_000, numeric("u", 1.0, 2.0)
    facts = facts_of(n, (grid,))
    plan = QUANTILES.plan(facts, Quantiles("u", (0.3, 0.5, 0.6)), OFFER)
    scales = np.array(quantile_tree.error_scales(plan.part)) / quantile_tree.scale(plan.part)
    assert scales == pytest.approx(np.sqrt([1.36, 1.0, 1.64]))  # 1 + .6², the middle, 1 + .8²
    u = 1 + (np.arange(n) + 0.5) / n
    found = np.array([answer(plan, block_of(u=u))["values"] for _ in range(50)])
    error = np.std((found - 1) * n, axis=0)
    assert error == pytest.approx(
        np.sqrt(2) * np.array(quantile_tree.error_scales(plan.part)), rel=0.4
    )


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (QUANTILES, Quantiles("pay", by="age", intervals=True)),
        (MEDIAN, Median("pay", by="age", intervals=True)),
        (MEDIAN, Median("age", "ptr", intervals=True)),
        (MEDIAN, Median("age", "smooth_sensitivity", intervals=True)),
        (IQR, Iqr("age", "ptr", intervals=True)),
    ],
)
def test_where_there_are_none_a_sentence_says_so(kind: Any, query: Any) -> None:
    with pytest.raises(InvalidQuery, match="interval"):
        planned(kind, query)


def test_of_persons_who_share_their_rows_there_are_none() -> None:
    with pytest.raises(InvalidQuery, match="intervals cannot be combined with per='person'"):
        QUANTILES.plan(
            replace(facts_of(N, (AGE, PAY), max_rows=2), persons=N // 2),
            Quantiles("pay", per="person", intervals=True),
            OFFER,
        )
