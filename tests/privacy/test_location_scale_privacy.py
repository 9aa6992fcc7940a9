# SPDX-License-Identifier: Apache-2.0
"""Proposal 2's released sums on adversarial neighbours, along released paths."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Compare
from reticent_server.mechanisms import noisy_sum, registry
from support.attacks.privacy_losses import step_loss
from support.fits.location_scale import planned
from support.fits.regressions import WIDE, drive, whole
from support.seeds import seeded

RHO = 5 * 10**12
EXTREMES = (-WIDE, -1.0, 0.0, 0.3, 0.9, 1.1, 2.0, WIDE)


def tables() -> dict[Any, Any]:
    rng = seeded(0)
    return {
        "normal": rng.normal(size=40),
        "one record": np.array([0.4]),
        "two records": np.array([-WIDE, WIDE]),
        "constant": np.full(40, 0.3),
        "ties": np.round(rng.normal(size=40)),
    }


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("c", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("name", list(tables()))
def test_no_pair_of_neighbours_loses_more_than_is_charged(name: str, c: float) -> None:
    y = tables()[name]
    plan = planned(y, RHO, tuning=c, where=Compare("y", "<", 999.0))
    steps = drive(plan.run(), whole({"y": y})).steps
    for a, b in product(EXTREMES, repeat=2):
        left, right = y.copy(), y.copy()
        left[0], right[0] = a, b
        for step in steps:
            loss = step_loss(step, whole({"y": left}), whole({"y": right}))
            assert loss <= registry.rho(step)


@pytest.mark.parametrize("step_index", [0, -1])
@pytest.mark.parametrize("part_index", [0, 1])
def test_score_and_jacobian_attain_their_bounds_so_the_search_can_see_them(
    part_index: int, step_index: int
) -> None:
    """Two records anywhere, or one that gives none: as far apart as is charged, and never farther;
    with the meat too.
    """
    worst = 0.0
    plan = planned(np.zeros(2), RHO, tuning=1.5)
    step = drive(plan.run(), whole({"y": np.zeros(2)})).steps[step_index]
    part, around = step.parts[part_index], step.map_fn.scale * np.linspace(-1.4999, 1.4999, 65)
    points = [-WIDE, *(step.map_fn.location + around), WIDE]
    sums = [
        noisy_sum.encode(part, step.map_fn(whole({"y": np.array([v, WIDE])}))[part_index])
        for v in points
    ]
    for a, b in product(sums, repeat=2):
        distance = np.linalg.norm((a - b).astype(float))
        worst = max(worst, distance / noisy_sum.sensitivity(part))
    assert 0.999 < worst <= 1


def test_a_masked_record_is_no_farther_than_any_other() -> None:
    """In use to out of use: no farther than from one end to the other."""
    y = np.array([0.3, 0.1])
    plan = planned(y, RHO, where=Compare("y", "<", 999.0))
    step = next(plan.run())
    out = whole({"y": np.array([WIDE, 0.1])})
    for value in EXTREMES:
        here = whole({"y": np.array([value, 0.1])})
        assert step_loss(step, here, out) <= registry.rho(step)


@pytest.mark.parametrize("m", [1, 3])
def test_units_of_several_rows_and_the_total_cost(m: int) -> None:
    y = tables()["normal"][: 40 // m * m]  # a person's rows come together
    plan = planned(y, RHO, max_rows=m, profile=m == 1)
    trace = drive(plan.run(), whole({"y": y}))
    parts = [part for step in trace.steps for part in step.parts]
    assert sum(map(registry.rho, trace.steps)) == plan.rho <= RHO
    own = [step for step in trace.steps if step.label == "own profile"]  # of one row a person
    assert all(
        part.unit_rows == m for part in parts if part not in {p for s in own for p in s.parts}
    )
    left, right = y.copy(), y.copy()
    left[:m], right[:m] = WIDE, -WIDE
    for step in trace.steps:
        loss = step_loss(step, whole({"y": left}), whole({"y": right}))
        assert loss <= registry.rho(step)
    billed = noisy_sum.sensitivity(parts[-1]) ** 2 / (2 * noisy_sum.scale(parts[-1]) ** 2)
    assert billed <= parts[-1].rho / RHO_UNITS
