# SPDX-License-Identifier: Apache-2.0
"""Welch's tests: SciPy's and statsmodels' where there is hardly noise, the right level where there
is.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.anova.kind import KIND as ANOVA
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.t_test.kind import KIND as T_TEST
from reticent_server.kinds.t_test.kind import TTest
from support.kinds.named_tests import Y, facts, offer, people, people_facts
from support.kinds.recipes import block_of, outcome
from support.seeds import seeded

N = 3000
QUIET = offer(10**6, 100)
BUSY = offer(1)


def ask(kind: Any, query: Any, table: Any, privacy: Any = QUIET) -> Any:
    return outcome(kind.plan(people_facts(len(table["y"])), query, privacy), block_of(**table))


def groups_of(table: Any, values: Any, name: str = "g", column: str = "y") -> list[Any]:
    return [table[column][table[name] == v] for v in values]


def test_two_groups_are_compared_as_welch_does() -> None:
    table = people(N)
    table["y"] = table["y"] * (1 + table["g"]) / 2 + 0.1 * table["g"]
    found = ask(T_TEST, TTest("y", "g", ("a", "c"), confidence_level=0.9), table)
    low, high = found.range
    theirs = stats.ttest_ind(
        *(np.clip(y, low, high) for y in groups_of(table, (0, 2))), equal_var=False
    )
    assert found.statistic == pytest.approx(theirs.statistic, rel=0.02)
    assert found.df == pytest.approx(theirs.df, rel=0.02)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.2)
    interval = theirs.confidence_interval(0.9)
    assert found.effect_interval == pytest.approx((interval.low, interval.high), abs=0.01)
    assert [g.level for g in found.groups] == ["a", "c"]
    assert found.groups[1].number == pytest.approx((table["g"] == 2).sum(), abs=2)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_one_mean_is_tested_against_a_number(alternative: str) -> None:
    table = people(N)
    found = ask(T_TEST, TTest("y", popmean=0.95, alternative=alternative), table)
    low, high = found.range
    theirs = stats.ttest_1samp(np.clip(table["y"], low, high), 0.95, alternative=alternative)
    assert found.statistic == pytest.approx(theirs.statistic, abs=0.03)
    assert found.p_value == pytest.approx(theirs.pvalue, abs=0.01)
    assert found.effect == pytest.approx(np.clip(table["y"], low, high).mean() - 0.95, abs=0.002)


def test_paired_columns_have_a_range_of_their_difference() -> None:
    table = people(N)
    table["y"] = np.clip(table["x"] + 0.05 + seeded(1).normal(0, 0.1, N), -10, 10)
    public = facts(N, y=table["y"], x=table["x"])
    plan = T_TEST.plan(public, TTest(columns=("y", "x"), paired=True), QUIET)
    found = outcome(plan, block_of(**table))
    low, high = found.range
    assert 0.6 < high - low < 1.2  # of columns that are 6 wide each
    theirs = stats.ttest_rel(table["y"], table["x"])
    assert found.statistic == pytest.approx(theirs.statistic, rel=0.1)
    assert found.effect == pytest.approx(0.05, abs=0.01)


def test_a_difference_of_the_hypothesis_is_taken_off() -> None:
    table = people(N)
    table["y"] = table["y"] + 0.5 * (table["g"] == 0)
    found = ask(T_TEST, TTest("y", "g", ("a", "b"), popmean=0.5), table)
    assert abs(found.statistic) < 3.3 < found.effect / found.standard_error


def test_several_groups_are_compared_as_welch_does() -> None:
    table = people(N)
    table["y"] = table["y"] * (1 + table["g"]) / 2 + 0.1 * table["g"]
    found = ask(ANOVA, Anova("y", "g"), table)
    low, high = found.range
    theirs = anova_oneway(
        [np.clip(y, low, high) for y in groups_of(table, (0, 1, 2))], use_var="unequal"
    )
    assert found.statistic == pytest.approx(theirs.statistic, rel=0.02)
    # variances are noisy, which costs degrees of freedom
    assert (found.df, found.df_denominator) == pytest.approx(theirs.df, rel=0.08)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.3)


def test_the_share_between_groups_is_eta_squared() -> None:
    table = people(N)
    table["y"] = np.clip(table["y"] + 0.7 * table["g"], -4, 6)
    found = ask(ANOVA, Anova("y", "g"), table)
    y = np.clip(table["y"], *found.range)
    means = np.array([y[table["g"] == g].mean() for g in range(3)])[table["g"].astype(int)]
    assert found.effect == pytest.approx(means.var() / y.var(), rel=0.05)
    assert found.effect_interval[0] < means.var() / y.var() < found.effect_interval[1]


def null_p_values(
    kind: Any, query: Any, make: Any, plan_facts: Any, count: int = 600, privacy: Any = BUSY
) -> Any:
    plan = kind.plan(plan_facts, query, privacy)
    return np.array([outcome(plan, block_of(**make())).p_value for _ in range(count)])


# Of 600 p-values at level .05, 12 to 51 lie below .05 but for chances below 10⁻⁶ (binomial).
LEVEL = (0.015, 0.09)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [500, pytest.param(5000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("law", ["skewed", "unequal"])
def test_the_level_holds_where_noise_is_larger_than_sampling(n: int, law: str) -> None:
    rng = seeded(5)

    def make() -> dict[Any, Any]:
        g = rng.integers(0, 3, n).astype(float)
        if law == "skewed":
            return {"g": g, "y": np.clip(rng.exponential(size=n), 0, 10)}
        return {"g": g, "y": rng.normal(size=n) * (1 + g) / 2}

    public = facts(n, y=make()["y"])
    for kind, query in ((T_TEST, TTest("y", "g", ("a", "c"))), (ANOVA, Anova("y", "g"))):
        level = np.mean(null_p_values(kind, query, make, public) < 0.05)
        assert LEVEL[0] <= level <= LEVEL[1]


@pytest.mark.slow
def test_intervals_cover_the_difference() -> None:
    rng = seeded(9)
    n = 1000
    plan = T_TEST.plan(facts(n, y=rng.normal(size=5000)), TTest("y", "g", ("a", "b")), BUSY)
    covered = []
    for _ in range(600):
        g = rng.integers(0, 2, n).astype(float)
        low, high = outcome(
            plan, block_of(g=g, y=rng.normal(size=n) + 0.4 * (g == 0))
        ).effect_interval
        covered.append(low <= 0.4 <= high)
    assert 0.91 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize("privacy", [offer(0.01), BUSY, QUIET])
@pytest.mark.parametrize("table", ["an empty group", "a constant", "one group", "few"])
def test_every_table_has_a_reply_and_says_what_it_cannot_tell(privacy: Any, table: str) -> None:
    rng = seeded(2)
    n = 3 if table == "few" else 800
    y = np.full(n, 10.0) if table == "a constant" else rng.normal(size=n)
    g = rng.integers(0, 3, n).astype(float)
    g = np.where(g == 2, 0.0, g) if table == "an empty group" else g
    g = np.zeros(n) if table == "one group" else g
    public = facts(n, y=rng.normal(size=1000))
    for kind, query in (
        (T_TEST, TTest("y", "g", ("a", "c"))),
        (T_TEST, TTest("y")),
        (ANOVA, Anova("y", "g")),
    ):
        found = outcome(kind.plan(public, query, privacy), block_of(g=g, y=y))
        low, high = found.effect_interval
        assert 0 <= found.p_value <= 1
        assert np.isfinite([found.statistic, found.effect, low, high, found.df]).all()
        assert low <= high
    if table == "an empty group" and privacy is BUSY:  # of the two groups that have records
        assert "the 2 groups" in found.estimand
        assert high < 1


@pytest.mark.parametrize(
    "query",
    [
        TTest(),
        TTest("y", columns=("y", "x"), paired=True),
        TTest(columns=("y", "x")),
        TTest(columns=("y", "y"), paired=True),
        TTest("y", paired=True),
        TTest("y", "g"),
        TTest("y", "g", ("a", "a")),
        TTest("y", "g", ("a", "z")),
        TTest("y", "x"),
        TTest("g", "b"),
        TTest("k", "k", ("0", "1")),
        TTest("y", popmean=11.0),
        TTest("y", "g", ("a", "b"), popmean=-40.0),
        TTest(columns=("y", "x"), paired=True, popmean=1e300),
        TTest("y", levels=("a", "b")),
        Anova("y", "x"),
        Anova("y", "g", ("a",)),
        Anova("k", "k"),
        Anova("y", "z"),
    ],
)
def test_questions_that_do_not_go_together_are_refused_with_a_reason(query: Any) -> None:
    kind = T_TEST if isinstance(query, TTest) else ANOVA
    with pytest.raises(InvalidQuery):
        kind.plan(people_facts(N), query, BUSY)


def test_many_groups_have_the_time_that_their_sums_take() -> None:
    """Measured: .03 µs a record, whatever their number, and .2 ms a group."""
    levels = tuple(f"l{k}" for k in range(64))
    columns = (Y, Column("g", ColumnKind.CATEGORICAL, 0, 63, levels))
    plan = ANOVA.plan(facts(10**6, columns), Anova("y", "g"), BUSY)
    assert plan.deadline_ms(10**6) > 30 + 64 * 0.2


def test_more_groups_than_are_compared_are_refused() -> None:
    levels = tuple(f"l{k}" for k in range(65))
    columns = (Y, Column("g", ColumnKind.CATEGORICAL, 0, 64, levels))
    with pytest.raises(InvalidQuery):
        ANOVA.plan(facts(N, columns), Anova("y", "g"), BUSY)
