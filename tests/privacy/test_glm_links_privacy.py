# SPDX-License-Identifier: Apache-2.0
"""Binomial regressions with other links, attacked: records at all angles and lengths, both
responses.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, VectorSum
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.links import planned, table
from support.fits.regressions import drive, whole
from support.seeds import seeded

RHO = 10**12
N = 400
LINKS = ("probit", "cloglog", "log")


def data_of(link: Any, seed: Any) -> Any:
    return table(seeded(seed), N, link)


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), whole(data)).steps


def records() -> Any:
    """Rows from the middle to the bounds in all directions, each with both responses."""
    values = [
        (a, b, c, y)
        for a in (-20.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 20.0)
        for b in (-3.0, -1.5, 0.0, 1.5, 3.0)
        for c in (0.0, 1.0)
        for y in (0.0, 1.0)
    ]
    return dict(zip(("x0", "x1", "x2", "y"), np.ascontiguousarray(np.array(values).T), strict=True))


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("seed", range(3))
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(link: Any, seed: Any) -> None:
    data = data_of(link, seed)
    shares = {VectorSum: 0.0, GramSum: 0.0}
    for step in steps_of(planned(data, link, RHO), data):
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            shares[kind] = max(shares.get(kind, 0.0), share)
    assert shares[VectorSum] > 0.55
    assert shares[GramSum] > 0.9


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("link", LINKS)
def test_all_steps_together_lose_no_more_than_is_charged(link: Any) -> None:
    rng, worst, pool = seeded(1), 0.0, records()
    for seed in range(6):
        data = data_of(link, seed)
        plan = planned(data, link, RHO)
        neighbour = {name: values.copy() for name, values in data.items()}
        chosen = rng.integers(len(pool["y"]))
        for name, values in neighbour.items():
            values[0] = pool[name][chosen]
        steps = steps_of(plan, data)
        assert sum(map(registry.rho, steps)) == plan.rho
        worst = max(worst, sum(step_loss(s, whole(data), whole(neighbour)) for s in steps))
    assert 0.01 * plan.rho < worst <= plan.rho
