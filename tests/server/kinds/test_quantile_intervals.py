# SPDX-License-Identifier: Apache-2.0
"""Quantiles with intervals: they hold the law's quantiles, cost what is offered, and are left out
where a selection may stray.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.grid import Grid
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import QuantileTree
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.iqr.by_quantiles import range_with_interval
from reticent_server.kinds.iqr.kind import KIND as IQR
from reticent_server.kinds.iqr.kind import Iqr
from reticent_server.kinds.median.kind import KIND as MEDIAN
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantiles.kind import KIND as QUANTILES
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.quantile_intervals import allowance, with_ends
from reticent_server.mechanisms import quantile_tree
from support.kinds.recipes import answer, block_of, facts_of, numeric

N = 4000
AGE = Column("age", ColumnKind.INTEGER, 0, 120)
PAY = numeric("pay", 0.0, 1e5, ("NA",))
RHO = RHO_UNITS // 57  # what (1, 10⁻⁶) allows
OFFER = PrivacyCost(10**9, 10**9, RHO)
P = (0.25, 0.5, 0.9)


def pay(rng: Any, n: int = N) -> Any:
    return rng.lognormal(3.0, 1.0, n)


def block(values: Any, missing: Any = None) -> Any:
    missing = np.zeros(len(values), bool) if missing is None else missing
    return block_of({"pay": missing}, pay=np.where(missing, 0.0, values), age=np.zeros(len(values)))


def planned(kind: Any, query: Any, n: int = N) -> Any:
    return kind.plan(facts_of(n, (AGE, PAY)), query, OFFER)


def hits(query: Quantiles, draw: Any, runs: int) -> Any:
    """(k,) shares of intervals that hold the quantiles of the law."""
    plan, rng = planned(QUANTILES, query), np.random.default_rng(0)
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
    """From the median: of sampling √N/2, and of noise a fifth more than a selection's."""
    plan = planned(QUANTILES, Quantiles("pay", (0.5,), intervals=True))
    noise = 1.2 * max(quantile_tree.error_scales(plan.part))
    ((low, high),) = plan.ends
    assert (0.5 - low) * N == pytest.approx(allowance(np.sqrt(N) / 2, noise), abs=1.0)
    assert (high - 0.5) * N == pytest.approx(allowance(np.sqrt(N) / 2, noise), abs=1.0)


def test_fewer_records_in_use_mean_wider_intervals() -> None:
    """The released number of them says how wide: a tenth is in use, so ends lie √10 farther."""
    values = pay(np.random.default_rng(1), 100 * N)
    plan = planned(QUANTILES, Quantiles("pay", (0.5,), intervals=True), 100 * N)
    (all_of_them,) = answer(plan, block(values))["confidence_intervals"]
    few = np.arange(100 * N) % 10 > 0
    (of_a_tenth,) = answer(plan, block(values, few))["confidence_intervals"]
    ratio = np.diff(of_a_tenth)[0] / np.diff(all_of_them)[0]
    assert 2.0 < ratio < 5.0


def test_no_interval_where_a_selection_may_stray() -> None:
    """200 records at ε = 1; and beyond the 99.9th per cent there are four."""
    few = answer(
        planned(QUANTILES, Quantiles("pay", P, intervals=True), 200),
        block(pay(np.random.default_rng(2), 200)),
    )
    assert few["confidence_intervals"] == [[None, None]] * 3
    far = answer(
        planned(QUANTILES, Quantiles("pay", (0.5, 0.999), intervals=True)),
        block(pay(np.random.default_rng(2))),
    )
    assert None not in far["confidence_intervals"][0]
    assert far["confidence_intervals"][1] == [None, None]


def test_ends_that_no_budget_is_left_for_are_left_out() -> None:
    """With a million rows a unit, three ranks are selected at this ρ, and nine are not."""
    plain = QuantileTree(Grid(1.0, 1000.0, integers=True), P, 1000, 10**6)
    part, ends = with_ends(plain, P, 1e9, 10**6)
    assert part == plain
    assert ends == (None, None, None)


@pytest.mark.parametrize("records", [4.0, 37.0, 900.0, 3999.5, 1e9])
@pytest.mark.parametrize("m", [1, 3])
def test_a_tree_with_the_ends_of_any_number_of_records_costs_what_was_planned(
    m: int, records: float
) -> None:
    """The second tree has other probabilities, by a released number, at the planned ρ."""
    plain = QuantileTree(Grid(1.0, 1000.0, integers=True), P, RHO, m)
    part, _ = with_ends(with_ends(plain, P, N, m)[0], P, records, m)
    assert part.rho == RHO
    assert quantile_tree.billed_rho(part) * RHO_UNITS <= RHO


def test_whole_numbers_are_not_moved_down_to_the_cell_before() -> None:
    """Every value is a candidate: a column of one value has it at both ends."""
    found = answer(planned(MEDIAN, Median("age", intervals=True)), block_of(age=np.full(N, 47.0)))
    assert found["confidence_interval"] == [47.0, 47.0]
    assert found["value"] == 47.0


def test_the_interval_of_a_range_adds_its_quartiles_deviations() -> None:
    """Of equal deviations d: √(2 − 2/3) d, and none where a quartile has none."""
    found = range_with_interval([10.0, 30.0], [(8.0, 12.0), (28.0, 32.0)], N)
    half = 2.0 * np.sqrt(4 / 3)
    assert found.confidence_interval == pytest.approx((20.0 - half, 20.0 + half))
    assert range_with_interval([1.0, 2.0], [(None, None), (1.5, 2.5)], N).confidence_interval == (
        None,
        None,
    )


def test_an_allowance_is_that_of_the_sum_of_both_laws() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 20.0, 10**6) + rng.laplace(0, 10.0, 10**6)
    assert allowance(20.0, 10.0) == pytest.approx(np.quantile(drawn, 0.975), rel=0.01)
    assert allowance(20.0, 1e-3) == pytest.approx(1.95996 * 20.0, rel=1e-3)


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
