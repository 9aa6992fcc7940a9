# SPDX-License-Identifier: Apache-2.0
"""Quantile regression, attacked: records at all angles and lengths, responses on both sides of the
kernel.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, VectorSum
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.quantile_regression import planned, table
from support.fits.regressions import drive, whole
from support.seeds import seeded

RHO = 10**11
N = 400


def data_of(seed: int) -> Any:
    return table(seeded(seed), N, lambda rng, n: rng.standard_t(3, size=n))


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), whole(data)).steps


def records() -> Any:
    """Persons at all angles of the two regressors and lengths up to the bounds, responses from
    below to far above.
    """
    angles, lengths = np.linspace(0, 2 * np.pi, 13), (0.0, 0.3, 1.0, 3.0, 20.0)
    x = np.array([(r * np.cos(a), r * np.sin(a)) for a in angles for r in lengths])
    y = (-60.0, -3.0, 0.0, 0.7, 1.0, 1.4, 3.0, 60.0)
    grid = np.array([(*row, each) for row in x for each in y]).T
    return dict(zip(("x0", "x1", "y"), np.ascontiguousarray(np.clip(grid, -60, 60)), strict=True))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("tau", [0.05, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.audit) for k in (1, 2))])
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(tau: float, seed: int) -> None:
    data = data_of(seed)
    shares = {VectorSum: 0.0, GramSum: 0.0}
    for step in steps_of(planned(data, (tau,), RHO), data):
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            shares[kind] = max(shares.get(kind, 0.0), share)
    # Between two sides of the kernel q moves by 1.07, of 2 max(τ, 1 − τ) + .07 that the noise is
    # made for.
    assert shares[VectorSum] > 0.9 * 1.07 / (2 * max(tau, 1 - tau) + 0.07)
    assert shares[GramSum] > 0.9


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("taus", [(0.5,), (0.25, 0.75)])
def test_all_steps_together_lose_no_more_than_is_charged(taus: tuple[Any, ...]) -> None:
    rng, worst, pool = seeded(1), 0.0, records()
    for seed in range(8):
        data = data_of(seed)
        plan = planned(data, taus, RHO)
        neighbour = {name: values.copy() for name, values in data.items()}
        chosen = rng.integers(len(pool["y"]))
        for name, values in neighbour.items():
            values[0] = pool[name][chosen]
        steps = steps_of(plan, data)
        assert sum(map(registry.rho, steps)) == plan.rho
        worst = max(worst, sum(step_loss(s, whole(data), whole(neighbour)) for s in steps))
    assert 0.02 * plan.rho < worst <= plan.rho
