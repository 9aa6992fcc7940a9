# SPDX-License-Identifier: Apache-2.0
"""Degenerate designs through planning, the engine and the mechanisms: an answer with honest flags.

Never an exception, never another status, and the reply is the JSON that a good design would get.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.pipeline.forecasts import forecast_json
from support.fits.regressions import facts_of, profile_of
from support.seeds import seeded

N = 2_000
COLUMNS = (
    Column("y", ColumnKind.NUMERIC, -50, 50),
    Column("x", ColumnKind.NUMERIC, -5, 5),
    Column("twice", ColumnKind.NUMERIC, -10, 10),
    Column("flat", ColumnKind.NUMERIC, 0, 10),
    Column("rare", ColumnKind.BOOLEAN, 0, 1),
    Column("never", ColumnKind.BOOLEAN, 0, 1),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, ("u", "v", "w")),
)
KEYS = {"coefficients", "covariance", "estimable", "confidence_intervals", "warnings", "p_values"}


def table(n: Any = N, seed: int = 0) -> dict[Any, Any]:
    rng = seeded(seed)
    x = np.clip(rng.normal(size=n), -5, 5)
    arrays = {
        "x": x,
        "twice": 2 * x,
        "flat": np.full(n, 3.0),
        "rare": (np.arange(n) == 1).astype(float),
        "never": np.zeros(n),
        "g": np.zeros(n),
    }
    return {"y": np.clip(1 + 2 * x + rng.normal(size=n), -50, 50), **arrays}


class Served:
    """A table with its profile, and one query at a time on an engine."""

    def __init__(self, arrays: Any, *, profile: bool = True) -> None:
        self.arrays, self.n = arrays, len(arrays["y"])
        known = profile_of(arrays, COLUMNS[:-1], {"g": 3}) if profile else None
        facts = facts_of(self.n, [], known)
        self.facts = replace(facts, schema=Schema(COLUMNS))

    def batches(self, columns: Any) -> Iterator[Any]:
        yield Private(pa.RecordBatch.from_pydict({k: pa.array(self.arrays[k]) for k in columns}))

    def confirm(self, reservation: Any) -> bool:
        return True

    def answer(self, query: Any, epsilon: Any) -> Any:
        engine = LocalEngine(lambda _: self, self, cache_bytes=1 << 24, threads=1, block_rows=1024)
        plan = planning.plan(self.facts, query, Privacy(epsilon, 1e-6))
        reply = engine.execute(plan, Reservation("rel", "version", plan.cost, ""))
        engine.close()
        assert reply.status == "reply"
        json.dumps(reply.result, allow_nan=False)
        return reply.result


FORMULAS = {
    "collinear": "y ~ x + twice",
    "constant": "y ~ x + flat",
    "one record of a dummy": "y ~ x + rare",
    "a dummy that is never one": "y ~ x + never",
    "a factor with one level": "y ~ x + g",
    "nothing but degenerate": "y ~ 0 + flat + never",
    "a polynomial of a constant": "y ~ poly(flat, 3)",
    "a polynomial and its column": "y ~ x + poly(x, 2)",
    "two bases of one column": "y ~ poly(x, 3) + bs(x, knots=[])",
    "a spline where there are no records": "y ~ bs(x, knots=[4.5, 4.75, 4.9])",
    "a spline of a rare dummy": "y ~ bs(rare, knots=[.5], degree=1)",
    "a basis within a rare level": "y ~ poly(x, 2):g",
}
MASKS = {"all": None, "nobody": "x > 4.99", "hardly anybody": "rare == 1"}


@pytest.mark.sample(12)
@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_every_degenerate_design_is_answered(formula: str) -> None:
    for epsilon, profile in ((0.05, True), (50.0, False)):
        result = Served(table(), profile=profile).answer(LinearRegression(formula), epsilon)
        assert set(result) >= KEYS
        flagged = [not ok for ok in result["estimable"]]
        assert [p is None for p in result["p_values"]] == flagged
        assert [i == [None, None] for i in result["confidence_intervals"]] == flagged


@pytest.mark.sample(6)
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("n", [1, 4, N])
def test_few_records_and_empty_masks_are_answered(n: int, mask: str | None) -> None:
    served = Served({k: v[:n] for k, v in table().items()})
    formula = "y ~ poly(x, 2) + bs(twice, knots=[0], degree=1)"
    assert set(served.answer(LinearRegression(formula, where=mask), 20.0)) >= KEYS


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_every_degenerate_design_has_a_forecast(formula: str) -> None:
    plan = planning.plan(Served(table()).facts, LinearRegression(formula), Privacy(1.0, 1e-6))
    json.dumps(dict(plan.planned.forecast), allow_nan=False)


def test_degenerate_designs_have_an_epsilon_for_a_target() -> None:
    for formula in ("y ~ x + never", "y ~ 0 + flat + never", "y ~ poly(flat, 3)"):
        plan = planning.plan(Served(table()).facts, LinearRegression(formula), Privacy(1.0, 1e-6))
        json.dumps(forecast_json(plan), allow_nan=False)


@pytest.mark.audit
def test_at_a_large_epsilon_the_flags_are_right() -> None:
    """But by chance: noise passes for information some times in a hundred."""
    cases = {
        "y ~ x + twice": [True, False, False],
        "y ~ x + flat": [False, True, False],
        "y ~ x + never": [True, True, False],
        "y ~ poly(x, 1)": [True, True],
        "y ~ bs(x, knots=[0], degree=1)": [True, True, True],
    }
    for formula, expected in cases.items():
        served = Served(table(20_000))
        found = [served.answer(LinearRegression(formula), 50.0)["estimable"] for _ in range(12)]
        assert sum(f == expected for f in found) >= 7, formula


def test_a_polynomial_finds_a_curve() -> None:
    arrays = table(20_000)
    t = arrays["x"] / 5
    arrays["y"] = np.clip(1 + 10 * t + 6 * (3 * t**2 - 1) / 2 + 0.1 * t, -50, 50)
    result = Served(arrays).answer(LinearRegression("y ~ poly(x, 2)"), 20.0)
    assert all(result["estimable"])
    assert result["coefficients"] == pytest.approx([1, 10.1, 6], abs=0.3)


def test_tests_of_degenerate_terms_are_answered() -> None:
    for test in ("wald", "score", "lr"):
        query = HypothesisTest("y ~ x + flat + poly(twice, 2)", ("flat = 0",), test)
        assert "statistic" in json.dumps(Served(table()).answer(query, 4.0))
