# SPDX-License-Identifier: Apache-2.0
"""Correlations and tests of distributions: SciPy's where there is hardly noise, the right level
where there is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.correlation.kendall import tau_b, tied_within
from reticent_server.kinds.correlation.kind import KIND as CORRELATION
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.correlation.scores import grades_of
from reticent_server.kinds.ks_test.kind import KIND as KS_TEST
from reticent_server.kinds.ks_test.kind import KsTest
from support.kinds.named_tests import K, facts, offer, people, people_facts
from support.kinds.recipes import block_of, facts_of, outcome
from support.seeds import seeded

N = 3000
QUIET = offer(10**6, 100)
BUSY = offer(1)
LEVEL = (0.015, 0.09)  # of 600 p-values: chances below 10⁻⁶ outside (binomial)
METHODS = ("pearson", "spearman", "kendall")


def uniform_pairs(n: int, slope: float = 0.5, seed: int = 0) -> dict[Any, Any]:
    """Bounded values, which no correlation draws in."""
    rng = seeded(seed)
    x = rng.uniform(-1, 1, n)
    return {"x": x, "y": slope * x + rng.uniform(-1, 1, n)}


def ask(kind: Any, query: Any, table: Any, public: Any = None, privacy: Any = QUIET) -> Any:
    n = len(table["y"])
    return outcome(kind.plan(public or people_facts(n), query, privacy), block_of(**table))


def test_pearsons_is_scipys_for_pairs_that_are_near() -> None:
    table = uniform_pairs(N)
    public = facts(N, x=table["x"], y=table["y"])
    found = ask(CORRELATION, Correlation(("x", "y")), table, public)
    theirs = stats.pearsonr(table["x"], table["y"])
    assert found.effect == pytest.approx(theirs.statistic, abs=0.003)
    interval = theirs.confidence_interval(0.95)
    assert found.effect_interval == pytest.approx((interval.low, interval.high), abs=0.005)


def test_spearmans_is_scipys_where_the_released_quantiles_are_right() -> None:
    table = {k: np.exp(v) for k, v in uniform_pairs(N).items()}
    public = facts(N, x=table["x"], y=table["y"])
    found = ask(CORRELATION, Correlation(("x", "y"), "spearman"), table, public)
    theirs = stats.spearmanr(table["x"], table["y"])
    assert found.effect == pytest.approx(theirs.statistic, abs=0.005)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_kendalls_is_scipys_of_the_values(alternative: str) -> None:
    """Of a column in bins, which are not seen in the reply, and one of whole numbers whose ties
    are.
    """
    table = people(N)
    table["k"] = np.clip(np.rint(table["k"] - 0.2 * table["y"]), 0, 9)
    query = Correlation(("y", "k"), "kendall", alternative)
    plan = CORRELATION.plan(people_facts(N), query, QUIET)
    found = outcome(plan, block_of(**table))
    theirs = stats.kendalltau(table["y"], table["k"], alternative=alternative, method="asymptotic")
    assert found.effect == pytest.approx(theirs.statistic, abs=0.004)
    assert stats.norm.isf(found.p_value) == pytest.approx(stats.norm.isf(theirs.pvalue), abs=0.4)


def test_kendalls_of_whole_numbers_in_a_bin_each_is_scipys() -> None:
    T = seeded(3).integers(1, 60, (5, 4)).astype(float)
    x, y = np.divmod(np.repeat(np.arange(20), T.ravel().astype(int)), 4)
    ties = (np.ones(5), np.ones(4))
    assert tau_b(T, 0.0, ties).value == pytest.approx(stats.kendalltau(x, y).statistic)
    assert tau_b(T, 0.0, ties).lacking == 0


@pytest.mark.parametrize("r", [-0.95, -0.7, 0.3, 0.7, 0.95])
def test_kendalls_of_normal_pairs_is_without_the_bias_of_its_bins(r: float) -> None:
    """Counts are those of the law: τ = 2/π·arcsin r is within what is allowed for, and near for all
    but the strongest.
    """
    edges = stats.norm.ppf(np.arange(1, 10) / 10)
    z = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    rows = np.diff(stats.norm.cdf((ends - r * z[:, None]) / np.sqrt(1 - r * r)), axis=1)
    T = 1e6 * rows.reshape(10, 200, 10).mean(axis=1) / 10
    tau = tau_b(T, 0.0, (np.zeros(10), np.zeros(10)))
    truth = 2 / np.pi * np.arcsin(r)
    assert abs(tau.value) <= abs(truth) + 1e-3
    assert abs(truth) <= abs(tau.value + tau.lacking)
    assert tau.value == pytest.approx(truth, abs=0.02 if abs(r) > 0.9 else 0.007)


def test_values_are_tied_within_a_bin_of_one_value_or_of_whole_numbers() -> None:
    whole = Column("k", ColumnKind.INTEGER, 0, 9)
    assert tied_within(whole, (1.0, 4.0, 9.0)) == pytest.approx([1, 1 / 3, 1 / 5, 1])
    number = Column("y", ColumnKind.NUMERIC, 0, 9)
    assert tied_within(number, (2.0, float(np.nextafter(2.0, 9)), 5.0)).tolist() == [0, 1, 0, 0]


@pytest.mark.slow
def test_noise_of_kendalls_is_what_is_said() -> None:
    """1,000 draws of normal noise about the same counts: the standard error's noise within a
    tenth.
    """
    rng = seeded(8)
    x = rng.normal(size=4000)
    y = 0.5 * x + rng.normal(size=4000)
    T = np.histogram2d(stats.rankdata(x), stats.rankdata(y), bins=8)[0]
    ties = (np.zeros(8), np.zeros(8))
    draws = [tau_b(T + rng.normal(0, 6, T.shape), 6.0, ties) for _ in range(1000)]
    assert np.std([d.value for d in draws]) == pytest.approx(
        np.mean([d.noise for d in draws]), rel=0.12
    )


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", ["normal", "skewed"])
def test_the_level_holds_for_independent_columns(method: str, law: str) -> None:
    rng = seeded(5)

    def make() -> dict[Any, Any]:
        z = rng.normal(size=(2, 1000))
        x, y = np.clip(np.exp(z), 0, 5) if law == "skewed" else z
        return {"x": x, "y": y}

    plan = CORRELATION.plan(facts(1000, **make()), Correlation(("x", "y"), method), BUSY)
    p = np.array([outcome(plan, block_of(**make())).p_value for _ in range(600)])
    made = (
        p < 1 if method == "pearson" else p <= 1
    )  # where noise hides that a column varies, none is
    assert "notes" in plan.forecast or np.mean(made) > 0.5
    if law == "normal" or method != "pearson":  # of skewed ones few records decide
        assert LEVEL[0] <= np.mean(p[made] < 0.05) <= LEVEL[1]
    assert np.mean(p < 0.05) <= LEVEL[1]


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_a_strong_correlation(method: str) -> None:
    """Of normal pairs; truths are those of a large table, as each method sees it, and Kendall's of
    the law.
    """
    rng = seeded(6)

    def make(n: int) -> dict[Any, Any]:
        x, e = rng.normal(size=(2, n))
        return {"x": x, "y": 0.7 * x + np.sqrt(0.51) * e}

    query = Correlation(("x", "y"), method)
    public = facts(2000, **make(20_000))
    plan = CORRELATION.plan(public, query, BUSY)
    large = CORRELATION.plan(public, query, offer(100, 100))
    kendall = method == "kendall"
    truth = {"kendall": 2 / np.pi * np.arcsin(0.7), "pearson": 0.7}.get(method)
    truth = truth or outcome(large, block_of(**make(400_000))).effect
    results = [outcome(plan, block_of(**make(2000))).effect_interval for _ in range(400)]
    covered = np.mean([low <= truth <= high for low, high in results])
    assert 0.90 <= covered <= (1.0 if kendall else 0.99)


def test_grades_of_counted_values_are_their_middle_ranks() -> None:
    counts = tuple(float(c) for c in (10, 0, 30, 0, 0, 0, 0, 0, 0, 60))
    public = facts_of(100, (K,))
    profile = Profile({"k": ColumnProfile(quantiles=(0.0, 9.0), counts=counts)})
    grade = grades_of(_with(public, profile), K)
    found = grade.of(block_of(k=np.array([0.0, 2.0, 9.0])))
    assert found == pytest.approx([0.05, 0.25, 0.7])


def test_grades_without_a_profile_are_shares_of_the_declared_bounds() -> None:
    grade = grades_of(facts_of(100, (K,)), K)
    assert grade.of(block_of(k=np.array([0.0, 4.5, 9.0]))) == pytest.approx([0, 0.5, 1])


def _with(public: Any, profile: Any) -> Any:
    from dataclasses import replace

    return replace(public, profile=profile)


def test_the_largest_distance_of_two_groups_is_that_at_the_edges() -> None:
    table = people(N)
    table["y"] = table["y"] * (1 + table["g"]) / 2
    found = ask(KS_TEST, KsTest("y", "g", ("a", "c")), table)
    below = [
        np.searchsorted(np.sort(table["y"][table["g"] == g]), found.edges) / (table["g"] == g).sum()
        for g in (0, 2)
    ]
    assert found.statistic == pytest.approx(np.abs(below[0] - below[1]).max(), abs=0.003)
    assert found.distribution[0] == pytest.approx(below[0], abs=0.003)
    assert found.p_value < 0.001
    assert found.effect_interval[0] < found.statistic < found.effect_interval[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "parameters", "draw"),
    [
        ("normal", (1.0, 2.0), lambda rng, n: rng.normal(1, 2, n)),
        pytest.param(
            "uniform", (-2.0, 3.0), lambda rng, n: rng.uniform(-2, 3, n), marks=pytest.mark.audit
        ),
        pytest.param(
            "exponential", (1.5,), lambda rng, n: rng.exponential(1.5, n), marks=pytest.mark.audit
        ),
    ],
)
@pytest.mark.parametrize(
    ("draws", "level"), [(150, (0.0, 0.155)), pytest.param(600, LEVEL, marks=pytest.mark.audit)]
)
def test_a_law_is_refused_at_its_level_and_another_one_always(
    law: str,
    parameters: tuple[Any, ...],
    draw: Callable[..., Any],
    draws: int,
    level: tuple[float, float],
) -> None:
    """Of 150, too, more are below with a chance of 10⁻⁶ (binomial)."""
    rng = seeded(3)
    plan = KS_TEST.plan(people_facts(1000), KsTest("y", law=law, parameters=parameters), BUSY)
    found = [outcome(plan, block_of(y=draw(rng, 1000))).p_value for _ in range(draws)]
    assert level[0] <= np.mean(np.array(found) < 0.05) <= level[1]
    shifted = outcome(plan, block_of(y=draw(rng, 1000) + 3))
    assert shifted.p_value < 0.001


@pytest.mark.audit
@pytest.mark.parametrize("law", ["ties", "continuous"])
def test_two_equal_distributions_are_refused_at_the_level(law: str) -> None:
    rng = seeded(5)
    n = 1000

    def make() -> dict[Any, Any]:
        y = rng.exponential(size=n)
        y = np.floor(2 * y) if law == "ties" else y
        return {"g": rng.choice(3, n, p=[0.2, 0.5, 0.3]).astype(float), "y": y}

    plan = KS_TEST.plan(facts(n, y=make()["y"]), KsTest("y", "g", ("a", "b")), BUSY)
    level = np.mean([outcome(plan, block_of(**make())).p_value < 0.05 for _ in range(600)])
    assert LEVEL[0] <= level <= LEVEL[1]


@pytest.mark.parametrize("privacy", [offer(0.01), BUSY, QUIET])
@pytest.mark.parametrize("table", ["constants", "no record in use", "few"])
def test_every_table_has_a_reply(privacy: Any, table: str) -> None:
    rng = seeded(2)
    n = 3 if table == "few" else 800
    x, y = (np.full((2, n), 4.0)) if table == "constants" else rng.normal(size=(2, n))
    g = np.full(n, 2.0) if table == "no record in use" else rng.integers(0, 2, n).astype(float)
    where = 'g == "a"' if table == "no record in use" else None
    public = facts(n, x=rng.normal(size=1000), y=rng.normal(size=1000))
    queries = [(CORRELATION, Correlation(("x", "y"), m, where=where)) for m in METHODS]
    queries += [(KS_TEST, KsTest("y", "g", ("a", "b")))]
    queries += [(KS_TEST, KsTest("y", law="normal", parameters=(0.0, 1.0), where=where))]
    for kind, query in queries:
        found = outcome(kind.plan(public, query, privacy), block_of(g=g, x=x, y=y))
        low, high = found.effect_interval
        assert 0 <= found.p_value <= 1
        assert np.isfinite([found.statistic, found.effect, low, high]).all()
        assert low <= high


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (CORRELATION, Correlation(("x", "x"))),
        (CORRELATION, Correlation(("x", "g"))),
        (CORRELATION, Correlation(("x", "z"))),
        (KS_TEST, KsTest("y")),
        (KS_TEST, KsTest("y", "g")),
        (KS_TEST, KsTest("y", "g", ("a", "b"), law="normal", parameters=(0.0, 1.0))),
        (KS_TEST, KsTest("y", "g", ("a", "b"), parameters=(0.0, 1.0))),
        (KS_TEST, KsTest("y", levels=("a", "b"), law="normal", parameters=(0.0, 1.0))),
        (KS_TEST, KsTest("y", law="normal")),
        (KS_TEST, KsTest("y", law="normal", parameters=(0.0, -1.0))),
        (KS_TEST, KsTest("y", law="uniform", parameters=(1.0, 1.0))),
        (KS_TEST, KsTest("y", law="exponential", parameters=(0.0,))),
        (KS_TEST, KsTest("g", law="exponential", parameters=(1.0,))),
    ],
)
def test_questions_that_do_not_go_together_are_refused_with_a_reason(kind: Any, query: Any) -> None:
    with pytest.raises(InvalidQuery):
        kind.plan(people_facts(N), query, BUSY)
