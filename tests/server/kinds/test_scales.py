# SPDX-License-Identifier: Apache-2.0
"""Interquartile ranges and medians: close on plain data, No Reply on the rest, refusals when
planning.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.kinds.iqr.by_ptr import plan_iqr
from reticent_server.kinds.iqr.kind import Iqr
from reticent_server.kinds.median.by_ptr import plan_ptr_median
from reticent_server.kinds.median.by_smooth_sensitivity import plan_smooth_median
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.registry import plan as plan_kind
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 20_000
X = numeric("x", -1000.0, 1000.0)


def offer(epsilon: float = 4.0, delta: float = 1e-6) -> PrivacyCost:
    return PrivacyCost(int(epsilon * EPSILON_UNITS), int(delta * DELTA_UNITS), 10**10)


def within_what_was_asked(cost: Any) -> Any:
    return cost.epsilon <= offer().epsilon and cost.delta <= offer().delta


def normal(n: Any = N, seed: int = 0) -> Any:
    return block_of(x=seeded(seed).normal(10, 2, n))


def test_the_range_is_within_its_bin() -> None:
    plan, block = plan_iqr(facts_of(N, (X,)), X, offer()), normal()
    found = answer(plan, block)
    low, high = found["bin"]
    assert low <= found["value"] <= high
    assert low <= np.subtract(*np.quantile(block.columns["x"], [0.75, 0.25])) <= high
    assert high / low == pytest.approx(1 + 1 / np.log(N))
    assert within_what_was_asked(plan.own_cost)


@pytest.mark.parametrize("profile", [None, {"x": (8.65, 10.0, 11.35)}])
def test_the_median_with_and_without_a_profile(profile: dict[str, Any] | None) -> None:
    plan = plan_ptr_median(facts_of(N, (X,), quartiles=profile), X, offer())
    found = answer(plan, normal())
    assert found["value"] == pytest.approx(10.0, abs=2.7 * N ** (-1 / 3))
    assert plan.passes == (2 if profile is None else 1)
    assert within_what_was_asked(plan.own_cost)
    tests = plan.own_cost.epsilon / plan.median.epsilon
    assert tests == (4 if profile is None else 2)


def test_the_smooth_median_has_little_noise_on_plain_data() -> None:
    plan = plan_smooth_median(facts_of(N, (X,)), X, offer(1.0))
    errors = [answer(plan, normal(seed=s))["value"] - 10.0 for s in range(30)]
    assert np.sqrt(np.mean(np.square(errors))) < 0.05
    assert plan.own_cost == PrivacyCost(10**9, 10**12, 5 * 10**11, 10**12)


def test_the_smooth_median_replies_on_any_data_within_the_bounds() -> None:
    for values in (np.full(3, 1e9), np.array([-1000.0, 1000.0]), np.array([np.nan]), np.zeros(999)):
        plan = plan_smooth_median(facts_of(len(values), (X,)), X, offer(1.0))
        assert -1000 <= answer(plan, block_of(x=values))["value"] <= 1000


def test_two_far_clusters_have_no_reply() -> None:
    half = np.where(np.arange(N) % 2, -900.0, 900.0) + seeded(1).normal(size=N)
    assert answer(plan_ptr_median(facts_of(N, (X,)), X, offer()), block_of(x=half)) is None
    few = block_of(x=np.array([1.0, 5.0, 30.0]))
    assert answer(plan_iqr(facts_of(3, (X,)), X, offer()), few) is None


def test_a_column_that_is_mostly_one_value_has_range_zero() -> None:
    block = block_of(x=np.where(np.arange(N) % 5, 7.0, 100.0))
    assert answer(plan_iqr(facts_of(N, (X,)), X, offer()), block)["value"] == 0.0
    median = answer(plan_ptr_median(facts_of(N, (X,)), X, offer()), block)
    assert median["value"] == pytest.approx(7.0, abs=1e-6)


G = Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"))
M = numeric("m", missing=("NA",))


@pytest.mark.parametrize("mechanism", ["ptr", "smooth_sensitivity"])
def test_what_is_not_proved_is_refused(mechanism: str) -> None:
    public = facts_of(N, (X, G, M))
    for query in (Median("g", mechanism), Median("m", mechanism), Median("absent", mechanism)):
        with pytest.raises(InvalidQuery):
            plan_kind(public, query, offer())
    with pytest.raises(InvalidQuery):
        plan_kind(public, Median("x", mechanism, where="x > 0"), offer())
    with pytest.raises(InvalidQuery):
        plan_kind(facts_of(N, (X,), max_rows=2), Median("x", mechanism), offer())
    for tiny in (offer(1e-5), offer(1.0, 1e-15)):
        with pytest.raises(InvalidPrivacy):
            plan_kind(public, Median("x", mechanism), tiny)


def test_the_range_is_refused_and_the_exponential_median_is_not() -> None:
    public = facts_of(N, (X, G, M), max_rows=2)
    for name in ("x", "g", "m"):
        with pytest.raises(InvalidQuery):
            plan_kind(public, Iqr(name, "ptr"), offer())
    plan = plan_kind(public, Median("m", where="x > 0"), offer())
    assert plan.part.unit_rows == 2
