# SPDX-License-Identifier: Apache-2.0
"""A weighted fit's sums, and those of a fit with an offset, on adversarial neighbours: within what
the noise is made for, and attained where a record goes from weight 0 to the largest.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.design import ColumnValue, ColumnWeight, TriangleWeight
from reticent_server.domain.steps import RunningCounts, VectorSum
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.huber import WeightedMedianResidual
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import shares
from support.fits.regressions import (
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    query,
    totals,
    whole,
)
from support.seeds import seeded

N = 60
RHO = 5 * 10**12  # little noise: the path goes where the data send it
X, W, Y, K = numeric("x", -50, 50), numeric("w", 0, 8), numeric("y", -90, 90), numeric("k", 0, 90)
EXTREMES = list(product((-50.0, 0.0, 50.0), (-5.0, 0.0, 1.0, 8.0, 900.0), (-90.0, 0.0, 90.0)))


def data() -> Any:
    rng = seeded(5)
    x, w = rng.normal(size=N), rng.uniform(0, 8, N)
    return {"x": x, "w": w, "y": x + rng.normal(size=N), "k": rng.poisson(3, N) * 1.0}


def plan(what: str) -> FitPlan[Any]:
    table, every = data(), [X, W, Y, K]
    facts = facts_of(N, every, profile_of(table, every))
    read = ("x", "y", "k", "w")
    if what == "offset":
        design = plain_design([X], K, offset=ColumnValue("w"))
        return plan_glm(facts, _reading(design, read), Glm("k ~ x", "poisson"), RHO)
    weight = TriangleWeight("x", 0.0, 2.0) if what == "kernel" else ColumnWeight("w", 8.0)
    design = _reading(plain_design([X], Y, weight=weight), read)
    loss = what if what in {"huber", "squared", "tukey"} else "huber"
    return plan_linear_regression(facts, design, query(loss=loss), RHO)


def _reading(design: Any, columns: tuple[str, ...]) -> Any:
    return replace(design, columns=columns)


def ratios(planned: FitPlan[Any]) -> dict[tuple[str, int], float]:
    """By step and place of a part, the largest change over its sensitivity."""
    table = data()
    steps = drive(planned.run(), whole(table)).steps
    records = [{"x": x, "w": w, "y": y, "k": abs(y)} for x, w, y in EXTREMES]
    worst: dict[tuple[str, int], float] = {}
    for step in steps:
        sums = [totals(step, _with(table, record)) for record in records]
        for place, part in enumerate(step.parts):
            values = np.array([np.asarray(s[place], dtype=float).ravel() for s in sums])
            apart = np.sqrt(((values[:, None] - values[None]) ** 2).sum(-1)).max()
            if isinstance(part, RunningCounts):
                continue  # tests/privacy/test_whole_scores_privacy.py
            worst[step.label, place] = float(apart) / noisy_sum.sensitivity(part)
    return worst


def _with(table: Any, record: dict[str, float]) -> Any:
    changed = {name: values.copy() for name, values in table.items()}
    for name, value in record.items():
        changed[name][0] = value
    return whole(changed)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("what", ["huber", "squared", "tukey", "kernel", "offset"])
def test_no_pair_of_records_is_farther_apart_than_the_noise_is_made_for(what: str) -> None:
    assert max(ratios(plan(what)).values()) <= 1 + 1e-12


def test_the_sum_of_weights_and_the_scale_attain_their_bounds() -> None:
    worst = ratios(plan("huber"))
    assert worst["whitening 1", 1] == pytest.approx(1, abs=1e-6)
    scales = [value for (name, _), value in worst.items() if name.startswith("residual scale")]
    assert scales
    assert max(scales) == pytest.approx(1, abs=1e-6)


def test_the_sum_of_weights_is_charged_alone() -> None:
    """It is no count of the joint vector: the step's charge has it in full."""
    planned = plan("huber")
    first = drive(planned.run(), whole(data())).steps[0]
    assert first.joint is None
    budget = planned.budget
    assert not budget.joint.used
    assert budget.rho - sum(budget.scales) >= budget.rounds[0][0] + budget.count
    assert WeightedMedianResidual().part(7, 1) == VectorSum(1, 0.5, 7, 1)


def test_a_share_is_one_at_most_whatever_the_cell() -> None:
    cells = np.array([-np.inf, -3.0, 0.0, 2.0, 8.0, 900.0, np.inf, np.nan])
    block = whole({"w": cells})
    known = [0, 0, 0, 0.25, 1, 1, 1, 0]
    np.testing.assert_array_equal(shares(ColumnWeight("w", 8.0), block), known)
    kernel = shares(TriangleWeight("w", 2.0, 4.0), block)
    np.testing.assert_array_equal(kernel, [0, 0, 0.5, 1, 0, 0, 0, 0])
