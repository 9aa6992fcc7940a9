# SPDX-License-Identifier: Apache-2.0
"""Planned subsample-and-aggregate queries: estimates, bounds, masks, what is refused."""

from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.query import Privacy, query_json
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.planning import plan
from support.kinds.named_tests import offer
from support.kinds.parts import planned_of_parts
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 40_000
COLUMNS = (
    numeric("x", -10, 10),
    numeric("y", -50, 50),
    numeric("b", 0, 1),
    numeric("c", 0, 200),
    numeric("m", -10, 10, ("NA",)),
)
QUARTILES = {"x": (-0.67, 0.0, 0.67), "y": (-0.5, 1.0, 2.5)}


def people(seed: int = 1, n: Any = N) -> dict[Any, Any]:
    rng = seeded(seed)
    x = rng.normal(size=n)
    return {
        "x": x,
        "y": 1 + 2 * x + rng.normal(size=n),
        "b": (rng.random(n) < 1 / (1 + np.exp(0.5 - x))).astype(float),
        "c": rng.poisson(np.exp(0.5 + 0.3 * x)).astype(float),
        "m": rng.normal(size=n),
    }


def planned(
    model: Any,
    epsilon: float = 4.0,
    n: Any = N,
    max_rows: int = 1,
    quartiles: Any = None,
    **fields: Any,
) -> Any:
    facts = facts_of(n, COLUMNS, max_rows, quartiles)
    return plan(facts, SubsampleAggregateQuery(model, **fields), Privacy(epsilon, 1e-6))


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("model", "truth", "correction"),
    [
        (LinearRegression("y ~ x"), [1.0, 2.0], "none"),
        (LinearRegression("y ~ x - 1"), [2.0], "none"),
        (Glm("y ~ x", "gaussian"), [1.0, 2.0], "none"),
        (Glm("b ~ x", "binomial"), [-0.5, 1.0], "firth"),
        (Glm("c ~ x", "poisson"), [0.5, 0.3], "firth"),
        (LocationScale("x"), [0.0, 1.0], "jackknife"),
    ],
)
@pytest.mark.parametrize("quartiles", [None, QUARTILES])
def test_estimates_are_near_what_they_estimate(
    model: Any, truth: list[Any], correction: str, quartiles: dict[str, Any] | None
) -> None:
    """Within eight standard errors of the truth, which are small."""
    ready = planned(model, quartiles=quartiles)
    result = answer(ready.planned, block_of(**people()))
    errors = np.array(result["standard_errors"])
    assert (np.abs(np.array(result["coefficients"]) - truth) < 8 * errors).all()
    assert (errors < 0.06).all()
    assert (np.array(result["privacy_standard_errors"]) < errors).all()
    assert all(result["estimable"])
    assert result["bias_correction"] == correction
    assert result["warnings"] == []
    offered = rho_units(ready.epsilon, ready.delta)
    assert 0.99 * offered < ready.cost.rho == ready.planned.rho <= offered


@pytest.mark.slow
def test_a_mask_and_missing_values_leave_the_blocks_as_they_are() -> None:
    """The fit is that of the records in use; the number of blocks is that of all records."""
    data = people()
    data["y"] = np.where(data["x"] > 0, data["y"], -40.0)
    missing = {"m": np.arange(N) % 3 == 0}
    data["m"] = np.where(missing["m"], 0.0, data["m"])
    whole = planned(LinearRegression("y ~ x"))
    model = LinearRegression("y ~ x + m", "x > 0")
    ready = planned(model, blocks=whole.planned.part.blocks)
    result = answer(ready.planned, block_of(missing, **data))
    assert result["blocks"] == whole.planned.part.blocks
    assert abs(result["coefficients"][1] - 2) < 8 * result["standard_errors"][1] < 1
    nobody = planned(LinearRegression("y ~ x", "x > 9.9"), blocks=100)
    result = answer(nobody.planned, block_of(**people()))
    assert result["blocks"] == 100
    assert np.isfinite(result["coefficients"]).all()


