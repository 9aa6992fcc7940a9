"""Hypothesis tests release the parts of one fit and nothing else: attacked along restricted paths too."""

from itertools import product

import numpy as np
import pytest

from support_hypotheses import planned, table_of
from support_losses import step_loss
from support_newton import WIDE, drive, whole

FAMILIES = ("linear", "binomial", "poisson", "gamma")


@pytest.mark.parametrize("test", ["wald", "score", "lr"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_pair_of_neighbours_loses_more_than_is_charged(family, test):
    rng = np.random.default_rng(0)
    table = table_of(family, 60, rng)
    plan = planned(table, family, test, ["x2 = 0.3"], rho=5 * 10**12)
    steps = drive(plan.run(), whole(table)).steps
    ends = {"linear": (-WIDE, WIDE), "binomial": (0.0, 1.0)}.get(family, (0.0, 1000.0))
    for x, y, other in product((-WIDE, 1.0, WIDE), ends, ends):
        left, right = ({k: v.copy() for k, v in table.items()} for _ in range(2))
        left["x2"][0], left["y"][0] = x, y
        right["x2"][0], right["y"][0] = -x, other
        for step in steps:
            loss = step_loss(step, whole(left), whole(right))
            assert loss <= sum(part.rho for part in step.parts)


@pytest.mark.parametrize("test", ["wald", "score", "lr"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("profile", [True, False])
def test_a_test_costs_what_its_fit_costs(family, test, profile):
    table = table_of(family, 60, np.random.default_rng(1))
    plan = planned(table, family, test, ["x2 = 0"], profile=profile, max_rows=2)
    trace = drive(plan.run(), whole(table))
    parts = [part for step in trace.steps for part in step.parts]
    assert sum(part.rho for part in parts) == plan.rho == plan.model.rho
    assert len(trace.steps) == plan.passes
    assert all(part.unit_rows == 2 for part in parts)
