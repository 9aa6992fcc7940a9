# SPDX-License-Identifier: Apache-2.0
"""Cox's partial likelihood, attacked: persons of all risks, with every pattern of entry, exit and
event, at the fit's own places and at places where noise might lead it.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import (
    GramSum,
    RunningCounts,
    Scaled,
    SumStep,
    VectorSum,
    multiplied,
)
from reticent_server.kinds.hazard_regression.partial_score import PersonCellsMap, PersonsMap
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.hazards import COLUMNS, FORMULA, GROUP, persons, planned_partial
from support.fits.regressions import drive, whole
from support.seeds import seeded

RHO = 10**11
N = 400
TEST = "proportional hazards"  # the step's label
LATE = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")


STRATA = [*COLUMNS, GROUP]


def data_of(seed: Any) -> Any:
    return persons(seeded(seed), N, late=0.4, strata=3)


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), whole(data)).steps


def records() -> Any:
    """Persons far along each regressor and in the middle; late and early, with and without the
    event.
    """
    grid = product(
        (0.0, 0.3, 5.0, 12.0),
        (0.0, 1.0),
        (0.0, 4.0, 12.0),
        (-6.0, 0.0, 6.0),
        (0.0, 12.0),
        (0, 1),
        (0.0, 2.0),
    )
    names = ("t", "e", "s", "age", "dose", "arm", "g")
    table = dict(zip(names, np.ascontiguousarray(np.array(list(grid), dtype=float)).T, strict=True))
    return {name: np.ascontiguousarray(values) for name, values in table.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robust", "strata", "bins"), [(False, None, 3), (True, None, 0), (False, "g", 3)]
)
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(
    robust: bool, strata: str | None, bins: int
) -> None:
    """A search over pairs: each primitive's bound holds, and is attained where scores are long.
    With strata pairs are of one stratum and of two.
    """
    data = data_of(0)
    shares: dict[Any, float] = {}
    plan = planned_partial(data, RHO, LATE, robust=robust, strata=strata, columns=STRATA, bins=bins)
    for step in steps_of(plan, data):
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            name = step.label if step.label == TEST else kind
            shares[name] = max(shares.get(name, 0.0), share)
    assert bins == 0 or shares[TEST] > 0.9
    assert shares[VectorSum] > 0.9
    assert shares[GramSum] > 0.9
    assert shares[RunningCounts] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("m", "strata"), [(1, None), (3, None), (1, "g")])
def test_all_steps_together_lose_no_more_than_is_charged(m: int, strata: str | None) -> None:
    data, pool, rng = data_of(1), records(), seeded(1)
    plan = planned_partial(data, RHO, LATE, max_rows=m, strata=strata, columns=STRATA, bins=4)
    neighbour = {name: values.copy() for name, values in data.items()}
    for row, chosen in enumerate(rng.integers(len(pool["t"]), size=m)):
        for name, values in pool.items():
            neighbour[name][row] = values[chosen]
    steps = steps_of(plan, data)
    assert {part.unit_rows for step in steps for part in step.parts} == {m}
    assert 0.97 * plan.rho < sum(map(registry.rho, steps)) <= plan.rho <= RHO
    lost = sum(step_loss(s, whole(data), whole(neighbour)) for s in steps)
    assert 0.001 * plan.rho < lost <= plan.rho


def moved(step: SumStep, scale: float) -> SumStep:
    """The step at coefficients and hazards far from the fit's, whatever noise led there."""
    here = step.map_fn
    assert isinstance(here, PersonsMap)
    point = replace(here.point, theta=scale * np.array([1.0, -1.0, 1.0]))
    known = replace(here.known, hazards=here.known.hazards * 10**scale, stop=np.inf)
    return replace(step, map_fn=replace(here, point=point, known=known))


