# SPDX-License-Identifier: Apache-2.0
"""Hypothesis tests release the parts of one fit and nothing else: attacked along restricted paths
too.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import Released
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.regressions import WIDE, drive, whole
from support.kinds.hypotheses import planned, table_of
from support.kinds.results import replied
from support.seeds import seeded

FAMILIES = ("linear", "binomial", "poisson", "gamma")
TESTS = ("wald", "score", "lr")
RHO = 5 * 10**12  # little noise: the path goes where the data send it
ENDS = {"linear": (-WIDE, WIDE), "binomial": (0.0, 1.0)}


def adversarial(kind: Any, family: Any, rng: np.random.Generator) -> Any:
    """A table that is hard on the recipe: its hypothesis is far from true, or cannot be tested."""
    table = table_of(family, 60, rng)
    match kind:
        case "far from true":
            table["y"] = np.where(table["x2"] > 0, *ENDS.get(family, (0.0, 1000.0))[::-1])
        case "collinear":
            table["x1"] = table["x2"] * (1 + 1e-9)
        case "ties":
            table["x2"], table["x1"] = np.round(table["x2"]), np.zeros(60)
        case "leverage":
            table["x2"][::7] *= WIDE / 10
    return table


def grid(family: Any) -> Any:
    """Records from ordinary to extreme."""
    ends = ENDS.get(family, (0.0, 1000.0))
    columns = np.array(list(product((-WIDE, 0.7, WIDE), (-3.0, 2.0), (-WIDE, 0.5, WIDE), ends))).T
    return dict(zip(("x0", "x1", "x2", "y"), columns, strict=True))


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("kind", "rows"), [("far from true", 1), ("collinear", 1), ("ties", 1), ("leverage", 3)]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(
    family: str, kind: str, rows: int
) -> None:
    """Of a whole grid, at every step of a restricted path (the others' are the models' own)."""
    table = adversarial(kind, family, seeded(2))
    plan = planned(table, family, "score", ["x2 = 0.3", "x0 = x1"], rho=RHO, max_rows=rows)
    steps = drive(plan.run(), whole(table)).steps
    ratios = [ratio for step in steps for _, ratio in farthest_records(step, grid(family))]
    assert max(ratios) <= 1
    assert max(ratios) > 0.4


@pytest.mark.sample(4)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_pair_of_neighbours_loses_more_than_is_charged(family: str, test: str) -> None:
    rng = seeded(0)
    table = table_of(family, 60, rng)
    plan = planned(table, family, test, ["x2 = 0.3"], rho=RHO)
    steps = drive(plan.run(), whole(table)).steps
    ends = ENDS.get(family, (0.0, 1000.0))
    worst = 0.0
    for x, y, other in product((-WIDE, 1.0, WIDE), ends, ends):
        left, right = ({k: v.copy() for k, v in table.items()} for _ in range(2))
        left["x2"][0], left["y"][0] = x, y
        right["x2"][0], right["y"][0] = -x, other
        whole_loss = 0.0
        for step in steps:
            loss = step_loss(step, whole(left), whole(right))
            assert loss <= registry.rho(step)
            whole_loss += loss
        worst = max(worst, whole_loss)
    assert 0.005 * plan.rho < worst <= plan.rho


@pytest.mark.sample(4)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_reported_is_a_function_of_what_was_released(family: str, test: str) -> None:
    """The same releases on another table give the same reply, and the same further steps."""
    table = table_of(family, 60, seeded(1))
    plan = planned(table, family, test, ["x2 = 0.3"], rho=RHO)
    trace = drive(plan.run(), whole(table))
    assert replayed(plan, trace.released) == trace.result


def replayed(plan: Any, released: Any) -> Any:
    """The recipe's result from releases that are sent again; no table is at hand."""
    recipe = plan.run()
    next(recipe)
    try:
        for values in released:
            recipe.send(tuple(Released(r.values.copy(), r.sd) for r in values))
    except StopIteration as finished:
        return replied(finished.value)
    raise AssertionError("the recipe asks for more than was released")


@pytest.mark.sample(8)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("profile", [True, False])
def test_a_test_costs_what_its_fit_costs(family: str, test: str, profile: bool) -> None:
    table = table_of(family, 60, seeded(1))
    plan = planned(table, family, test, ["x2 = 0"], profile=profile, max_rows=2)
    trace = drive(plan.run(), whole(table))
    parts = [part for step in trace.steps for part in step.parts]
    spent = sum(map(registry.rho, trace.steps))
    assert plan.rho == plan.model.rho
    if profile:
        assert spent == plan.rho
        assert len(trace.steps) == plan.passes
    else:  # less, where an own profile says that residuals have no scale
        assert 0.9 * plan.rho < spent <= plan.rho
        assert len(trace.steps) <= plan.passes
    assert all(part.unit_rows * part.person_rows == 2 for part in parts)
