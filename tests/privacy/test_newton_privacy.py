# SPDX-License-Identifier: Apache-2.0
"""The regression's released sums on adversarial neighbours, before noise and along one released
path.
"""

from collections.abc import Iterator
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Compare
from reticent_server.domain.steps import CountSum, GramSum, QuantileTree, VectorSum
from reticent_server.fitting.noise import planned_sd
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.mechanisms import noisy_sum, quantile_tree, registry
from support.fits.regressions import (
    WIDE,
    boolean,
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
COLUMNS = [numeric("x0"), numeric("x1"), boolean("common"), boolean("rare")]
Y = numeric("y")
EVERY = [*COLUMNS, Y]
RHO = 5 * 10**12  # little noise: the path goes where the data send it


def table(seed: int, kind: Any) -> Any:
    rng = seeded(seed)
    found = {
        "x0": rng.normal(size=N),
        "x1": rng.normal(size=N),
        "common": (rng.random(N) < 0.5).astype(float),
        "rare": (rng.random(N) < 0.05).astype(float),
    }
    match kind:
        case "collinear":
            found["x1"] = found["x0"] * (1 + 1e-9)
        case "ties":
            found["x0"] = np.round(found["x0"])
            found["x1"] = np.zeros(N)
        case "leverage":
            found["x0"][::7] *= WIDE / 10
    noise = 0 if kind == "ties" else rng.standard_t(1.5, N)
    y = np.clip(found["x0"] - found["x1"] + noise, -WIDE, WIDE)
    return found | {"y": y}


EXTREMES = [
    dict(zip(("x0", "x1", "common", "rare", "y"), v, strict=True))
    for v in product((-WIDE, 0.7, WIDE), (-1.0, WIDE), (0.0, 1.0), (0.0, 1.0), (-WIDE, 0.0, WIDE))
]


def neighbours(data: Any, rng: np.random.Generator, rows: Any, pairs: int = 30) -> Iterator[Any]:
    """Pairs of tables that differ in `rows` records of extreme or ordinary values."""
    for _ in range(pairs):
        left = {k: v.copy() for k, v in data.items()}
        right = {k: v.copy() for k, v in data.items()}
        start = int(rng.integers(N // rows)) * rows  # the places of one person
        for position in range(start, start + rows):
            for side in (left, right):
                if rng.random() < 0.8:
                    record = EXTREMES[rng.integers(len(EXTREMES))]
                    for name, value in record.items():
                        side[name][position] = value
        yield whole(left), whole(right)


def distance(part: Any, a: Any, b: Any) -> Any:
    """The released statistic's difference over its sensitivity, in the mechanism's norm."""
    difference = (a - b).astype(float)
    if isinstance(part, QuantileTree):
        return float(np.abs(difference).sum()) / (2 * part.unit_rows)
    return float(np.sqrt(np.sum(difference**2))) / noisy_sum.sensitivity(part)


def planned(
    data: Any, *, m: int = 1, profile: bool = True, loss: str = "huber", **design: Any
) -> Any:
    released = profile_of(data, EVERY) if profile else None
    facts = facts_of(N, EVERY, released, m)
    asked = query(loss=loss)
    return plan_linear_regression(facts, plain_design(COLUMNS, Y, **design), asked, RHO)


def worst_ratios(plan: Any, data: Any, rng: np.random.Generator, rows: Any) -> Any:
    """By kind of part, the largest ratio over pairs and steps of one released path."""
    steps = drive(plan.run(), whole(data)).steps
    worst = {}
    for left, right in neighbours(data, rng, rows):
        for step in steps:
            pairs = zip(step.parts, totals(step, left), totals(step, right), strict=True)
            for part, a, b in pairs:
                kind = type(part)
                worst[kind] = max(worst.get(kind, 0.0), distance(part, a, b))
    return worst


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("loss", ["huber", "tukey"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("kind", ["plain", "collinear", "ties", "leverage"])
def test_no_pair_of_neighbours_is_farther_apart_than_the_noise_is_made_for(
    kind: str, m: int, loss: str
) -> None:
    rng = seeded(11)
    data = table(1, kind)
    worst = worst_ratios(planned(data, m=m, loss=loss), data, rng, m)
    assert set(worst) >= {VectorSum, GramSum}
    assert (CountSum in worst) is (kind != "ties" or m > 1), "lengths of persons are counted"
    assert max(worst.values()) <= 1
    if m == 1:
        assert min(worst.values()) > 0.25


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "design",
    [
        {"intercept": False},
        {"where": Compare("x0", "<", 500.0)},
        {"profile": False},
    ],
    ids=["no intercept", "where", "no profile"],
)
def test_nor_in_other_designs(design: dict[str, Any]) -> None:
    rng = seeded(12)
    data = table(2, "plain")
    worst = worst_ratios(planned(data, **design), data, rng, 1)
    assert max(worst.values()) <= 1


@pytest.mark.parametrize("profile", [True, False])
def test_the_noise_of_all_parts_together_costs_what_is_charged(profile: bool) -> None:
    data = table(3, "plain")
    plan = planned(data, m=2, profile=profile, where=Compare("x0", "<", 500.0))
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
    spent = sum(map(registry.rho, trace.steps))
    assert 0.95 * RHO < spent == plan.rho <= RHO
    assert spent < sum(part.rho for step in trace.steps for part in step.parts)


def test_released_noise_has_the_size_that_the_covariance_counts() -> None:
    """Gradient 2RK/√(2ρ), Jacobian and whitening √2R²/√(2ρ), meat √2R²K²/√(2ρ), a count 1/√(2ρ), up
    to the granule.
    """
    data = table(4, "plain")
    plan = planned(data)
    trace = drive(plan.run(), whole(data))
    R2, q, K = plan.sizes.radius_squared, plan.sizes.size, 1.345
    whitening, radius = trace.steps[0].parts[0], plan.budget.rounds[0][1] * q
    sizes = [(whitening, trace.released[0][0], sqrt(2) * radius)]
    last = zip(trace.steps[-1].parts, trace.released[-1], strict=True)
    clips = (2 * sqrt(R2) * K, sqrt(2) * R2, sqrt(2) * R2 * K**2)
    sizes += [(part, found, clip) for (part, found), clip in zip(last, clips, strict=True)]
    scale = next(k for k, step in enumerate(trace.steps) if "scale" in step.label)
    sizes.append((trace.steps[scale].parts[0], trace.released[scale][0], 1.0))
    for part, found, clip in sizes:
        assert found.sd == pytest.approx(clip / sqrt(2 * part.rho / RHO_UNITS), rel=1e-3)
        assert planned_sd(part) == pytest.approx(found.sd, rel=1e-3)
