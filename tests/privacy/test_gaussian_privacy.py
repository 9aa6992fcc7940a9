# SPDX-License-Identifier: Apache-2.0
"""The Gaussian conversion, attacked: the lemma on discrete noise, adaptive amounts, and exact
losses of what is planned.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from reticent_server.accounting import conversions, gaussian
from reticent_server.accounting.gaussian_account import COUNT_FEE
from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.steps import (
    ColumnStep,
    CountSum,
    GramSum,
    OneVector,
    PowerSum,
    RunningCounts,
    SumStep,
    VectorSum,
)
from reticent_server.mechanisms import gaussian_cost, noisy_sum, registry, running_counts
from reticent_server.mechanisms.gaussian_cost import COUNTED, GaussianCost, Unpriced

FINE = (
    VectorSum(3, 1.0, 10**10),
    VectorSum(3, 1.0, 10**14, 4),
    GramSum(4, 2.0, 10**10),
    GramSum(4, 2.0, 10**14, 2, signed=True),
    PowerSum(((0.0, 1.0), (0.0, 0.0, 1.4)), 10**12),
    RunningCounts(2, 40, 10**14),
)


def step(*parts: Any, joint: Any = None) -> Any:
    return SumStep("s", parts, lambda block: (), joint=joint)


def rounded(z: Any, variance: Any, t2: Any) -> Any:
    """The probability of z by step 1 of the proof, around 0: a Gaussian of variance σ² − t²,
    rounded at random.
    """
    width = mpmath.sqrt(2 * mpmath.pi * (variance - t2))

    def joint(y: Any) -> Any:
        near = int(mpmath.nint(y))  # what is nine away adds less than 10⁻¹⁹
        theta = mpmath.fsum(
            mpmath.exp(-((k - y) ** 2) / (2 * t2)) for k in range(near - 9, near + 10)
        )
        own = mpmath.exp(-((z - y) ** 2) / (2 * t2)) / theta
        return mpmath.exp(-(y**2) / (2 * (variance - t2))) / width * own

    # beyond 16, which is ten standard deviations, lies less than 10⁻²⁰
    return mpmath.quad(joint, mpmath.linspace(z * 0.5 - 16, z * 0.5 + 16, 33))


def discrete(z: Any, variance: Any) -> Any:
    whole = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * variance)), [-60, 60])
    return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * variance)) / whole


def kappa(t2: Any) -> Any:
    return 2.1 * mpmath.exp(-3.5 * mpmath.pi**2 * t2) + 4.1 * mpmath.exp(-4 * mpmath.pi**2 * t2)


@pytest.mark.slow
@pytest.mark.parametrize("z", [2, pytest.param(0, marks=pytest.mark.audit)])
def test_a_discrete_gaussian_is_a_rounded_one_up_to_kappa(z: Any) -> None:
    """The lemma at the smallest variance, 4t²: within κ, and off by nine tenths of it."""
    with mpmath.workdps(30):
        t2 = mpmath.mpf(7) / 8
        off = abs(mpmath.log(rounded(z, 4 * t2, t2) / discrete(z, 4 * t2)))
        assert 0.9 * kappa(t2) < off < kappa(t2)


def test_all_entries_together_are_within_the_slack() -> None:
    with mpmath.workdps(30):
        slack = mpmath.mpf(gaussian.SLACK_UNITS) / EPSILON_UNITS
        assert 0.8 * slack < 2 * (COUNTED * kappa(mpmath.mpf(7) / 8) + 2**60 * kappa(4)) < slack


def profile(mu: Any, epsilon: Any) -> Any:
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("cut", [-1.0, 0.0, 2.0])
def test_amounts_that_depend_on_answers_gain_nothing(cut: Any) -> None:
    """A second question is asked where the first answer is above the cut. Its δ is at most that of
    all at once, and attains it where the second is asked of nearly all.
    """
    mu, epsilon, first = 0.8, 1.0, 0.5
    second = np.sqrt(mu**2 - first**2)
    y = np.linspace(-12, 12, 200_001)
    ratio = np.exp(first * y - first**2 / 2)
    density = np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
    asked = profile(second, epsilon - np.log(ratio))
    alone = np.maximum(0.0, 1 - np.exp(epsilon) / ratio)
    delta = float(np.trapezoid(density * ratio * np.where(y > cut, asked, alone), y))
    assert delta <= profile(mu, epsilon) * (1 + 1e-6)
    if cut < 0:
        assert delta > 0.97 * profile(mu, epsilon)


def exact_delta(variance: Any, epsilon: Any, releases: Any = 1) -> Any:
    """δ of `releases` discrete Gaussians on 0 and on 1: their losses are (z − ½)/σ², so they add up
    as whole numbers do.
    """
    reach = int(12 * variance**0.5 * releases**0.5) + 3
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    law = sums = one / one.sum()
    for _ in range(releases - 1):
        sums = np.convolve(sums, law)
    losses = (np.arange(len(sums)) - (len(sums) - 1) // 2 + releases / 2) / variance
    return float(np.sum(sums * np.maximum(0.0, -np.expm1(epsilon - losses))))


@pytest.mark.parametrize("releases", [1, 2, 4])
@pytest.mark.parametrize(
    ("epsilon", "delta", "least"),
    [(0.1, 1e-6, 0.99), (0.5, 1e-6, 0.88), (1.0, 1e-6, 0.59), (1.0, 1e-2, 0.47)],
)
def test_counts_at_their_cost_keep_the_promise(
    epsilon: Any, delta: Any, least: Any, releases: Any
) -> None:
    """The largest ρ whose cost is allowed: what counts lose exactly is at most δ, and little less
    where their noise is wide.
    """
    allowed = gaussian.rho_units(epsilon, delta)
    low, high = 1, allowed
    while high - low > 1:
        middle = (low + high) // 2
        parts = [CountSum(1, middle // releases)] * releases
        cost = releases * parts[0].rho + gaussian_cost.surcharge(parts)
        low, high = (middle, high) if cost <= allowed else (low, middle)
    variance = noisy_sum.scale(CountSum(1, low // releases)) ** 2
    found = exact_delta(variance, epsilon, releases)
    assert least * delta < found <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-2), (4.0, 1e-9)])
def test_sums_at_their_cost_attain_the_promise(epsilon: Any, delta: Any) -> None:
    """A sum of many steps is as a continuous Gaussian: its two ends lose δ, up to its δ at zCDP's
    ρ.
    """
    allowed = gaussian.rho_units(epsilon, delta)
    part = VectorSum(1, 1.0, allowed * 999_999 // 1_000_000)
    assert gaussian_cost.cost(step(part)).rho <= allowed
    mu = noisy_sum.sensitivity(part) / noisy_sum.scale(part)
    assert 0.9999 * delta < profile(mu, epsilon) < delta
    mu = np.sqrt(2 * conversions.rho_units(epsilon, delta) / RHO_UNITS)
    assert profile(mu, epsilon) < 0.5 * delta


@pytest.mark.parametrize("part", FINE, ids=lambda part: type(part).__name__)
def test_other_sums_than_counts_cost_their_rho_and_next_to_nothing(part: Any) -> None:
    more = gaussian_cost.surcharge([part])
    assert 0 < more <= part.rho // 2**22 + 1
    assert gaussian_cost.cost(step(part)) == GaussianCost(part.rho + more, 0)


@pytest.mark.parametrize("part", [*FINE, CountSum(1, 10**10), CountSum(9, 10**10, 3)])
def test_a_surcharge_covers_what_the_drawn_noise_asks_for(part: Any) -> None:
    """By the scales that are used, off the diagonal of a Gram sum too."""
    t2 = Fraction(7, 8) if isinstance(part, CountSum) else Fraction(4)
    if isinstance(part, RunningCounts):
        scales = [running_counts.scale(part)]
    else:
        scales = [noisy_sum.scale(part)]
    if isinstance(part, GramSum):
        scales.append(noisy_sum.off_diagonal_scale(part))
    least = min(Fraction(s) ** 2 for s in scales)
    asked = part.rho * t2 / (least - t2)
    assert asked <= gaussian_cost.surcharge([part]) <= 3.1 * asked + 1


def test_what_a_count_costs() -> None:
    """σ² = Δ²/(2ρ) = 50: 1 + .875/49.125 times its ρ; two bins have half the surcharge."""
    one, two = CountSum(1, 10**10), CountSum(2, 10**10)
    assert gaussian_cost.surcharge([one]) == -(-(10**10) * 7 // 393)
    assert gaussian_cost.surcharge([two]) == pytest.approx(10**10 * 7 / 793, abs=1)
    assert gaussian_cost.cost(step(one, two)).counted == 3


def test_joint_parts_are_surcharged_one_by_one() -> None:
    parts = (GramSum(3, 2.0, 10**10), CountSum(1, 10**9))
    together = step(*parts, joint=OneVector(curvature=0, used=1))
    assert registry.rho(together) < 10**10 + 10**9
    expected = registry.rho(together) + gaussian_cost.surcharge(parts)
    assert gaussian_cost.cost(together).rho == expected


@pytest.mark.parametrize(
    "wrong",
    [
        ColumnStep("c", (), lambda block: ()),
        step(CountSum(1, RHO_UNITS // 7 + 1)),
    ],
)
def test_other_parts_have_no_price(wrong: Any) -> None:
    """Whole columns, and counts whose noise has a variance below 7/2."""
    with pytest.raises(Unpriced):
        gaussian_cost.cost(wrong)


def test_no_more_than_what_is_allowed() -> None:
    GaussianCost(10, COUNTED).check(10)
    for wrong in (GaussianCost(11, 0), GaussianCost(0, COUNTED + 1)):
        with pytest.raises(Unpriced):
            wrong.check(10)
    GaussianCost(10, 3).check_charged(10 + 3 * COUNT_FEE)
    for wrong in (GaussianCost(11, 3), GaussianCost(10, 4)):
        with pytest.raises(Unpriced):
            wrong.check_charged(10 + 3 * COUNT_FEE)
    assert GaussianCost(1, 2) + GaussianCost(3, 4) == GaussianCost(4, 6)
    assert replace(GaussianCost(1, 2), rho=3) == GaussianCost(3, 2)
