# SPDX-License-Identifier: Apache-2.0
"""The M-estimate by the exponential mechanism: near Huber's, robust, and refused where unproved."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.m_estimate.query import MEstimateQuery
from reticent_server.kinds.registry import plan as plan_kind
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 4000
DRAWS = 50  # each goes over about a million candidates
X = numeric("x", -1e4, 1e4)
OFFER = PrivacyCost(EPSILON_UNITS, 10**12, 10**10)


def huber(x: Any, c: Any) -> Any:
    return optimize.brentq(lambda t: np.clip(x - t, -c, c).sum(), x.min(), x.max())


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("base", ["uniform", "cauchy"])
@pytest.mark.parametrize("draws", [15, pytest.param(50, marks=pytest.mark.audit)])
def test_draws_are_around_hubers_location_at_the_forecast_distance(base: str, draws: int) -> None:
    x = seeded(0).normal(10, 2, N)
    x[: N // 10] = 9000
    plan = plan_kind(facts_of(N, (X,)), MEstimateQuery("x", tuning=2.7, base=base), OFFER)
    draws = [answer(plan, block_of(x=x))["value"] for _ in range(draws)]
    error = np.sqrt(np.mean((np.array(draws) - huber(x, 2.7)) ** 2))
    assert 0.2 < error / plan.forecast["privacy_standard_error"] < 1.5
    assert plan.own_cost == PrivacyCost(EPSILON_UNITS, 0, 125 * 10**9)


def test_the_tuning_comes_from_the_profile() -> None:
    public = facts_of(N, (X,), quartiles={"x": (8.651, 10.0, 11.349)})
    plan = plan_kind(public, MEstimateQuery("x"), OFFER)
    assert plan.tuning == pytest.approx(2.69, rel=1e-5)


@pytest.mark.parametrize(
    "query",
    [
        MEstimateQuery("x"),
        MEstimateQuery("x", tuning=-1.0),
        MEstimateQuery("x", tuning=1.0, lower=5.0, upper=5.0),
        MEstimateQuery("x", tuning=1e-12),
        MEstimateQuery("m", tuning=1.0),
    ],
)
def test_what_has_no_density_or_no_proof_is_refused(query: Any) -> None:
    with pytest.raises(InvalidQuery):
        plan_kind(facts_of(N, (X, numeric("m", missing=("NA",)))), query, OFFER)


def test_the_draw_stays_within_the_bounds_on_any_data() -> None:
    for values in (np.array([np.nan, np.inf]), np.array([1e4]), np.array([-1e4, 1e4])):
        plan = plan_kind(facts_of(len(values), (X,)), MEstimateQuery("x", tuning=1.0), OFFER)
        assert -1e4 <= answer(plan, block_of(x=values))["value"] <= 1e4
