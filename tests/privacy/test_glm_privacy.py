# SPDX-License-Identifier: Apache-2.0
"""Generalised linear models: their released sums on adversarial neighbours, along a released
path.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Compare
from reticent_server.domain.steps import CountSum, GramSum, QuantileTree, VectorSum
from reticent_server.mechanisms import noisy_sum, quantile_tree, registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.glm import TOP, planned
from support.fits.regressions import WIDE, boolean, drive, numeric, totals, whole
from support.seeds import seeded

N = 50
COLUMNS = [numeric("x0"), numeric("x1"), boolean("common"), boolean("rare")]
RHO = 5 * 10**12  # little noise: the path goes where the data send it
FAMILIES = ("binomial", "poisson", "gamma", "negative_binomial")
MOST = {"binomial": 1.0, "poisson": TOP, "gamma": TOP, "negative_binomial": TOP}


def table(seed: int, kind: Any, family: Any) -> Any:
    rng = seeded(seed)
    found = {
        "x0": rng.normal(size=N),
        "x1": rng.normal(size=N),
        "common": (rng.random(N) < 0.5).astype(float),
        "rare": (rng.random(N) < 0.05).astype(float),
    }
    match kind:
        case "separated":
            y = (found["x0"] > 0) * MOST[family]
        case "all zero":
            y = np.zeros(N)
        case "collinear":
            found["x1"] = found["x0"] * (1 + 1e-9)
            y = rng.integers(0, 2, N) * MOST[family] / 3
        case _:
            found["x0"][::7] *= WIDE / 10
            y = np.minimum(rng.poisson(np.exp(np.clip(found["x1"], -3, 3))), MOST[family])
    return found | {"y": np.floor(y) if family == "binomial" else y.astype(float)}


def extremes(family: Any) -> list[Any]:
    names = ("x0", "x1", "common", "rare", "y")
    values = product((-WIDE, 0.7, WIDE), (-1.0, 2.0), (0.0, 1.0), (0.0, 1.0), (0.0, MOST[family]))
    return [dict(zip(names, v, strict=True)) for v in values]


def neighbours(
    data: Any, family: Any, rng: np.random.Generator, rows: Any, pairs: int = 25
) -> Iterator[Any]:
    """Pairs of tables that differ in `rows` records of extreme or ordinary values."""
    records = extremes(family)
    for _ in range(pairs):
        left, right = ({k: v.copy() for k, v in data.items()} for _ in range(2))
        for position in rng.choice(N, rows, replace=False):
            for side in (left, right):
                if rng.random() < 0.8:
                    for name, value in records[rng.integers(len(records))].items():
                        side[name][position] = value
        yield whole(left), whole(right)


def distance(part: Any, a: Any, b: Any) -> Any:
    """The released statistic's difference over its sensitivity, in the mechanism's norm."""
    difference = (a - b).astype(float)
    if isinstance(part, QuantileTree):
        return float(np.abs(difference).sum()) / (2 * part.unit_rows)
    return float(np.sqrt(np.sum(difference**2))) / noisy_sum.sensitivity(part)


def worst_ratios(plan: Any, data: Any, family: Any, rng: np.random.Generator, rows: Any) -> Any:
    """By kind of part, the largest ratio over pairs and steps of one released path."""
    steps = drive(plan.run(), whole(data)).steps
    worst = {}
    for left, right in neighbours(data, family, rng, rows):
        for step in steps:
            pairs = zip(step.parts, totals(step, left), totals(step, right), strict=True)
            for part, a, b in pairs:
                worst[type(part)] = max(worst.get(type(part), 0.0), distance(part, a, b))
    return worst


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", ["separated", "all zero", "collinear", "leverage"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_pair_of_neighbours_is_farther_apart_than_the_noise_is_made_for(
    family: str, kind: str
) -> None:
    """Of persons with several rows: test_person_models_privacy."""
    rng = seeded(11)
    data = table(1, kind, family)
    worst = worst_ratios(planned(data, COLUMNS, family, RHO), data, family, rng, 1)
    assert set(worst) == {VectorSum, GramSum}
    assert max(worst.values()) <= 1


def grid(family: Any) -> Any:
    """A table of records on a grid from ordinary to extreme."""
    responses = (0.0, 1.0) if family == "binomial" else (0.0, 1.0, 30.0, TOP)
    values = product(
        (-WIDE, -3.0, 0.7, WIDE), (-WIDE, -2.0, 2.0), (0.0, 1.0), (0.0, 1.0), responses
    )
    columns = np.array(list(values)).T
    return dict(zip(("x0", "x1", "common", "rare", "y"), columns, strict=True))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_two_records_that_are_farthest_apart(family: str) -> None:
    """Of a whole grid, at every step; the first step's point is public, and there they come
    close.
    """
    data = table(1, "leverage", family)
    steps = drive(planned(data, COLUMNS, family, RHO).run(), whole(data)).steps
    ratios = [list(farthest_records(step, grid(family))) for step in steps]
    assert max(ratio for found in ratios for _, ratio in found) <= 1
    labels = [step.label for step in steps]
    assert dict(ratios[0])[GramSum] > 0.7
    assert dict(ratios[labels.index("newton step 1")])[VectorSum] > 0.55


OTHERS = {
    "no intercept": {"intercept": False},
    "where": {"where": Compare("x0", "<", 500.0)},
    "no profile": {"profile": False},
    "tuning": {"tuning": 0.8},
}


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_nor_in_other_designs(family: str, other: str) -> None:
    rng = seeded(12)
    data = table(2, "leverage", family)
    plan = planned(data, COLUMNS, family, RHO, **OTHERS[other])
    worst = worst_ratios(plan, data, family, rng, 1)
    assert (CountSum in worst) is (other in ("where", "no profile"))
    assert max(worst.values()) <= 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_a_pair_loses_at_most_its_parts_rho(family: str) -> None:
    rng = seeded(13)
    data = table(3, "leverage", family)
    plan = planned(data, COLUMNS, family, RHO)
    steps = drive(plan.run(), whole(data)).steps
    for left, right in neighbours(data, family, rng, 1, pairs=8):
        for step in steps:
            assert step_loss(step, left, right) <= registry.rho(step)


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("profile", [True, False])
def test_the_noise_of_all_parts_together_costs_what_is_charged(family: str, profile: bool) -> None:
    data = table(3, "leverage", family)
    plan = planned(
        data, COLUMNS, family, RHO, max_rows=2, profile=profile, where=Compare("x0", "<", 500.0)
    )
    trace = drive(plan.run(), whole(data))
    for step, released in zip(trace.steps, trace.released, strict=True):
        for part, value in zip(step.parts, released, strict=True):
            if isinstance(part, QuantileTree):
                assert quantile_tree.billed_rho(part) * RHO_UNITS <= part.rho
                continue
            sigma = noisy_sum.scale(part)
            assert value.sd == pytest.approx(noisy_sum.noise_sd(part))
            bill = noisy_sum.sensitivity(part) ** 2 / (2 * sigma**2)
            assert 0.99 * part.rho < bill * RHO_UNITS <= part.rho * (1 + 1e-12)
    assert 0.95 * RHO < sum(map(registry.rho, trace.steps)) == plan.rho <= RHO
    assert len(trace.steps) == plan.passes
