# SPDX-License-Identifier: Apache-2.0
"""Likelihoods whose scores are cut as a whole: neither y − μ over its deviation nor an observed
information has a bound of its own, and no record of a table moves a step by more than it costs.

The attack is that of tests/privacy/test_whole_scores_privacy.py, on a yes or no, on counts and on
amounts whose responses are far beyond what their mean leads to expect.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.steps import RunningCounts
from reticent_server.mechanisms import noisy_sum, registry, running_counts
from support.fits.glm import glm_table, planned, slopes
from support.fits.regressions import drive, totals, whole
from support.seeds import seeded

RHO, N = rho_units(1.0, 1e-6), 1_500
EXTREMES = list(product((-10.0, -0.3, 10.0), (-10.0, 0.0, 10.0), (0.0, 1.0, 1000.0)))
LAST = 4  # the lengths, and three sums


def steps_of(family: str, link: Any = None) -> Any:
    table = glm_table(family, N, seeded(12), p=2)
    plan = planned(table, slopes(2), family, RHO, target="likelihood", link=link)
    return table, drive(plan.run(), whole(table)).steps


def changed(table: Any, record: tuple[float, float, float]) -> Any:
    new = {name: values.copy() for name, values in table.items()}
    for name, value in zip(("x0", "x1", "y"), record, strict=True):
        new[name][0] = value
    return whole(new)


def distance(part: Any, a: Any, b: Any) -> float:
    """What two tables' exact sums of a part differ by, over its Δ."""
    if isinstance(part, RunningCounts):
        apart = running_counts.factored(part, a) - running_counts.factored(part, b)
        return float(np.linalg.norm(apart.astype(float))) / running_counts.sensitivity(part)
    return float(np.linalg.norm((a - b).astype(float))) / noisy_sum.sensitivity(part)


def worst(table: Any, step: Any) -> tuple[float, float]:
    """The largest change of a part over its Δ, and of the step what its noise costs over what it is
    charged.
    """
    sums = [totals(step, changed(table, record)) for record in EXTREMES]
    most = loss = 0.0
    for i, a in enumerate(sums):
        for b in sums[:i]:
            apart = [distance(part, a[k], b[k]) for k, part in enumerate(step.parts)]
            most = max(most, *apart)
            pairs = zip(step.parts, apart, strict=True)
            loss = max(loss, sum(part.rho * far**2 for part, far in pairs))
    return most, loss / registry.rho(step)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("binomial", None),
        ("binomial", "probit"),
        ("poisson", None),
        ("gamma", None),
        ("negative_binomial", None),
    ],
)
def test_no_pair_of_records_is_farther_apart_than_the_noise_is_made_for(
    family: str, link: Any
) -> None:
    table, every = steps_of(family, link)
    for step in every[-LAST:]:
        most, loss = worst(table, step)
        assert most <= 1 + 1e-9, step.label
        assert loss <= 1 + 1e-9, step.label


@pytest.mark.parametrize("family", ["gamma"])
def test_scores_at_both_ends_attain_the_charge(family: str) -> None:
    table, every = steps_of(family)
    for step in every[-3:]:
        _, loss = worst(table, step)
        assert loss > 0.8, step.label
