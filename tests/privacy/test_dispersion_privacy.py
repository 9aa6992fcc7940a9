# SPDX-License-Identifier: Apache-2.0
"""A negative binomial whose dispersion is estimated, attacked: counts from 0 to the bounds, at
predictors of all sizes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import VectorSum, multiplied
from reticent_server.kinds.glm.dispersion_score import DispersionScore, planned_cut
from reticent_server.kinds.glm.estimated_dispersion import DispersionMap
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.dispersion import estimated, made_up
from support.fits.regressions import drive, totals, whole
from support.seeds import seeded

RHO, N = 10**12, 400


def steps_of(seed: int, **more: Any) -> Any:
    table = made_up(N, seeded(seed))
    return table, drive(estimated(table, RHO, **more).run(), whole(table)).steps


def records() -> Any:
    """Counts at and beyond what a fit expects, with regressors from the middle to the bounds."""
    grid = [
        (a, b, 0.0, y, weight)
        for a in (-1000.0, -4.0, 0.0, 4.0, 1000.0)
        for b in (-3.0, 3.0)
        for y in (0.0, 5.0, 1000.0)
        for weight in (1.0, 2.0)
    ]
    columns = np.ascontiguousarray(np.array(grid).T)
    return dict(zip(("x0", "x1", "x2", "y", "a"), columns, strict=True))


@pytest.mark.slow
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for() -> None:
    """Of the steps that other families do not have: α's between steps, and the last one."""
    _, steps = steps_of(0, weights="a")
    steps = [s for s in steps if s.label == "dispersion" or s.label.startswith("residual")]
    largest: dict[str, float] = {}
    for step in steps:
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            if kind is VectorSum:
                largest[step.label] = max(largest.get(step.label, 0.0), share)
    assert largest["dispersion"] > 0.5
    assert min(v for k, v in largest.items() if k.startswith("residual")) > 0.2


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("alpha", [0.01, 0.5, 20.0])
def test_the_bound_of_the_score_is_attained_and_not_exceeded(alpha: float) -> None:
    """At every α that a step may come to, and every count and mean; the spread's two entries
    likewise.
    """
    _, steps = steps_of(1)
    last = steps[-1]
    assert isinstance(last.map_fn, DispersionMap)
    law = DispersionScore(alpha, planned_cut(alpha, 0.5, 1000.0), 1000.0)
    assert law.bound <= 2 * law.cut
    y, eta = (
        v.ravel()
        for v in np.meshgrid(np.geomspace(1, 1001, 40) - 1, np.linspace(-12, np.log(2000.0), 200))
    )
    chi = law.value(y, eta)
    assert 0.9 * law.bound < np.abs(chi).max() <= law.bound * (1 + 1e-9)
    assert 0.99 * law.most < law.slope(eta).max() <= law.most * (1 + 1e-9)
    found = replace(last.map_fn, score=law)(whole(records()))
    for contribution, clip in zip(found, (law.bound, np.sqrt(2)), strict=True):
        assert np.sqrt((multiplied(contribution) ** 2).sum(axis=0)).max() <= clip * (1 + 1e-9)


@pytest.mark.slow
def test_records_that_are_not_in_use_contribute_nothing() -> None:
    _, steps = steps_of(2, where="x1 > 0", weights="a")
    pool = records()
    outside = {name: values[pool["x1"] <= 0] for name, values in pool.items()}
    for contribution in steps[-1].map_fn(whole(outside)):
        assert not contribution.any()


@pytest.mark.slow
def test_sums_do_not_depend_on_the_blocks() -> None:
    table, steps = steps_of(3)
    cut = [totals(steps[-1], whole(table), rows) for rows in (N, 37)]
    assert all(np.array_equal(a, b) for a, b in zip(*cut, strict=True))


@pytest.mark.slow
def test_all_steps_together_lose_no_more_than_is_charged() -> None:
    pool, worst = records(), 0.0
    for seed in range(2):
        table = made_up(N, seeded(seed))
        plan = estimated(table, RHO)
        neighbour = {name: values.copy() for name, values in table.items()}
        for name, values in neighbour.items():
            values[0] = pool[name][-1 - seed]
        steps = drive(plan.run(), whole(table)).steps
        assert plan.rho * (1 - 1e-6) <= sum(map(registry.rho, steps)) <= plan.rho
        worst = max(worst, sum(step_loss(s, whole(table), whole(neighbour)) for s in steps))
    assert 0.01 * plan.rho < worst <= plan.rho
