# SPDX-License-Identifier: Apache-2.0
"""Effects of fuzzy designs: the interval is the set of ratios that a test does not refute."""

from math import inf, nan

import numpy as np
import pytest
from scipy.special import ndtri

from reticent.results.fuzzy import FuzzyEffect, Jump, fuzzy_effect
from support.seeds import seeded

Z = float(ndtri(0.975))
CASES = [
    (Jump(1.0, 0.2, 0.1), Jump(0.5, 0.05, 0.05)),
    (Jump(-1.0, 0.2, 0.1), Jump(0.5, 0.05, 0.05)),
    (Jump(1.0, 0.2, 0.1), Jump(-0.5, 0.05, 0.05)),
    (Jump(0.1, 0.2, 0.1), Jump(0.5, 0.05, 0.05)),
    (Jump(1.0, 0.0, 0.1), Jump(0.2, 0.09, 0.0)),
]


def refuted(theta: float, J: Jump, D: Jump) -> bool:
    V = (J.sampling + abs(theta) * D.sampling) ** 2 + J.noise**2 + (theta * D.noise) ** 2
    return bool((J.value - theta * D.value) ** 2 > Z**2 * V)


@pytest.mark.parametrize(("response", "treatment"), CASES)
def test_the_interval_is_of_ratios_that_are_not_refuted(response: Jump, treatment: Jump) -> None:
    found = fuzzy_effect(response, treatment, 0.05)
    assert found.value == response.value / treatment.value
    low, high = found.interval
    assert low < found.value < high
    kept = [t for t in np.linspace(-60, 60, 48_001) if not refuted(t, response, treatment)]
    assert min(kept) == pytest.approx(low, abs=0.005)
    assert max(kept) == pytest.approx(high, abs=0.005)


def test_a_jump_of_treatment_that_is_not_told_from_none_leaves_every_effect() -> None:
    assert fuzzy_effect(Jump(0.1, 0.2, 0.1), Jump(0.1, 0.1, 0.1), 0.05).interval == (-inf, inf)
    found = fuzzy_effect(Jump(3.0, 0.1, 0.1), Jump(0.1, 0.1, 0.1), 0.05)
    assert found.interval == (-inf, inf), "two rays, to both sides: their smallest interval"


@pytest.mark.parametrize("lost", [Jump(1.0, nan, nan), Jump(1.0, 0.1, nan)])
def test_a_jump_without_an_interval_leaves_every_effect(lost: Jump) -> None:
    told = Jump(2.0, 0.1, 0.1)
    assert fuzzy_effect(lost, told, 0.05) == FuzzyEffect(0.5, (-inf, inf))
    assert fuzzy_effect(told, lost, 0.05) == FuzzyEffect(2.0, (-inf, inf))


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [-1.0, 0.0, 1.0])
def test_intervals_cover_whatever_the_covariance_is(correlation: float) -> None:
    rng = seeded(1)
    J, D, theta = Jump(1.0, 0.2, 0.1), Jump(0.5, 0.1, 0.05), 2.0
    u, v, e, f = rng.normal(size=(4, 1500))
    w = correlation * u + np.sqrt(1 - correlation**2) * v
    jumps = J.value + J.sampling * u + J.noise * e
    treated = D.value + D.sampling * w + D.noise * f
    covered = 0
    for a, b in zip(jumps, treated, strict=True):
        low, high = fuzzy_effect(
            Jump(a, J.sampling, J.noise), Jump(b, D.sampling, D.noise), 0.05
        ).interval
        covered += low <= theta <= high
    share = covered / 1500
    assert share > 0.935
    if correlation == -1.0:
        assert share < 0.965, "then the bound of the variance is attained"
