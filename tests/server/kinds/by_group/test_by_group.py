# SPDX-License-Identifier: Apache-2.0
"""Answers by group: each is that of its own group, and its interval covers; small groups are
answered as well.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds import registry
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.sum.kind import Sum
from support.kinds.named_tests import Y, offer, people, people_facts
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 4000
QUIET = offer(10**6, 100)


def by_level(result: Any) -> dict[Any, Any]:
    return {group["level"]: group for group in result["groups"]}


def asked(query: Any, table: Any, cost: Any = QUIET) -> Any:
    return answer(registry.plan(people_facts(len(table["y"])), query, cost), block_of(**table))


def test_every_group_has_its_own_answer() -> None:
    table = people(N)
    used = table["x"] > 0
    counts, sums, means = (
        by_level(asked(query, table))
        for query in (Count("x > 0", "g"), Sum("y", "x > 0", "g"), Mean("y", "x > 0", "g"))
    )
    for code, level in enumerate(("a", "b", "c")):
        own = table["y"][used & (table["g"] == code)]
        assert counts[level]["value"] == pytest.approx(len(own), abs=3)
        assert sums[level]["value"] == pytest.approx(own.sum(), abs=12)
        assert means[level]["value"] == pytest.approx(own.mean(), abs=0.02)
        assert means[level]["standard_error"] == pytest.approx(
            own.std() / np.sqrt(len(own)), rel=0.2
        )


def test_histograms_of_groups_are_those_of_their_records() -> None:
    table = people(N)
    for bins, edges in ((None, np.arange(11) - 0.5), ((0.0, 4.0, 9.0), (0.0, 4.0, 9.0))):
        found = asked(Histogram("k", bins, by="b"), table)
        assert found["by"] == "b"
        for code, level in enumerate(("0", "1")):
            truth = np.histogram(table["k"][table["b"] == code], edges)[0]
            assert by_level(found)[level]["values"] == pytest.approx(truth, abs=3)


def test_records_of_no_known_group_are_out_of_use() -> None:
    h = Column("h", ColumnKind.CATEGORICAL, 0, 1, ("u", "v"), ("NA",))
    table = {"y": np.full(100, 2.0), "h": np.arange(100) % 2.0}
    absent = np.arange(100) < 50
    block = block_of({"h": absent}, **{k: np.where(absent, 0.0, v) for k, v in table.items()})
    facts = facts_of(100, (Y, h))
    for query in (Count(by="h"), Sum("y", by="h"), Mean("y", by="h")):
        found = by_level(answer(registry.plan(facts, query, QUIET), block))
        truth = {"count": 25, "sum": 50, "mean": 2}[query.kind]
        assert found["u"]["value"] == pytest.approx(truth, abs=13 if query.kind == "sum" else 2.5)
        assert found["v"]["value"] == pytest.approx(truth, abs=13 if query.kind == "sum" else 2.5)


SHARES = (0.6, 0.3, 0.09, 0.01)
H = Column("h", ColumnKind.CATEGORICAL, 0, 3, ("a", "b", "c", "d"))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [0.5, 4])
def test_intervals_of_means_and_of_their_differences_cover_in_small_groups_too(
    epsilon: float,
) -> None:
    """The mean of group k is 3 + k; group d has some 20 of 2,000 records."""
    hits, differences, reps = np.zeros(4), 0, 200
    plan = registry.plan(facts_of(2000, (Y, H)), Mean("y", by="h"), offer(epsilon))
    for seed in range(reps):
        rng = seeded(seed)
        h = rng.choice(4, 2000, p=SHARES).astype(float)
        y = np.clip(3 + h + 2 * rng.normal(size=2000), -10, 10)
        groups = answer(plan, block_of(y=y, h=h))["groups"]
        ends = np.array([g["confidence_interval"] for g in groups])
        hits += (ends[:, 0] <= 3 + np.arange(4)) & (3 + np.arange(4) <= ends[:, 1])
        error = np.hypot(*(g["standard_error"] for g in groups[:2]))
        differences += abs(groups[1]["value"] - groups[0]["value"] - 1) <= 1.96 * error
    assert (hits / reps).min() >= 0.9
    assert 0.9 <= differences / reps <= 0.99


@pytest.mark.slow
def test_intervals_of_counts_and_sums_cover_the_table() -> None:
    table, hits = people(500), []
    facts = people_facts(500)
    plans = {q: registry.plan(facts, q, offer(1)) for q in (Count(by="g"), Sum("y", by="g"))}
    for _ in range(300):
        for query, plan in plans.items():
            groups = answer(plan, block_of(**{k: v for k, v in table.items() if k != "m"}))[
                "groups"
            ]
            for code, group in enumerate(groups):
                own = table["y"][table["g"] == code]
                truth = len(own) if query.kind == "count" else own.sum()
                low, high = group["confidence_interval"]
                hits.append(low <= truth <= high)
    assert 0.93 <= np.mean(hits) <= 0.97


def test_a_group_without_records_has_a_wide_interval() -> None:
    table = people(N)
    table["g"] = np.where(table["g"] == 2, 0.0, table["g"])
    for _ in range(20):
        found = by_level(asked(Mean("y", by="g"), table, cost=offer(0.5)))["c"]
        assert found["confidence_interval"] == [-10, 10]
        assert found["standard_error"] >= 10
        assert -10 <= found["value"] <= 10


def test_a_mean_whose_number_noise_may_have_made_has_the_whole_range() -> None:
    """At an end of the range 1.96 standard errors, each half of it, do not reach the other one."""
    plan = registry.plan(people_facts(N), Mean("y", by="g"), offer(0.5)).plan
    found = plan._estimate(9.9, 3.0, 3.0, sure=False)
    assert found.confidence_interval == (-10, 10)
    assert found.standard_error == 10
    assert plan._estimate(9.9, 3.0, 3.0, sure=True).confidence_interval[0] > 4


def test_sums_of_a_column_without_zero_in_its_middle() -> None:
    table = people(N)
    found = by_level(asked(Sum("k", by="b"), table))
    for code, level in enumerate(("0", "1")):
        own = table["k"][table["b"] == code]
        assert found[level]["value"] == pytest.approx(own.sum(), abs=12)


def test_the_noise_of_a_group_is_that_of_one_answer() -> None:
    """The whole ε for each group: a sum of a symmetric column, and a count but for √2 and the known
    sum of three.
    """
    facts = people_facts(N)
    noise = {
        query: registry.plan(facts, query, offer(1)).forecast["privacy_standard_error"]
        for query in (Sum("y"), Sum("y", by="g"), Count(), Count(by="g"))
    }
    assert noise[Sum("y", by="g")] == pytest.approx(noise[Sum("y")], rel=1e-5)
    known = np.sqrt(1 - 1 / 3)
    assert noise[Count(by="g")] == pytest.approx(known * np.sqrt(2) * noise[Count()], rel=1e-5)


def test_columns_that_make_no_groups_are_refused() -> None:
    many = Column("w", ColumnKind.CATEGORICAL, 0, 64, tuple(map(str, range(65))))
    facts = facts_of(N, (Y, numeric("x"), many, H))
    for query in (
        Count(by="x"),
        Count(by="nowhere"),
        Count(by="w"),
        Mean("y", by="w"),
        Histogram("h", by="h"),
        Sum("y", by="y"),
    ):
        with pytest.raises(InvalidQuery):
            registry.plan(facts, query, offer(1))


def test_a_column_of_one_value_has_that_mean() -> None:
    constant = numeric("c", 3.0, 3.0)
    facts = facts_of(100, (constant, H))
    block = block_of(c=np.full(100, 3.0), h=np.arange(100) % 4.0)
    found = answer(registry.plan(facts, Mean("c", by="h"), QUIET), block)
    assert [g["value"] for g in found["groups"]] == pytest.approx([3] * 4, abs=0.5)
