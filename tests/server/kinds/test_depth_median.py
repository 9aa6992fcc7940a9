# SPDX-License-Identifier: Apache-2.0
"""The planned depth median: public directions, public scales, likely replies, and refusals."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.depth_median.likely import plan_split
from reticent_server.kinds.depth_median.plan import public_directions
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.registry import plan as plan_kind
from support.attacks.pass_probabilities import reply_probability
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

COLUMNS = tuple(numeric(f"x{j}", -1e4, 1e4) for j in range(9))
QUARTILES = {
    c.name: (95.0 * (j + 1), 100.0 * (j + 1), 105.0 * (j + 1)) for j, c in enumerate(COLUMNS)
}


def offer(epsilon: float = 4.0) -> PrivacyCost:
    return PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, 10**10)


def plan_of(n: int, d: Any, query: Any = None, *, profile: bool = True, **fields: Any) -> Any:
    public = facts_of(n, COLUMNS, quartiles=QUARTILES if profile else None)
    names = tuple(c.name for c in COLUMNS[:d])
    return plan_kind(public, query or DepthMedian(names, **fields), offer())


def gaussian(n: int, d: Any, seed: int = 0) -> Any:
    """Columns of medians 100, 200, … and of very different scales."""
    z = seeded(seed).normal(size=(d, n))
    return block_of(**{f"x{j}": 100.0 * (j + 1) + 7.4 * (j + 1) * z[j] for j in range(d)})


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("scale", ["iqr", "mad", "trimmed"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_it_replies_near_the_centre_in_the_units_of_the_data(scale: str, d: int) -> None:
    n = 12_000
    plan = plan_of(n, d, scale=scale, directions=None if d < 3 else 100)
    found = answer(plan, gaussian(n, d))
    centre, width = 100.0 * np.arange(1, d + 1), 7.4 * np.arange(1, d + 1)
    assert np.abs((found["point"] - centre) / width).max() < 0.25
    assert found["eta"] == plan.part.etas[0]
    assert plan.likely
    assert plan.own_cost.epsilon <= offer().epsilon
    assert plan.own_cost.delta == plan.own_cost.rho_delta == offer().delta


@pytest.mark.slow
def test_without_a_profile_declared_bounds_standardise() -> None:
    n = 12_000
    found = answer(plan_of(n, 2, profile=False, scale="trimmed"), gaussian(n, 2))
    assert np.abs(np.array(found["point"]) - [100, 200]).max() < 3


@pytest.mark.slow
def test_a_private_choice_of_eta() -> None:
    plan = plan_of(12_000, 2, scale="trimmed", eta="private")
    assert len(plan.part.etas) == 5
    assert plan.part.epsilon_choice == offer().epsilon // 5
    found = answer(plan, gaussian(12_000, 2))
    assert found["eta"] in plan.part.etas


def test_few_records_have_no_reply_and_the_forecast_says_so() -> None:
    plan = plan_of(150, 2)
    assert not plan.forecast["reply_likely"]
    assert answer(plan, gaussian(150, 2)) is None


def test_directions_are_public_spread_and_fixed() -> None:
    for d in (1, 2, 3, 8):
        number = 2 if d == 1 else 60
        rows = np.array(public_directions(d, number))
        assert public_directions(d, number) == public_directions(d, number)
        assert rows.shape == (number, d)
        assert np.abs(rows).max() <= 1024
        assert np.linalg.matrix_rank(rows) == d
        assert len({tuple(r) for r in rows.tolist()}) == number


@pytest.mark.parametrize(
    "query",
    [
        DepthMedian(()),
        DepthMedian(("x0", "x0")),
        DepthMedian(tuple(c.name for c in COLUMNS)),
        DepthMedian(("x0", "absent")),
        DepthMedian(("x0", "x1"), directions=3),
        DepthMedian(("x0", "x1"), directions=1001),
        DepthMedian(("x0", "x1"), eta=-1.0),
        DepthMedian(("x0", "x1"), eta=float("inf")),
    ],
)
def test_what_cannot_be_planned_is_refused(query: Any) -> None:
    with pytest.raises(InvalidQuery):
        plan_of(1000, 2, query)


def test_more_records_and_more_epsilon_allow_a_larger_eta() -> None:
    for scale in ("iqr", "mad", "trimmed"):
        etas = [
            plan_split(scale, n, 3, int(e * EPSILON_UNITS), 10**12).eta
            for n, e in ((10**5, 1.0), (10**5, 2.0), (10**6, 2.0))
        ]
        assert 0 < etas[0] < etas[1] < etas[2]


@pytest.mark.audit
@pytest.mark.parametrize("scale", ["iqr", "mad", "trimmed"])
def test_replies_are_as_good_as_certain_at_a_hundred_thousand_records(scale: str) -> None:
    """ε = 1, d = 3, 500 directions: the chance given the table, on 20 tables; and a real
    release.
    """
    public = facts_of(100_000, COLUMNS, quartiles=QUARTILES)
    query = DepthMedian(("x0", "x1", "x2"), scale)
    plan = plan_kind(public, query, offer(1.0))
    assert len(plan.part.directions) == 500
    chances = []
    for seed in range(20):
        block = gaussian(100_000, 3, seed)
        chances.append(reply_probability(plan.part, np.stack(list(block.columns.values()))))
    assert np.mean(chances) >= 0.99
    assert answer(plan, block) is not None