@pytest.mark.slow
@pytest.mark.parametrize("strata", [None, "g"])
def test_the_bounds_hold_wherever_noise_leads(strata: str | None) -> None:
    """Scores a thousand times as long as the cut lose no more than one that is as long."""
    data, pool = data_of(2), whole(records())
    plan = planned_partial(data, RHO, LATE, strata=strata, columns=STRATA, bins=2)
    steps = steps_of(plan, data)
    long = 0.0
    for step in (moved(s, 3.0) for s in steps if isinstance(s.map_fn, PersonsMap)):
        for part, contribution in zip(step.parts, step.map_fn(pool), strict=True):
            if isinstance(part, VectorSum):
                lengths = np.linalg.norm(multiplied(contribution), axis=0)
                long = max(long, float(np.nanmax(lengths)) / part.clip)
        assert all(share <= 1 for _, share in farthest_records(step, records()))
    assert long > 100


@pytest.mark.slow
@pytest.mark.parametrize("strata", [None, "g"])
def test_a_record_is_in_one_cell_of_each_part(strata: str | None) -> None:
    """Of its stratum, if it is in use; those of no stratum are in none."""
    data, pool = data_of(3), records()
    plan = planned_partial(data, RHO, LATE, strata=strata, columns=STRATA, bins=3)
    steps = steps_of(plan, data)
    (step,) = [s for s in steps if isinstance(s.map_fn, PersonCellsMap)]
    codes = step.map_fn(whole(pool))
    for part, code in zip(step.parts, codes, strict=True):
        assert isinstance(part, RunningCounts)
        inside = code >= 0
        assert inside.any()
        of = code[inside] // (part.length * part.lines // (3 if strata else 1))
        assert np.array_equal(of, pool["g"][inside] if strata else 0 * of)
    for outside in (-1.0, 3.0, np.nan) if strata else ():
        nowhere = pool | {"g": np.full_like(pool["g"], outside)}
        for map_fn in (s.map_fn for s in steps):
            if isinstance(map_fn, PersonCellsMap | PersonsMap):
                for contribution in map_fn(whole(nowhere)):
                    values = multiplied(contribution)
                    assert not values[values != -1].any()
    for part, code in zip(step.parts, codes, strict=True):
        assert isinstance(part, RunningCounts)
        assert np.asarray(code).ndim == 1
        assert (np.asarray(code) >= -1).all()
        assert (np.asarray(code) < part.bins).all()


@pytest.mark.slow
def test_records_that_are_not_in_use_contribute_nothing() -> None:
    """Those outside `where`, and those who leave before they come."""
    data, everybody = data_of(0), records()
    formula = LATE.replace(" + arm", "")
    plan = planned_partial(data, RHO, formula, where="arm == 1", bins=3)
    steps = steps_of(plan, data)
    for gone in (everybody["arm"] == 0, everybody["s"] >= everybody["t"]):
        outside = {name: np.ascontiguousarray(v[gone]) for name, v in everybody.items()}
        for step in steps:
            if not isinstance(step.map_fn, PersonsMap | PersonCellsMap):
                continue
            for contribution in step.map_fn(whole(outside)):
                values = multiplied(contribution)
                assert not values[values != -1].any()


@pytest.mark.slow
@pytest.mark.parametrize("strata", [None, "g"])
def test_a_record_is_the_same_in_any_block(strata: str | None) -> None:
    """Bit by bit: sums of integers must not depend on how the table is cut."""
    data = data_of(4)
    plan = planned_partial(data, RHO, LATE, strata=strata, columns=STRATA, bins=3)
    for step in steps_of(plan, data):
        if isinstance(step.map_fn, PersonsMap):
            one = {name: np.ascontiguousarray(v[7:8]) for name, v in data.items()}
            pairs = zip(step.map_fn(whole(data)), step.map_fn(whole(one)), strict=True)
            for many, alone in pairs:
                a = multiplied(many) if isinstance(many, Scaled) else np.asarray(many)
                b = multiplied(alone) if isinstance(alone, Scaled) else np.asarray(alone)
                assert np.array_equal(np.atleast_2d(a)[:, 7:8], np.atleast_2d(b))
