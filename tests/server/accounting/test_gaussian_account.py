# SPDX-License-Identifier: Apache-2.0
"""The caps of accounts under the rule gdp, against mpmath and zCDP's."""

from math import ceil
from typing import Any

import mpmath
import pytest

from reticent_server.accounting import conversions
from reticent_server.accounting.gaussian_account import SLACK, caps, epsilon_of
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS


def true_delta(rho: Any, epsilon: Any, slack: Any) -> Any:
    """e^s H(√(2ρ), ε − s)."""
    mu, e = mpmath.sqrt(2 * rho), epsilon - slack
    phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2  # noqa: E731
    return mpmath.exp(slack) * (phi(mu / 2 - e / mu) - mpmath.exp(e) * phi(-mu / 2 - e / mu))


@pytest.mark.parametrize("second", [None, 0, 5 * 10**11])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.01, 1e-3), (0.3, 1e-9), (1.0, 1e-6), (10.0, 1e-6), (100.0, 1e-12)]
)
def test_caps_keep_the_promise_and_are_little_less_than_it_allows(
    epsilon: float, delta: float, second: int | None
) -> None:
    units, of_delta = round(epsilon * EPSILON_UNITS), round(delta * DELTA_UNITS)
    if second is not None and second >= of_delta:
        return
    rho, kept = caps(units, of_delta, second)
    assert kept == (of_delta // 10 if second is None else second)
    with mpmath.workdps(120):
        slack = mpmath.mpf(ceil(SLACK * rho * EPSILON_UNITS / RHO_UNITS)) / EPSILON_UNITS
        exact, first = mpmath.mpf(units) / EPSILON_UNITS, mpmath.mpf(of_delta - kept) / DELTA_UNITS
        amounts = (mpmath.mpf(rho) / RHO_UNITS, mpmath.mpf(rho) / RHO_UNITS * mpmath.mpf("1.02"))
        found = [true_delta(amount, exact, slack) for amount in amounts]
        assert found[0] <= first < found[1]


def test_they_are_larger_than_those_of_zcdp() -> None:
    for epsilon in (10**8, 10**9, 10**10):
        for delta in (10**9, 10**12, 10**15):
            assert caps(epsilon, delta)[0] > 1.08 * conversions.zcdp_caps(epsilon, delta)[0]
    assert caps(10**9, 10**12)[0] == pytest.approx(1.149 * 24_129_622_342, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "second"), [(10**9, 10, 10), (1, 1, 0), (10**9, 0, None)]
)
def test_nothing_is_allowed_for_nothing(epsilon: int, delta: int, second: int | None) -> None:
    assert caps(epsilon, delta, second)[0] == 0


def test_the_slack_is_of_the_widest_cap() -> None:
    """What is kept for discrete noise is SLACK of twice zCDP's ρ*, so no more than that may be
    spent.
    """
    epsilon, delta = 10**6, 10**17  # there Gaussian noise has more than twice zCDP's ρ*
    widest = 2 * conversions.max_rho(epsilon, delta)
    assert caps(epsilon, delta, 0)[0] == widest


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.01, 1e-3), (0.3, 1e-9), (1.0, 1e-6), (10.0, 1e-6)]
)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_epsilon_that_is_shown_is_what_is_proved(
    epsilon: float, delta: float, share: float
) -> None:
    """Of any part of ρ*, with what is kept for discrete noise; and of all of it no more than the
    account has.
    """
    rho = int(share * caps(round(epsilon * EPSILON_UNITS), round(delta * DELTA_UNITS), 0)[0])
    shown = epsilon_of(rho, delta)
    with mpmath.workdps(60):
        amount = mpmath.mpf(rho) / RHO_UNITS
        slack = mpmath.mpf(SLACK.numerator) / SLACK.denominator * amount
        assert true_delta(amount, mpmath.mpf(shown), slack) <= delta
        assert true_delta(amount, mpmath.mpf(shown) * (1 - mpmath.mpf("1e-4")), slack) > delta
    assert shown <= epsilon
