# SPDX-License-Identifier: Apache-2.0
"""Least squares whose scores are cut as a whole: no record of a table moves a step by more than it
costs.

Joint parts are attacked in tests/privacy/test_one_vector_privacy.py, running counts in
tests/privacy/test_running_counts_privacy.py; here the parts of this recipe, with records at and
beyond every bound.
"""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import GramSum, RunningCounts
from reticent_server.mechanisms import noisy_sum, registry, running_counts
from support.fits.linear_plans import linear_plan, numerics
from support.fits.regressions import drive, linear_table, totals, whole
from support.seeds import seeded

RHO, N = rho_units(1.0, 1e-6), 3_000
EXTREMES = [
    (x, z, y)
    for x in (-10.0, -0.3, 0.0, 10.0)
    for z in (-10.0, 0.0, 10.0)
    for y in (-100.0, -3.0, 0.0, 100.0)
]


@pytest.fixture(scope="module")
def steps() -> Any:
    table = linear_table(N, 2, seeded(11))
    plan = linear_plan(table, numerics(2), RHO, loss="squared")
    return table, drive(plan.run(), whole(table)).steps


def changed(table: Any, record: tuple[float, float, float]) -> Any:
    new = {name: values.copy() for name, values in table.items()}
    for name, value in zip(("x0", "x1", "y"), record, strict=True):
        new[name][0] = value
    return whole(new)


def distance(part: Any, a: Any, b: Any) -> tuple[float, float]:
    """What two tables' exact sums of a part differ by, and its Δ."""
    if isinstance(part, RunningCounts):
        apart = running_counts.factored(part, a) - running_counts.factored(part, b)
        return float(np.linalg.norm(apart.astype(float))), running_counts.sensitivity(part)
    return float(np.linalg.norm((a - b).astype(float))), noisy_sum.sensitivity(part)


def worst(table: Any, step: Any) -> list[float]:
    """Of each part, the largest change over Δ; last, of the whole step what its noise costs over
    what it is charged.
    """
    sums = [totals(step, changed(table, record)) for record in EXTREMES]
    most, loss = [0.0] * len(step.parts), 0.0
    for i, a in enumerate(sums):
        for b in sums[:i]:
            spent = 0.0
            for k, part in enumerate(step.parts):
                apart, bound = distance(part, a[k], b[k])
                most[k] = max(most[k], apart / bound)
                spent += part.rho * (apart / bound) ** 2
            loss = max(loss, spent)
    return [*most, loss / registry.rho(step)]


def last(steps: Any, count: int) -> Any:
    return steps[-count:]


@pytest.mark.slow
def test_no_pair_of_records_is_farther_apart_than_the_noise_is_made_for(steps: Any) -> None:
    table, every = steps
    for step in last(every, 4):
        assert max(worst(table, step)) <= 1 + 1e-9, step.label


@pytest.mark.slow
def test_scores_at_both_ends_attain_the_bound(steps: Any) -> None:
    table, every = steps
    for step in last(every, 3):
        assert worst(table, step)[0] == pytest.approx(1, abs=1e-5), step.label
        assert worst(table, step)[-1] > 0.9, step.label


@pytest.mark.slow
def test_lengths_that_move_to_the_other_end_attain_theirs(steps: Any) -> None:
    """The far end is a record beyond the last edge; a record in the first bin and one in the last
    are Δ apart but for what their columns share.
    """
    table, every = steps
    (lengths,) = (s for s in every if s.label == "lengths of scores")
    assert max(worst(table, lengths)[:2]) > 0.6


def test_no_record_is_longer_than_the_cut_in_a_sum(steps: Any) -> None:
    """The clip is the primitive's: a record of any size adds at most C."""
    table, every = steps
    step = every[-1]
    base = totals(step, changed(table, (0.0, 0.0, 0.0)))
    gradient, meat = step.parts
    assert isinstance(meat, GramSum)
    for record in EXTREMES:
        moved = totals(step, changed(table, record))
        apart = (moved[0] - base[0]).astype(float)
        limit = noisy_sum.norm_limit(gradient)
        assert np.linalg.norm(apart) <= 2 * limit
        assert np.linalg.norm((moved[1] - base[1]).astype(float)) <= sqrt(2) * (
            noisy_sum.norm_limit(meat) ** 2
        ) * (1 + 1e-9)


def test_the_steps_cost_the_plan(steps: Any) -> None:
    _, every = steps
    assert sum(map(registry.rho, every)) <= RHO < RHO_UNITS
