# SPDX-License-Identifier: Apache-2.0
"""Counts, means and the profile: right on average, honest about their error, and private."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import PROFILE_PROBABILITIES, DatasetFacts
from reticent_server.domain.private import Private
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.formula import mask_design
from reticent_server.kinds.count.plan import plan_count
from reticent_server.kinds.mean.plan import plan_mean
from reticent_server.kinds.profile.plan import plan_profile, profile_of
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import step_loss
from support.kinds.results import replied
from support.seeds import seeded

COLUMNS = (
    Column("x", ColumnKind.NUMERIC, -50, 150, (), ("NA",)),
    Column("k", ColumnKind.INTEGER, 0, 20),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"), ("?",)),
    Column("d", ColumnKind.BOOLEAN, 0, 1),
)
RHO = RHO_UNITS // 50


def facts(n: int, max_rows: int = 1) -> DatasetFacts:
    unit = Unit("person", max_rows) if max_rows > 1 else Unit()
    return DatasetFacts("t", "t", 1, "v", n, Schema(COLUMNS, unit))


def block(n: int, seed: int = 0) -> Block:
    rng = seeded(seed)
    missing = {"x": rng.random(n) < 0.2, "g": rng.random(n) < 0.1}
    columns = {
        "x": np.where(missing["x"], 0.0, rng.normal(40, 12, n)),
        "k": rng.poisson(3, n).clip(0, 20).astype(float),
        "g": np.where(missing["g"], 0.0, rng.integers(0, 3, n)).astype(float),
        "d": (rng.random(n) < 0.3).astype(float),
    }
    return Block(0, n, columns, missing)


def answer(plan: Any, data: Any) -> Any:
    """Runs a recipe on one block through the real mechanisms."""
    recipe = plan.run()
    step = next(recipe)
    while True:
        contributions = step.map_fn(data)
        released = tuple(
            registry.release(part, Private(registry.encode(part, values)))
            for part, values in zip(step.parts, contributions, strict=True)
        )
        try:
            step = recipe.send(released)
        except StopIteration as stop:
            return replied(stop.value)


def first_step(plan: Any) -> Any:
    return next(plan.run())


@pytest.mark.parametrize(("where", "truth"), [("k >= 3", 0.577), (None, 1.0), ('g == "a"', 0.3)])
def test_counts(where: str | None, truth: float) -> None:
    n = 50_000
    plan = plan_count(facts(n), mask_design((), facts(n).schema, where), RHO)
    found = answer(plan, block(n))
    assert found["standard_error"] == pytest.approx(1 / np.sqrt(2 * 0.02), rel=1e-6)
    assert found["value"] / n == pytest.approx(truth, abs=0.02)
    assert found["n"] == n


@pytest.mark.sample(4)
@pytest.mark.parametrize("where", [None, 'g != "b"'])
def test_means_cover_the_population_mean(where: str | None) -> None:
    n, hits, runs = 2000, 0, 300
    design = mask_design(("x",), facts(n).schema, where)
    for seed in range(runs):
        low, high = answer(plan_mean(facts(n), design, COLUMNS[0], RHO), block(n, seed))[
            "confidence_interval"
        ]
        hits += low <= 40.0 <= high
    assert 0.90 <= hits / runs <= 0.99


def test_a_mean_over_nobody_is_an_answer_with_a_wide_interval() -> None:
    data = block(500)
    data.missing["x"][:] = True
    design = mask_design(("x",), facts(500).schema, None)
    found = answer(plan_mean(facts(500), design, COLUMNS[0], RHO), data)
    assert np.isfinite(found["value"])
    assert found["standard_error"] > 10


def test_the_profile_finds_quantiles_counts_and_missing_cells() -> None:
    n = 40_000
    data = block(n)
    plan = plan_profile(facts(n), RHO)
    assert plan.rho <= RHO
    profile = profile_of(answer(plan, data), "rel_1")
    used = data.columns["x"][~data.missing["x"]]
    assert profile.columns["x"].quantiles == pytest.approx(
        np.quantile(used, profile.columns["x"].probabilities), abs=3.0
    )
    assert set(profile.columns["x"].probabilities) <= set(PROFILE_PROBABILITIES)
    k = profile.columns["k"]
    assert k.quantiles[k.probabilities.index(0.5)] == 3.0
    assert profile.columns["x"].missing == pytest.approx(0.2 * n, abs=500)
    assert profile.columns["g"].counts == pytest.approx([0.3 * n] * 3, abs=700)
    assert profile.columns["g"].missing == pytest.approx(0.1 * n, abs=500)
    assert profile.columns["d"].counts == pytest.approx([0.7 * n, 0.3 * n], abs=700)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("max_rows", [1, 2])
@settings(max_examples=60, deadline=None)
@given(
    x=st.floats(allow_nan=True, allow_infinity=True),
    k=st.integers(0, 20), g=st.integers(0, 2), d=st.integers(0, 1),
    x_missing=st.booleans(), g_missing=st.booleans(),
)  # fmt: skip
def test_neighbours_lose_at_most_what_is_charged(
    max_rows: int, x: Any, k: Any, g: Any, d: Any, x_missing: Any, g_missing: Any
) -> None:
    data, other = block(6), block(6)
    if max_rows > 1:  # the other person has a row less
        data.missing[ABSENT], other.missing[ABSENT] = np.zeros((2, 6), np.bool_)
        other.missing[ABSENT][max_rows - 1] = True
    for row in range(max_rows):
        new = {"x": 0.0 if x_missing else x, "k": k, "g": 0 if g_missing else g, "d": d}
        for name, value in new.items():
            other.columns[name][row] = value
        other.missing["x"][row], other.missing["g"][row] = x_missing, g_missing
    public = facts(6, max_rows)
    plans = [
        plan_count(public, mask_design((), public.schema, "k >= 3 and d == 1"), RHO),
        plan_mean(public, mask_design(("x",), public.schema, 'g == "a"'), COLUMNS[0], RHO),
        plan_mean(public, mask_design(("k",), public.schema, None), COLUMNS[1], RHO),
        plan_profile(public, RHO),
    ]
    for plan in plans:
        assert step_loss(first_step(plan), data, other) <= plan.rho
        assert plan.rho <= RHO
