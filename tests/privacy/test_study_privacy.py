# SPDX-License-Identifier: Apache-2.0
"""A study's released sums on adversarial neighbours: each part, and all of them together, along
released paths.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum
from reticent_server.kinds.study.kind import Study
from reticent_server.mechanisms import noisy_sum
from support.fits.regressions import drive, totals
from support.kinds.studies import boolean, factor, numeric, planned, whole
from support.seeds import seeded

N = 60
COLUMNS = [
    numeric("y"),
    numeric("x"),
    boolean("b"),
    factor("g", "ac"),
    replace(factor("m", "de"), missing=("NA",)),
]
PLAIN = Study(("y", "x", "b", "I(x**2)"))
MAIN = Study(("y", "x", "b"), main="y ~ x + b")
BY = Study(("y", "x", "b"), main="y ~ x", by="g", where="x < 900")
FILLED = Study(("y", "x", "b", "m"), main="y ~ x + m", missing="indicator")
QUERIES = {"plain": PLAIN, "main": MAIN, "by": BY, "filled": FILLED}
EPSILON = 30  # little noise: the path goes where the data send it


def table(kind: Any) -> Any:
    rng = seeded(4)
    x = rng.normal(size=N)
    found = {"x": x, "b": (rng.random(N) < 0.3) * 1.0, "g": np.arange(N) % 2 * 1.0}
    match kind:
        case "collinear":
            y = 2 * x
        case "one row":
            found = {name: np.full(N, values[0]) for name, values in found.items()}
            y = np.full(N, 3.0)
        case "leverage":
            found["x"][::9] *= 900
            y = x + rng.standard_t(1.5, N)
        case "not numbers":
            y = np.where(np.arange(N) % 5 == 0, np.nan, x)
            found["x"][3::7] = np.inf
        case "whitening":
            # one direction for the first round and another one, hidden by it, for the second
            found["x"] = np.where(np.arange(N) < 6, 1e3, 1e-3 * x)
            y = np.where(np.arange(N) < 6, 1e3, -1e-3 * x) + 1e-6 * rng.normal(size=N)
        case "empty":
            found = {name: np.zeros(N) for name in found}
            y = np.full(N, np.nan)
        case _:
            y = 1 + x + rng.normal(size=N)
    return found | {"y": y, "m": np.arange(N) % 2 * 1.0}


def gaps(data: Any) -> Any:
    """Cells of m that are missing: a value of 2 in the table stands for one."""
    return {"m": data["m"] == 2}


EXTREMES = [
    dict(zip(("x", "y", "b", "g", "m"), v, strict=True))
    for v in product(
        (-1e3, 0.1, 1e3, np.nan), (-1e3, 0.0, 1e3, np.inf), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0, 2.0)
    )
]


def neighbours(data: Any, rows: Any, pairs: Any) -> Iterator[Any]:
    """Pairs that differ in one person: consecutive places, as sums over persons take them."""
    rng = seeded(5)
    for _ in range(pairs):
        sides = [{k: v.copy() for k, v in data.items()} for _ in range(2)]
        for position in rows * rng.integers(N // rows) + np.arange(rows):
            for side in sides:
                record = EXTREMES[rng.integers(len(EXTREMES))]
                for name, value in record.items():
                    side[name][position] = value
        yield tuple(whole(side, gaps(side)) for side in sides)


def distance(part: Any, a: Any, b: Any) -> Any:
    """The difference of a statistic over its sensitivity, in the mechanism's norm."""
    difference = (a - b).astype(float)
    return float(np.sqrt(np.sum(difference**2))) / noisy_sum.sensitivity(part)


def ratios(query: Any, data: Any, rows: Any, pairs: int = 25) -> Iterator[Any]:
    """For each pair, (part, distance) along one released path."""
    plan = planned(data, COLUMNS, query, EPSILON, m=rows)
    steps = drive(plan.run(), whole(data, gaps(data))).steps
    for left, right in neighbours(data, rows, pairs):
        yield [
            (part, distance(part, a, b))
            for step in steps
            for part, a, b in zip(step.parts, totals(step, left), totals(step, right), strict=True)
        ]