@pytest.mark.slow
def test_tight_bounds_and_estimates_outside_of_them() -> None:
    fields = {"parameter_bounds": ((0.0, 1.5), (1.5, 2.5))}
    result = answer(planned(LinearRegression("y ~ x"), **fields).planned, block_of(**people()))
    assert abs(result["coefficients"][1] - 2) < 8 * result["standard_errors"][1]
    outside = {"parameter_bounds": ((5.0, 6.0), (1.5, 2.5))}
    result = answer(planned(LinearRegression("y ~ x"), **outside).planned, block_of(**people()))
    assert result["estimable"][0] is False
    assert (result["p_values"][0], result["confidence_intervals"][0]) == (None, [None, None])
    assert "Intercept" in result["warnings"][0]


def test_a_unit_of_several_rows_costs_more_noise_and_no_more_budget() -> None:
    """Asked of the kind itself: a table of persons declines it, since its errors take rows as
    independent.
    """
    query = SubsampleAggregateQuery(LinearRegression("y ~ x"), blocks=500)
    one, three = (planned_of_parts(facts_of(N, COLUMNS, m), query, offer(4.0)) for m in (1, 3))
    assert one.rho == three.rho
    assert three.part.unit_rows == 3
    assert three.forecast["noise_ratio"] > one.forecast["noise_ratio"]


@pytest.mark.slow
def test_more_noise_takes_more_blocks_and_too_few_are_told() -> None:
    rich, poor = (planned(LinearRegression("y ~ x"), e).planned for e in (20.0, 1.0))
    assert rich.part.blocks == N // 80
    assert rich.part.blocks < poor.part.blocks <= N // 16
    assert rich.forecast["notes"] == []
    little = planned(LinearRegression("y ~ x"), 0.1).planned
    assert little.forecast["notes"]
    result = answer(little, block_of(**people()))
    assert result["warnings"]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (LinearRegression("y ~ x", mechanism="influence"), {}),
        (LinearRegression("y ~ x", mechanism="gradient_descent"), {}),
        (LinearRegression("y ~ x", ridge=1.0), {}),
        (Glm("b ~ x", "binomial", tuning=1.5), {}),
        (Glm("y ~ x", "binomial"), {}),
        (Glm("y ~ x", "poisson"), {}),
        (LocationScale("nothing"), {}),
        (LocationScale("x", mechanism="influence", calibration="asymptotic"), {}),
        (LinearRegression("y ~ x"), {"blocks": 1}),
        (LinearRegression("y ~ x"), {"blocks": N // 3}),
        (LinearRegression("y ~ x"), {"parameter_bounds": ((0.0, 1.0),)}),
        (LinearRegression("y ~ x"), {"parameter_bounds": ((0.0, 1.0), (1.0, 1.0))}),
        (LinearRegression("y ~ x"), {"parameter_bounds": ((0.0, 1.0), (1.0, np.inf))}),
        (LinearRegression("y ~ x"), {"parameter_bounds": ((0.0, 1.0), (1.0, 2.0, 3.0))}),
    ],
)
def test_what_is_refused(model: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        planned(model, **fields)


def test_a_stored_query_is_the_query() -> None:
    query = SubsampleAggregateQuery(Glm("b ~ x", "binomial"), 7, ((0.0, 1.0), (2.0, 3.0)))
    stored = Ask("t", query, Privacy(1.0)).canonical()
    assert stored["query"]["model"] == {"kind": "glm"} | query_json(query.model)
    stored["query"]["parameter_bounds"] = [[0.0, 1.0], [2.0, 3.0]]
    assert Ask.from_canonical(stored).query == query


@pytest.mark.slow
def test_intervals_cover() -> None:
    """20 tables: the 95 % interval of a logistic slope covers 11 times or more (10⁻⁷ to fail at
    .95).
    """
    hits = 0
    ready = planned(Glm("b ~ x", "binomial"), 10.0, n=2000)
    for seed in range(20):
        result = answer(ready.planned, block_of(**people(seed + 100, 2000)))
        low, high = result["confidence_intervals"][1]
        hits += low <= 1.0 <= high
    assert hits >= 11
