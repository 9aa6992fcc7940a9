# SPDX-License-Identifier: Apache-2.0
"""Hazard regression, attacked: persons of all risks, with every pattern of entry, exit and
event.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, Scaled, VectorSum, multiplied
from reticent_server.kinds.hazard_regression.maps import BaselineMap, ExposureMap, HazardMap
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.hazards import FORMULA, persons, planned
from support.fits.regressions import drive, whole

RHO = 10**11
N = 400
LATE = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")
MAPS = (ExposureMap, BaselineMap, HazardMap)


FAR = (-700.0, -3.0, 0.0, 3.0, 700.0)  # offsets, those beyond the declared bounds among them


def data_of(seed: Any, offset: float = 0.0) -> Any:
    return persons(np.random.default_rng(seed), N, late=0.4, offset=offset)


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), whole(data)).steps


def records(
    times: Any = (0.3, 2.0, 5.0, 11.0, 12.0),
    starts: Any = (0.0, 4.0, 10.9),
    ages: Any = (-6.0, -2.0, 0.0, 2.0, 6.0),
    doses: Any = (0.0, 1.0, 12.0),
    offsets: Any = (0.0,),
) -> Any:
    """Persons far along each regressor and in the middle; late and early entry and exit, with and
    without the event.
    """
    grid = product(times, (0.0, 1.0), starts, ages, doses, (0.0, 1.0), offsets)
    names = ("t", "e", "s", "age", "dose", "arm", "o")
    return dict(zip(names, np.ascontiguousarray(np.array(list(grid)).T), strict=True))


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize(("seed", "offset"), [(0, None), (1, None), (2, "o")])
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(
    seed: Any, offset: Any
) -> None:
    data = data_of(seed, 1.0 if offset else 0.0)
    shares = {VectorSum: 0.0, GramSum: 0.0}
    pool = (
        records((0.3, 12.0), (0.0, 4.0), (-6.0, 0.0, 2.0), offsets=FAR[1:]) if offset else records()
    )
    for step in steps_of(planned(data, RHO, LATE, offset=offset), data):
        for kind, share in farthest_records(step, pool):
            assert share <= 1
            shares[kind] = max(shares.get(kind, 0.0), share)
    # What a person's baseline adds to the norm cannot be turned about as the regressors' part can.
    assert shares[VectorSum] > 0.7
    assert shares[GramSum] > 0.9


def norms(step: Any, pool: Any) -> Any:
    """(largest ‖·‖ over the bound) of the records' contributions, part by part, before anything is
    scaled down.
    """
    found = step.map_fn(whole(pool))
    for part, contribution in zip(step.parts, found, strict=True):
        yield float(np.sqrt((multiplied(contribution) ** 2).sum(axis=0)).max()) / part.clip


def elsewhere(step: Any, rng: Any, slope: Any) -> Any:
    """The step at other hazards and slopes, as noise might lead there."""
    if isinstance(step.map_fn, ExposureMap):
        return step
    here = step.map_fn.point
    hazards = 10 ** rng.uniform(-2, 1, len(here.hazards))
    moved = replace(here, beta=slope * rng.normal(size=3), hazards=hazards)
    return replace(step, map_fn=replace(step.map_fn, point=moved))


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize(("stop", "offset"), [(1.0, None), (2.5, None), (1.5, "o")])
def test_each_bound_is_attained_and_not_exceeded(stop: Any, offset: Any) -> None:
    """Whatever noise has led the fit to: at hazards from low to high and slopes in all directions
    the proofs' bounds are the largest norms. Times are fine, so that some person's cumulative
    hazard is just below where follow-up stops, and ages, so that some person's length is the
    radius.
    """
    rng, largest = np.random.default_rng(3), {}
    fine = tuple(np.linspace(0.02, 12.0, 120))
    pools: tuple[Any, ...] = (
        records(fine, (0.0, 1.0, 4.0, 8.0, 10.9)),
        records((0.5, 12.0), (0.0, 11.0), tuple(np.linspace(-6, 6, 601)), (0.0, 1.0)),
    )
    if offset:
        pools = (*pools, records(fine[::4], (0.0, 8.0), (-2.0, 0.0, 2.0), (0.0, 1.0), FAR))
    data = data_of(0, 1.0 if offset else 0.0)
    cuts = tuple(np.linspace(1.5, 12.0, 8)) if offset else None  # enough for a curve of means
    plan = replace(planned(data, RHO, LATE, cuts, offset=offset), stop=stop)
    steps = [step for step in steps_of(plan, data) if isinstance(step.map_fn, MAPS)]
    for trial in range(12):
        for step in (elsewhere(step, rng, trial / 6) for step in steps):
            shares = np.max([list(norms(step, pool)) for pool in pools], axis=0)
            assert max(shares) <= 1 + 1e-9
            largest[step.label] = np.maximum(largest.get(step.label, 0.0), shares)
    assert set(largest) == {"exposure", "score 1", "baseline", "score 2"}
    assert min(map(min, largest.values())) > 0.98


def test_records_that_are_not_in_use_contribute_nothing() -> None:
    data = data_of(0)
    plan = planned(data, RHO, LATE, where="arm == 1")
    everybody = records()
    outside = {name: values[everybody["arm"] == 0] for name, values in everybody.items()}
    for step in steps_of(plan, data):
        for contribution in step.map_fn(whole(outside)):
            used = contribution if isinstance(contribution, Scaled) else np.atleast_2d(contribution)
            values = used.weights if isinstance(used, Scaled) else used
            assert not values[
                values != -1
            ].any()  # −1: the code of a count's record that is not counted


@pytest.mark.slow
def test_units_of_several_rows_lose_no_more_than_is_charged() -> None:
    """All rows of a unit are one extreme record, then another."""
    data, rng = data_of(0), np.random.default_rng(2)
    pool, m, worst = records(), 3, 0.0
    steps = steps_of(planned(data, RHO, LATE, max_rows=m), data)
    for step in steps:
        for _ in range(80):
            pair = rng.integers(len(pool["t"]), size=2)
            one, other = (whole({k: np.repeat(v[i], m) for k, v in pool.items()}) for i in pair)
            share = step_loss(step, one, other) / registry.rho(step)
            assert share <= 1
            worst = max(worst, share)
    assert worst > 0.3


@pytest.mark.sample(2)
@pytest.mark.parametrize("m", [1, 3])
def test_all_steps_together_lose_no_more_than_is_charged(m: Any) -> None:
    rng, worst, pool = np.random.default_rng(1), 0.0, records()
    for seed in range(6):
        data = data_of(seed)
        plan = planned(data, RHO, LATE, max_rows=m)
        neighbour = {name: values.copy() for name, values in data.items()}
        for row, chosen in enumerate(rng.integers(len(pool["t"]), size=m)):
            for name, values in pool.items():
                neighbour[name][row] = values[chosen]
        steps = steps_of(plan, data)
        # Units of rows have records out of use, whose number costs nothing beside the first Gram
        # matrix.
        assert 0.97 * plan.rho < sum(map(registry.rho, steps)) <= plan.rho
        worst = max(worst, sum(step_loss(s, whole(data), whole(neighbour)) for s in steps))
    assert 0.01 * plan.rho < worst <= plan.rho