@pytest.mark.sample(16)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "kind", ["plain", "collinear", "one row", "leverage", "not numbers", "whitening", "empty"]
)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_no_pair_of_neighbours_is_farther_apart_than_the_noise_is_made_for(
    query: Any, kind: str, rows: int
) -> None:
    """Each part within its Δ, and all releases of a pair together within the plan's ρ."""
    data = table(kind)
    rho = planned(data, COLUMNS, query, EPSILON, m=rows).rho
    worst = 0.0
    for pair in ratios(query, data, rows):
        assert max(ratio for _, ratio in pair) <= 1
        worst = max(worst, sum(ratio**2 * part.rho for part, ratio in pair))
    assert worst <= rho


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_search_attains_the_bounds_that_it_guards(query: Any) -> None:
    worst = {}
    for pair in ratios(query, table("plain"), 1, 200):
        for k, (_, ratio) in enumerate(pair):
            worst[k] = max(worst.get(k, 0.0), ratio)
    parts = [part for part, _ in next(iter(ratios(query, table("plain"), 1, 1)))]
    moments = parts[:-1] if query.main else parts
    grams = [worst[k] for k, part in enumerate(moments) if isinstance(part, GramSum)]
    counts = [worst[k] for k, part in enumerate(parts) if isinstance(part, CountSum)]
    assert min(grams) > 0.9
    assert min(counts) > 0.999


def test_scores_attain_theirs_where_the_radius_lets_them() -> None:
    """Scores are ½R² long at the most; with a wide radius the part's own clip is what bounds
    them.
    """
    data = table("plain")
    step = drive(planned(data, COLUMNS, MAIN, EPSILON).run(), whole(data, gaps(data))).steps[-1]
    frames = tuple(replace(frame, radius_squared=1e9) for frame in step.map_fn.frames)
    wide = replace(step, map_fn=replace(step.map_fn, frames=frames))
    found = [
        distance(step.parts[0], totals(wide, left)[0], totals(wide, right)[0])
        for left, right in neighbours(data, 1, 100)
    ]
    assert max(found) <= 1
    assert max(found) > 0.95


def test_records_of_two_groups_attain_the_bound_of_one_group() -> None:
    """Orthogonal contributions: √2 of one record's, which is what a group alone can attain as
    well.
    """
    data = table("plain")
    plan = planned(data, COLUMNS, BY, EPSILON)
    steps = drive(plan.run(), whole(data, gaps(data))).steps
    left, right = ({k: v.copy() for k, v in data.items()} for _ in range(2))
    for side, level, value in ((left, 0.0, 800.0), (right, 1.0, -800.0)):
        side["g"][7], side["x"][7], side["y"][7] = level, value, 900.0
    for step in steps:
        pairs = zip(
            step.parts,
            totals(step, whole(left, gaps(left))),
            totals(step, whole(right, gaps(right))),
            strict=True,
        )
        for part, a, b in pairs:
            assert distance(part, a, b) <= 1
            if isinstance(part, GramSum) and step.label != "scores":
                assert distance(part, a, b) > 0.99


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_noise_of_all_parts_together_costs_what_is_charged(query: Any) -> None:
    data = table("plain")
    plan = planned(data, COLUMNS, query, EPSILON, m=2)
    trace = drive(plan.run(), whole(data, gaps(data)))
    spent = sum(
        (noisy_sum.sensitivity(part) / noisy_sum.scale(part)) ** 2 / 2
        for step in trace.steps
        for part in step.parts
    )
    assert spent <= plan.rho / RHO_UNITS
    assert spent > 0.999 * plan.rho / RHO_UNITS


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_sums_do_not_depend_on_blocks(query: Any) -> None:
    data = table("leverage")
    steps = drive(planned(data, COLUMNS, query, EPSILON).run(), whole(data, gaps(data))).steps
    for step in steps:
        for a, b in zip(
            totals(step, whole(data, gaps(data))),
            totals(step, whole(data, gaps(data)), rows=7),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
