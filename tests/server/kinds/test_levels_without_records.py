# SPDX-License-Identifier: Apache-2.0
"""Declared levels that have no records: those that `where` excludes are not in the question, and
those whose released number is not above its noise are in no statistic.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind, Recode
from reticent_server.domain.steps import Released
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.formula.excluded import excluded, restricted
from reticent_server.formula.parse import parse_formula, parse_predicate
from reticent_server.kinds import registry
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.crosstab.kind import Crosstab
from reticent_server.kinds.cumulative_incidence.kind import CumulativeIncidence
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.event_study.kind import _cohorts
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.log_rank.scores import LogRankMap
from reticent_server.kinds.mann_whitney.kind import MannWhitney
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.sum.kind import Sum
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.kinds.t_test.kind import TTest
from support.kinds.named_tests import offer
from support.kinds.recipes import answer, block_of, facts_of, numeric, released
from support.kinds.results import replied
from support.seeds import seeded

N = 4000
LEVELS = ("a", "b", "c", "d")
LEFT = ("a", "c")
WHERE = 'g in ("a", "c")'
EXACT = PrivacyCost(0, 0, 10**22)
CUTS = (1.0, 2.0, 4.0, 8.0)


def categorical(name: str, levels: tuple[str, ...]) -> Column:
    return Column(name, ColumnKind.CATEGORICAL, 0, len(levels) - 1, levels)


def columns(levels: tuple[str, ...]) -> tuple[Column, ...]:
    return (
        categorical("g", levels),
        categorical("h", ("lo", "mid", "hi")),
        Column("k", ColumnKind.INTEGER, 0, 9),
        Column("keep", ColumnKind.BOOLEAN, 0, 1),
        Column("e", ColumnKind.BOOLEAN, 0, 1),
        categorical("cause", ("none", "one", "two")),
        numeric("t", 0.0, 10.0),
        numeric("y", -6.0, 6.0),
    )


def table(seed: int = 0, n: int = N) -> dict[str, Any]:
    """Columns of LEVELS; every level has records."""
    rng = seeded(seed)
    g = rng.integers(0, 4, n) * 1.0
    return {
        "g": g,
        "h": rng.integers(0, 3, n) * 1.0,
        "k": rng.integers(0, 10, n) * 1.0,
        "keep": np.isin(g, (0.0, 2.0)) * 1.0,
        "e": rng.integers(0, 2, n) * 1.0,
        "cause": rng.integers(0, 3, n) * 1.0,
        "t": np.minimum(rng.exponential(4 + g), 10.0),
        "y": np.clip(0.2 * g + rng.normal(size=n), -6, 6),
    }


def asked(query: Any, declared: tuple[Column, ...], data: dict[str, Any], cost: Any = EXACT) -> Any:
    plan = registry.plan(facts_of(len(data["g"]), declared), query, cost)
    return answer(plan, block_of(**data))


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a reply by its path."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from numbers(each, f"{path}.{name}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from numbers(each, f"{path}[{place}]")
    else:
        yield path, value


QUESTIONS = {
    "anova": lambda where: Anova("y", "g", where=where),
    "kruskal": lambda where: Kruskal("k", "g", where=where),
    "t_test": lambda where: TTest("y", "g", where=where),
    "mann_whitney": lambda where: MannWhitney("k", "g", where=where),
    "crosstab": lambda where: Crosstab(("h", "g"), where=where),
    "count": lambda where: Count(where=where, by="g"),
    "sum": lambda where: Sum("y", where=where, by="g"),
    "mean": lambda where: Mean("y", where=where, by="g"),
    "histogram": lambda where: Histogram("g", where=where),
    "histogram by": lambda where: Histogram("h", where=where, by="g"),
    "describe": lambda where: Describe(("g", "k"), where=where),
    "describe by": lambda where: Describe(("k", "h"), by="g", where=where),
    "log_rank": lambda where: LogRank("t", "e", "g", CUTS, where=where),
    "survival_curve": lambda where: SurvivalCurve("t", "e", "g", CUTS, where=where),
    "incidence": lambda where: CumulativeIncidence("t", "cause", by="g", cuts=CUTS, where=where),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_level_that_where_excludes_is_not_in_the_question(name: str) -> None:
    """Beside a column that does not declare it, about the same records."""
    data = table()
    found = asked(QUESTIONS[name](WHERE), columns(LEVELS), data)
    undeclared = {**data, "g": np.where(data["g"] == 2, 1.0, 0.0)}
    expected = asked(QUESTIONS[name]("keep == 1"), columns(LEFT), undeclared)
    ours, theirs = dict(numbers(found)), dict(numbers(expected))
    assert list(ours) == list(theirs)
    for path, value in theirs.items():
        if isinstance(value, float):
            assert ours[path] == pytest.approx(value, rel=1e-4, abs=1e-4), path
        else:
            assert ours[path] == value, path


def test_a_where_leaves_the_classical_tests_of_two_groups() -> None:
    data = table()
    a, c = (data["g"] == 0), (data["g"] == 2)
    found = asked(Anova("y", "g", where=WHERE), columns(LEVELS), data)
    welch = stats.ttest_ind(data["y"][a], data["y"][c], equal_var=False).statistic ** 2
    assert (found["df"], found["statistic"]) == (1, pytest.approx(welch, rel=1e-3))
    found = asked(Kruskal("k", "g", where=WHERE), columns(LEVELS), data)
    ranks = stats.kruskal(data["k"][a], data["k"][c]).pvalue
    assert (found["df"], found["p_value"]) == (1, pytest.approx(ranks, rel=0.02))


@pytest.mark.parametrize("kind", [Anova, TTest, Kruskal, MannWhitney])
def test_a_comparison_of_which_where_leaves_one_group_is_refused(kind: Any) -> None:
    facts, one = facts_of(N, columns(LEVELS)), 'g == "b"'
    with pytest.raises(InvalidQuery, match="where leaves one of g"):
        registry.plan(facts, kind("y", "g", where=one), EXACT)
    with pytest.raises(InvalidQuery, match="where does not exclude"):
        registry.plan(facts, kind("y", "g", ("a", "b"), where=WHERE), EXACT)
    with pytest.raises(InvalidQuery, match="by needs two or more levels"):
        registry.plan(facts, LogRank("t", "e", "g", CUTS, where=one), EXACT)


def test_a_condition_that_excludes_every_level_is_refused() -> None:
    question = Count(where='g == "a" and g == "b"', by="g")
    with pytest.raises(InvalidQuery, match="where excludes every value of g"):
        registry.plan(facts_of(N, columns(LEVELS)), question, EXACT)


K = Column("k", ColumnKind.INTEGER, 0, 9)
CONDITIONS = [
    ('g in ("a", "c")', "g", [1, 3]),
    ('g != "b"', "g", [1]),
    ('not (g == "a" or g == "b")', "g", [0, 1]),
    ('g == "a" or y > 0', "g", []),
    ('(g == "a" or y > 0) and g != "d"', "g", [3]),
    ('g == "a" or (g == "b" and y > 0)', "g", [2, 3]),
    ("k >= 3", "k", [0, 1, 2]),
    ("2.5 < k and k < 7", "k", [0, 1, 2, 7, 8, 9]),
    ("k in (1, 4) or k > 7.5", "k", [0, 2, 3, 5, 6, 7]),
    ("k > 20", "k", list(range(10))),
    ("k < 100 and y > 0", "k", []),
]


@pytest.mark.parametrize(("where", "name", "values"), CONDITIONS)
def test_what_a_condition_excludes_is_what_no_record_in_use_can_have(
    where: str, name: str, values: list[int]
) -> None:
    facts = facts_of(N, columns(LEVELS))
    column = facts.schema.column(name)
    assert column is not None
    ranges = excluded(parse_predicate(where, facts.schema), column)
    assert [v for v in range(int(column.upper) + 1) for a, b in ranges if a <= v <= b] == values
    assert all(b < c - 1 for (_, b), (c, _) in pairwise(ranges))
    left = restricted(facts, where).schema.column(name)
    assert left is not None
    assert left.size == column.size - len(values)
    assert left.values(2) == tuple(v for v in column.values(10) if v not in values)[:2]


def test_a_wide_column_is_not_gone_through_value_by_value() -> None:
    wide = Column("w", ColumnKind.INTEGER, 0, 2.0**53)
    facts = facts_of(N, (wide,))
    left = restricted(facts, "w > 1000000000000 and w != 1000000000002").schema.columns[0]
    assert left.values(2) == (1e12 + 1, 1e12 + 3)
    assert left.size == 2**53 - 10**12 - 1


def terms(formula: str, where: str, *more: Column) -> list[str]:
    facts = restricted(facts_of(N, (*columns(LEVELS), *more)), where)
    return list(parse_formula(formula, facts.schema, where).names)


def test_a_factor_has_the_levels_that_where_does_not_exclude() -> None:
    assert terms("y ~ g", WHERE) == ["Intercept", "g[c]"]
    assert terms("y ~ g", 'g != "a"') == ["Intercept", "g[c]", "g[d]"]
    assert terms("y ~ C(k)", "k >= 7") == ["Intercept", "C(k)[8]", "C(k)[9]"]
    assert terms('y ~ C(g, ref="c")', WHERE) == ["Intercept", "C(g)[a]"]
    assert terms('y ~ C(merge(g, x=["a", "b"]))', WHERE)[1:] == ['merge(g, x=["a", "b"])[c]']
    with pytest.raises(InvalidFormula, match="or where excludes it"):
        terms('y ~ C(g, ref="b")', WHERE)


def test_years_and_months_are_those_that_where_leaves() -> None:
    day = Column("d", ColumnKind.INTEGER, 16436, 18261, recode=Recode(date="%Y-%m-%d"))
    found = terms("y ~ C(year(d))", 'd >= "2017-06-01"', day)
    assert found == ["Intercept", "C(year(d))[2018]", "C(year(d))[2019]"]
    found = terms("y ~ C(month(d))", 'd >= "2019-10-15"', day)
    assert found == ["Intercept", "C(month(d))[11]", "C(month(d))[12]"]


def test_a_response_of_three_levels_of_which_two_are_left_is_binary() -> None:
    facts = facts_of(N, columns(LEVELS))
    where = 'cause != "one"'
    design = parse_formula("cause ~ y", restricted(facts, where).schema, where)
    assert design.response is not None
    assert design.response.name == "cause[two]"
    with pytest.raises(InvalidFormula, match="where leaves one level of the response"):
        registry.plan(facts, Glm("cause ~ y", "binomial", where='cause == "one"'), EXACT)
    with pytest.raises(InvalidQuery, match="for two levels ask for the binomial family"):
        registry.plan(facts, Glm("cause ~ y", "multinomial", where=where), EXACT)


MANY = tuple("abcd") + tuple(f"v{i}" for i in range(36))


@pytest.mark.parametrize("kind", ["anova", "kruskal", "crosstab"])
def test_levels_without_records_are_in_no_statistic(kind: str) -> None:
    """40 levels are declared and 4 have records; ε = 100."""
    data = table()
    groups = [data["g"] == code for code in range(4)]
    if kind == "anova":
        found = asked(Anova("y", "g"), columns(MANY), data, offer(100))
        test = anova_oneway([data["y"][g] for g in groups], use_var="unequal")
        assert found["df"] == 3
        assert found["statistic"] == pytest.approx(test.statistic, rel=0.02)
        assert [each["mean"] for each in found["groups"]][4:] == [None] * 36
    elif kind == "kruskal":
        found = asked(Kruskal("k", "g"), columns(MANY), data, offer(100))
        assert found["df"] == 3
        H = stats.kruskal(*(data["k"][g] for g in groups)).statistic
        assert found["statistic"] == pytest.approx(H, abs=0.5)
        assert found["mean_ranks"][4:] == [None] * 36
    else:
        found = asked(Crosstab(("g", "h")), columns(MANY), data, offer(100))
        counts = [[np.sum(g & (data["h"] == h)) for h in range(3)] for g in groups]
        assert found["independence"]["df"] == 6
        chi2 = stats.chi2_contingency(counts)[0]
        assert found["independence"]["statistic"] == pytest.approx(chi2, abs=0.5)
    assert "v4 and 31 others" in found["warnings"][0]


@pytest.mark.parametrize("epsilon", [1, 100])
@pytest.mark.parametrize("question", [Median("y", by="g"), Quantiles("y", (0.7, 0.2), by="g")])
def test_medians_of_levels_without_records_are_null(question: Any, epsilon: float) -> None:
    """40 levels are declared and 4 have 1,000 records each. Of an empty one the chance of a value
    is at most 1/21: more than 16 of 36 have one in fewer than one of 10^12 runs.
    """
    data = table()
    found = asked(question, columns(MANY), data, offer(epsilon))
    values = [np.ravel(each.get("values", each.get("value"))) for each in found["groups"]]
    aimed = [0.5] if isinstance(question, Median) else [0.7, 0.2]
    for code, own in enumerate(values[:4]):
        cells = np.sort(data["y"][data["g"] == code])
        ranks = np.searchsorted(cells, own.astype(float)) / len(cells)
        assert np.abs(ranks - aimed).max() < 0.2
    empty = [level for level, own in zip(MANY, values, strict=True) if None in own]
    assert len(empty) >= 20
    assert all(set(own) == {None} for own in values if None in own)
    (warning,) = found["warnings"]
    assert warning.startswith(f"{', '.join(empty[:5])} and {len(empty) - 5} others: no records")


@pytest.mark.parametrize("question", [Median("y", by="g"), Quantiles("y", (0.7, 0.2), by="g")])
def test_groups_that_are_said_to_be_empty_have_null_values(question: Any) -> None:
    plan: Any = registry.plan(facts_of(N, columns(LEVELS)), question, offer(1))
    recipe = plan.run()
    parts = next(recipe).parts
    assert all(part.may_be_empty for part in parts)
    size = len(parts[0].probabilities)
    with pytest.raises(StopIteration) as stop:
        recipe.send([Released(np.full(size, each), 0.0) for each in (np.nan, 1.0, np.nan, 2.0)])
    found = replied(stop.value.value)
    values = [np.ravel(each.get("values", each.get("value"))).tolist() for each in found["groups"]]
    assert values == [[each] * size for each in (None, 1.0, None, 2.0)]
    assert found["warnings"] == ["a, c: no records, or hardly any, so no value is reported."]


def test_one_of_two_groups_without_records_is_named() -> None:
    data = {**table(), "g": np.zeros(N)}
    for kind in (TTest, MannWhitney):
        found = asked(kind("y", "g"), columns(("a", "z")), data, offer(100))
        assert found["p_value"] > 0.05
        assert found["warnings"][0].startswith("z: the released number of records is not above")


def test_curves_and_their_tests_are_of_the_groups_with_records() -> None:
    data = table()
    five = (*LEVELS, "z")
    four = asked(LogRank("t", "e", "g", CUTS), columns(LEVELS), data)
    found = asked(LogRank("t", "e", "g", CUTS), columns(five), data)
    assert (found["df"], found["observed_minus_expected"][4]) == (3, None)
    assert found["statistic"] == pytest.approx(four["statistic"], rel=0.01)
    trend = asked(LogRank("t", "e", "g", CUTS, trend=True), columns(five), data)
    same = asked(LogRank("t", "e", "g", CUTS, trend=True), columns(LEVELS), data)
    assert trend["statistic"] == pytest.approx(same["statistic"], rel=0.01)
    four = asked(SurvivalCurve("t", "e", "g", CUTS), columns(LEVELS), data)
    found = asked(SurvivalCurve("t", "e", "g", CUTS), columns(five), data)
    assert found["horizon"] == four["horizon"] == 8.0
    means = [each["restricted_mean"] for each in found["groups"]]
    expected = [each["restricted_mean"] for each in four["groups"]]
    assert (means[:4], means[4]) == (pytest.approx(expected, rel=1e-3), None)
    assert found["warnings"][0].startswith("z: ")
    four = asked(CumulativeIncidence("t", "cause", by="g", cuts=CUTS), columns(LEVELS), data)
    found = asked(CumulativeIncidence("t", "cause", by="g", cuts=CUTS), columns(five), data)
    assert len(found["tests"]) == len(four["tests"]) == 2
    for ours, theirs in zip(found["tests"], four["tests"], strict=True):
        assert (ours["df"], ours["observed_minus_expected"][4]) == (3, None)
        assert ours["statistic"] == pytest.approx(theirs["statistic"], rel=0.01)


def test_persons_of_a_group_that_is_not_compared_add_nothing() -> None:
    """Few of them are in a third group."""
    data = table()
    data["g"] = np.where(np.arange(N) < 3, 2.0, data["k"] % 2)
    plan: Any = registry.plan(
        facts_of(N, columns(("a", "b", "c"))), LogRank("t", "e", "g", CUTS), offer(1)
    )
    block = block_of(**data)
    scores = plan.scores_after(released(next(plan.run()), block)[0])
    (sums,) = LogRankMap(plan.asked, scores)(block)
    assert len(sums) == 1
    assert not sums[:, :3].any()
    assert sums[:, 3:].all()


def test_cohorts_that_where_excludes_have_no_term() -> None:
    start = Column("start", ColumnKind.INTEGER, 0, 5)
    (left,) = restricted(facts_of(N, (start,)), "start in (2, 4, 5)").schema.columns
    assert [term.name for term in _cohorts(left, None)] == ["start[4]", "start[5]"]
    assert [term.name for term in _cohorts(left, 5.0)] == ["start[2]", "start[4]"]


def test_a_regression_is_planned_with_the_levels_that_are_left() -> None:
    question = LinearRegression("y ~ k + g", where=WHERE)
    plan = registry.plan(facts_of(N, columns(LEVELS)), question, offer(1))
    assert plan.precision.names == ("Intercept", "k", "g[c]")
