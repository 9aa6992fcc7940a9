# SPDX-License-Identifier: Apache-2.0
"""Tests of ranks and of proportions: SciPy's where there is hardly noise, the right level where
there is.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from reticent_server.errors import InvalidQuery
from reticent_server.kinds.kruskal.kind import KIND as KRUSKAL
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.mann_whitney.kind import KIND as MANN_WHITNEY
from reticent_server.kinds.mann_whitney.kind import MannWhitney
from reticent_server.kinds.proportion_test.kind import KIND as PROPORTION_TEST
from reticent_server.kinds.proportion_test.kind import ProportionTest
from reticent_server.kinds.shared.group_bins import GroupBins
from reticent_server.kinds.shared.ranks import superiority
from support.kinds.named_tests import facts, offer, people, people_facts
from support.kinds.recipes import block_of, outcome
from support.seeds import seeded

N = 3000
QUIET = offer(10**6, 100)
BUSY = offer(1)
LEVEL = (0.015, 0.09)  # of 600 p-values: chances below 10⁻⁶ outside (binomial)


def ask(kind: Any, query: Any, table: Any, privacy: Any = QUIET) -> Any:
    return outcome(kind.plan(people_facts(len(table["y"])), query, privacy), block_of(**table))


def binned(values: Any, edges: Any) -> Any:
    return np.searchsorted(edges, values, side="right")


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("column", ["y", "k"])
def test_two_groups_ranks_are_mann_and_whitneys_of_binned_values(
    alternative: str, column: str
) -> None:
    table = people(N)
    table[column] = np.clip(table[column] + (table["g"] == 0) * (table["b"] == 0), -10, 9)
    found = ask(MANN_WHITNEY, MannWhitney(column, "g", ("a", "c"), alternative), table)
    bins = binned(table[column], found.edges)
    x, y = (bins[table["g"] == g] for g in (0, 2))
    theirs = stats.mannwhitneyu(
        x, y, use_continuity=False, alternative=alternative, method="asymptotic"
    )
    assert found.effect == pytest.approx(theirs.statistic / len(x) / len(y), abs=0.002)
    assert stats.norm.isf(found.p_value) == pytest.approx(stats.norm.isf(theirs.pvalue), abs=0.1)
    assert found.effect_interval[0] < found.effect < found.effect_interval[1]


def test_whole_numbers_that_are_few_have_a_bin_each() -> None:
    found = ask(MANN_WHITNEY, MannWhitney("k", "b"), people(N))
    assert found.edges == tuple(float(k) for k in range(1, 10))


def test_a_value_that_many_share_has_a_bin_of_its_own() -> None:
    values = np.where(np.arange(4000) < 2400, 0.0, np.linspace(0.1, 5, 4000))
    plan = MANN_WHITNEY.plan(facts(20_000, y=values), MannWhitney("y", "b"), QUIET)
    assert {0.0, np.nextafter(0.0, 1)} <= set(plan.cells.edges)
    assert all(a < b for a, b in zip(plan.cells.edges, plan.cells.edges[1:], strict=False))


def test_several_groups_ranks_are_kruskal_and_walliss_of_binned_values() -> None:
    table = people(N)
    table["y"] = table["y"] + 0.1 * table["g"]
    found = ask(KRUSKAL, Kruskal("y", "g"), table)
    bins = binned(table["y"], found.edges)
    theirs = stats.kruskal(*(bins[table["g"] == g] for g in range(3)))
    assert found.statistic == pytest.approx(theirs.statistic, rel=0.03)
    assert found.df == 2
    ranks = stats.rankdata(bins) / N
    assert found.mean_ranks == pytest.approx(
        [ranks[table["g"] == g].mean() for g in range(3)], abs=0.002
    )


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [500, pytest.param(5000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("law", ["ties", "continuous"])
def test_the_level_holds_where_noise_is_larger_than_sampling(n: int, law: str) -> None:
    rng = seeded(5)

    def make() -> dict[Any, Any]:
        y = rng.exponential(size=n)
        return {
            "g": rng.choice(3, n, p=[0.2, 0.5, 0.3]).astype(float),
            "y": np.floor(2 * y) if law == "ties" else y,
            "b": (rng.random(n) < 0.3).astype(float),
        }

    public = facts(n, y=make()["y"])
    for kind, query in (
        (MANN_WHITNEY, MannWhitney("y", "g", ("a", "c"))),
        (KRUSKAL, Kruskal("y", "g")),
        (PROPORTION_TEST, ProportionTest("b", "g", ("a", "c"))),
        (PROPORTION_TEST, ProportionTest("b", value=0.3)),
    ):
        plan = kind.plan(public, query, BUSY)
        level = np.mean([outcome(plan, block_of(**make())).p_value < 0.05 for _ in range(600)])
        assert LEVEL[0] <= level <= LEVEL[1]


@pytest.mark.slow
def test_the_interval_covers_the_probability_of_superiority() -> None:
    rng = seeded(9)
    n = 1000
    plan = MANN_WHITNEY.plan(facts(n, y=rng.normal(size=5000)), MannWhitney("y", "b"), BUSY)
    big = rng.normal(size=(2, 400_000)) + np.array([[0.5], [0.0]])
    bins = [binned(x, plan.cells.edges) for x in big]
    truth = np.mean(bins[0] > bins[1]) + np.mean(bins[0] == bins[1]) / 2
    covered = []
    for _ in range(600):
        b = rng.integers(0, 2, n).astype(float)
        low, high = outcome(
            plan, block_of(b=b, y=rng.normal(size=n) + 0.5 * (b == 0))
        ).effect_interval
        covered.append(low <= truth <= high)
    assert 0.91 <= np.mean(covered) <= 0.985


def test_the_error_of_superiority_has_the_noise() -> None:
    """Of few records and much noise it is nearly all of it."""
    found = superiority(GroupBins(np.array([[30.0, 20.0, 10.0], [10.0, 20.0, 30.0]]), 12.0))
    alone = superiority(GroupBins(np.array([[30.0, 20.0, 10.0], [10.0, 20.0, 30.0]]), 1e-9))
    assert found.standard_error**2 == pytest.approx(
        alone.standard_error**2 + found.noise**2, rel=1e-6
    )
    assert found.noise > alone.standard_error


def test_two_proportions_are_compared_as_usual() -> None:
    table = people(N)
    table["b"] = (seeded(1).random(N) < 0.3 + 0.05 * table["g"]).astype(float)
    found = ask(PROPORTION_TEST, ProportionTest("b", "g", ("a", "c")), table)
    counts = [(table["b"][table["g"] == g].sum(), (table["g"] == g).sum()) for g in (0, 2)]
    (s1, n1), (s2, n2) = counts
    pooled = (s1 + s2) / (n1 + n2)
    z = (s1 / n1 - s2 / n2) / np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    assert found.statistic == pytest.approx(z, abs=0.03)
    theirs = confint_proportions_2indep(s1, n1, s2, n2, method="newcomb")
    assert found.effect_interval == pytest.approx(theirs, abs=0.003)
    wilson = proportion_confint(s1, n1, method="wilson")
    assert found.intervals[0] == pytest.approx(wilson, abs=0.003)


def test_one_proportion_is_tested_against_a_number() -> None:
    table = people(N)
    query = ProportionTest("g", success="b", value=0.3, alternative="greater")
    found = ask(PROPORTION_TEST, query, table)
    share = (table["g"] == 1).mean()
    z = (share - 0.3) / np.sqrt(0.3 * 0.7 / N)
    assert found.p_value == pytest.approx(stats.norm.sf(z), rel=0.2)
    assert found.effect == pytest.approx(share - 0.3, abs=0.001)


def test_intervals_of_proportions_cover_where_noise_is_larger_than_sampling() -> None:
    rng = seeded(4)
    n = 400
    plan = PROPORTION_TEST.plan(people_facts(n), ProportionTest("b", "g", ("a", "b")), offer(0.5))
    covered = []
    for _ in range(600):
        g = rng.integers(0, 2, n).astype(float)
        b = (rng.random(n) < np.where(g == 0, 0.1, 0.3)).astype(float)
        low, high = outcome(plan, block_of(b=b, g=g)).effect_interval
        covered.append(low <= -0.2 <= high)
    assert 0.91 <= np.mean(covered) <= 1


@pytest.mark.parametrize("privacy", [offer(0.01), BUSY, QUIET])
@pytest.mark.parametrize("table", ["an empty group", "a constant", "one group", "few"])
def test_every_table_has_a_reply(privacy: Any, table: str) -> None:
    rng = seeded(2)
    n = 3 if table == "few" else 800
    y = np.full(n, 10.0) if table == "a constant" else rng.normal(size=n)
    g = rng.integers(0, 3, n).astype(float)
    g = np.where(g == 2, 0.0, g) if table == "an empty group" else g
    g = np.zeros(n) if table == "one group" else g
    b = np.zeros(n) if table == "a constant" else (y > 0).astype(float)
    public = facts(n, y=rng.normal(size=1000))
    for kind, query in (
        (MANN_WHITNEY, MannWhitney("y", "g", ("a", "c"))),
        (KRUSKAL, Kruskal("y", "g")),
        (PROPORTION_TEST, ProportionTest("b", "g", ("a", "c"))),
        (PROPORTION_TEST, ProportionTest("b", value=0.5)),
    ):
        found = outcome(kind.plan(public, query, privacy), block_of(g=g, y=y, b=b))
        low, high = found.effect_interval
        assert 0 <= found.p_value <= 1
        assert np.isfinite([found.statistic, found.effect, low, high]).all()
        assert low <= high


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (MANN_WHITNEY, MannWhitney("y", "g")),
        (MANN_WHITNEY, MannWhitney("g", "b")),
        (MANN_WHITNEY, MannWhitney("b", "b")),
        (KRUSKAL, Kruskal("y", "m")),
        (PROPORTION_TEST, ProportionTest("b")),
        (PROPORTION_TEST, ProportionTest("b", "g", ("a", "b"), value=0.5)),
        (PROPORTION_TEST, ProportionTest("g", value=0.5)),
        (PROPORTION_TEST, ProportionTest("g", success="z", value=0.5)),
        (PROPORTION_TEST, ProportionTest("y", success="1", value=0.5)),
        (PROPORTION_TEST, ProportionTest("b", levels=("a", "b"), value=0.5)),
    ],
)
def test_questions_that_do_not_go_together_are_refused_with_a_reason(kind: Any, query: Any) -> None:
    with pytest.raises(InvalidQuery):
        kind.plan(people_facts(N), query, BUSY)
