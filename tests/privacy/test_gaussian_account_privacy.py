# SPDX-License-Identifier: Apache-2.0
"""The rule gdp, attacked: the lemma on bounded ranges, adversaries that choose by answers, and
another accountant.
"""

from math import exp, expm1, pi, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import expit, logit, ndtri

from reticent_server.accounting import gaussian_account
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.steps import CountSum
from reticent_server.mechanisms import noisy_sum


def cap_of(epsilon: float, delta: float) -> float:
    """ρ* of an account with no δ for queries."""
    units, of_delta = round(epsilon * EPSILON_UNITS), round(delta * DELTA_UNITS)
    return gaussian_account.caps(units, of_delta, 0)[0] / RHO_UNITS


def range_for(rho: float) -> float:
    """R of a mechanism of bounded range that is charged `rho`: zCDP charges R²/8."""
    return sqrt(8 * rho / float(gaussian_account.OTHER))


@pytest.mark.parametrize("r", [0.01, 0.3, 1.0, 4.0, 20.0])
def test_a_bounded_range_is_a_gaussian_of_its_price(r: float) -> None:
    """Two outcomes anywhere, and the worst of them, in the middle, attains it where the range is
    small.
    """
    q = expit(np.linspace(-r - 30, 30, 20_001))
    with np.errstate(invalid="ignore"):
        mu = ndtri(expit(logit(q) + r)) - ndtri(q)
    mu = mu[np.isfinite(mu)]
    allowed = sqrt(2 * float(gaussian_account.OTHER) * r**2 / 8)
    assert mu.max() <= allowed
    if r <= 1:
        assert mu.max() > 0.98 * allowed


def two_points(r: float, t: float) -> tuple[float, float]:
    """The probabilities under the first law of the log-ratios t and t − R."""
    q = expm1(t - r) / (expm1(t - r) - expm1(t))
    return q * exp(t), (1 - q) * exp(t - r)


def best(epsilon: float, cap: float, rounds: int) -> float:
    """δ of an adversary who, before each of some rounds, sees the loss so far and asks for Gaussian
    noise or for the two outcomes that gain most, at the same charge.
    """
    each = cap / rounds
    reach = 9 * sqrt(2 * cap)
    r, x = range_for(each), np.linspace(-reach, reach + epsilon, 4001)
    nodes = np.linspace(-8, 8, 1001)
    steps, shares = each + sqrt(2 * each) * nodes, np.exp(-(nodes**2) / 2)
    shares /= shares.sum()
    value = np.maximum(0.0, -np.expm1(epsilon - x))

    def after(losses: Any, chances: Any) -> Any:
        gained = (
            c * np.interp(x + loss, x, value) for c, loss in zip(chances, losses, strict=True)
        )
        return np.sum(list(gained), axis=0)

    for _ in range(rounds):
        ends = [(t, t - r) for t in np.linspace(0.05, 0.95, 19) * r]
        choices = [after(each, two_points(r, each[0])) for each in ends]
        value = np.max([after(steps, shares), *choices], axis=0)
    return float(np.interp(0.0, x, value))


@pytest.mark.parametrize("rounds", [1, 3, pytest.param(12, marks=pytest.mark.audit)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (0.05, 0.05)])
def test_who_chooses_by_answers_between_sorts_of_noise_gains_nothing(
    epsilon: float, delta: float, rounds: int
) -> None:
    found = best(epsilon, cap_of(epsilon, delta), rounds)
    assert 0.9 * delta < found <= delta * 1.001  # a grid in place of the line


def test_at_the_price_of_zcdp_a_bounded_range_would_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_account, "OTHER", 1)
    assert best(0.05, cap_of(0.05, 0.05), 1) > 1.1 * 0.05


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("epsilon", "delta", "share", "times"),
    [(1.0, 1e-6, 0.0, 1), (1.0, 1e-6, 0.3, 4), (3.0, 1e-9, 0.5, 2), (0.5, 1e-3, 0.9, 20)],
)
def test_another_accountant_says_no_more(
    epsilon: float, delta: float, share: float, times: int
) -> None:
    """Of an account of which `share` is spent on some pure mechanisms, and the rest on Gaussian
    noise. Its losses are rounded against the user, by 10⁻⁵ each.
    """
    cap = cap_of(epsilon, delta)
    spent = pld.from_gaussian_mechanism(
        1 / sqrt(2 * cap * (1 - share)), value_discretization_interval=1e-5
    )
    if share:
        pure = range_for(cap * share / times) / 2
        one = pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(pure), value_discretization_interval=1e-5
        )
        spent = spent.compose(one.self_compose(times))
    found = spent.get_delta_for_epsilon(epsilon)
    assert found <= 1.02 * delta
    if not share:
        assert found > 0.9 * delta


def kappa(t2: Any) -> Any:
    return 2.1 * mpmath.exp(-3.5 * mpmath.pi**2 * t2) + 4.1 * mpmath.exp(-4 * mpmath.pi**2 * t2)


def test_what_is_charged_for_discrete_noise_covers_it() -> None:
    with mpmath.workdps(30):
        unit = mpmath.mpf(gaussian_account.SLACK.numerator) / gaussian_account.SLACK.denominator
        unit /= RHO_UNITS
        assert 0.99 < 2 * kappa(mpmath.mpf(7) / 8) / (gaussian_account.COUNT_FEE * unit) < 1
        assert 0.8 < 2**41 * kappa(mpmath.mpf(7) / 4) / (gaussian_account.ROUNDING * unit) < 1
        assert 2**61 * kappa(4) < 1e-9 * unit


def test_counts_among_other_noise_are_wide_enough_for_their_price() -> None:
    t2 = 7 / 4
    for bins in (1, 2, 50):
        variance = noisy_sum.scale(CountSum(bins, gaussian_account.MOST)) ** 2
        assert variance >= 4 * t2 * (1 - 1e-12)
    assert 1 / (1 - 1 / 4) < gaussian_account.OTHER < 1.001 * pi / 2
    assert pi / 2 < gaussian_account.OTHER


def test_an_answer_with_other_noise_costs_more_and_a_large_one_has_no_price() -> None:
    cost = PrivacyCost(1, 0, 7 * 10**6)
    assert gaussian_account.price(cost) == 11 * 10**6 + gaussian_account.ROUNDING
    assert gaussian_account.price(PrivacyCost(1, 0, 10**6, gaussian=10**6 + 5)) == 10**6 + 5
    most = PrivacyCost(1, 0, gaussian_account.MOST)
    assert gaussian_account.price(most) < gaussian_account.UNPAYABLE
    beyond = PrivacyCost(1, 0, gaussian_account.MOST + 1)
    assert gaussian_account.price(beyond) == gaussian_account.UNPAYABLE
