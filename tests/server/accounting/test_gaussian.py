# SPDX-License-Identifier: Apache-2.0
"""The Gaussian conversion against mpmath, dp-accounting and the discrete Gaussian itself."""

from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from reticent_server.accounting import conversions, gaussian
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 4.0, 10.0, 100.0]
DELTAS = [1e-18, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1]


def true_delta(rho: Any, epsilon: Any) -> Any:
    """H(√(2ρ), ε) to 700 digits, of which a δ of 10⁻³⁰⁰ leaves 200."""
    with mpmath.workdps(700):
        mu, e = mpmath.sqrt(2 * mpmath.mpf(rho)), mpmath.mpf(epsilon)
        phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2  # noqa: E731
        return phi(-e / mu + mu / 2) - mpmath.exp(e) * phi(-e / mu - mu / 2)


def excess(bound: Any, exact: Any) -> Any:
    """By how much a bound (a Decimal) is above the exact value, relative."""
    with mpmath.workdps(700):
        return mpmath.mpf(str(bound)) / exact - 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [
        *[(rho, epsilon) for rho in (1e-4, 0.028, 1.0, 100.0) for epsilon in (0.1, 1.0, 20.0)],
        *[(1e-12, 1e-6), (1e-12, 2e-6), (0.3, 1e-6), (52.0, 100.0), (8.0, 100.0), (200.0, 50.0)],
        *[(1.4e-3, 1.9), (3.65, 100.0)],
    ],
)
def test_the_bound_is_above_the_true_delta_and_close(rho: Any, epsilon: Any) -> None:
    """With figures down to 10⁻³⁰⁰; below that it is a bound still."""
    exact = true_delta(rho, epsilon)
    found = excess(gaussian.delta_bound(rho, epsilon), exact)
    assert found > 0
    assert found < 1e-20 or exact < mpmath.mpf("1e-300")


def test_the_smallest_figures_are_there() -> None:
    smallest = true_delta(1.4e-3, 1.9)
    assert mpmath.mpf("1e-300") < smallest < mpmath.mpf("1e-200")


def test_far_out_nothing_is_certified() -> None:
    assert gaussian.delta_bound(1e-8, 1.0) == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_found_is_certified_and_the_most(epsilon: Any, delta: Any) -> None:
    units, delta_units = round(epsilon * EPSILON_UNITS), round(delta * DELTA_UNITS)
    rho = gaussian.max_rho(units, delta_units)
    if rho == 0:
        assert conversions.max_rho(units - gaussian.SLACK_UNITS, delta_units) == 0
        return
    left = Decimal(units - gaussian.SLACK_UNITS) / EPSILON_UNITS
    with mpmath.workdps(700):
        slack = mpmath.mpf(gaussian.SLACK_UNITS) / EPSILON_UNITS
        allowed = mpmath.mpf(delta_units) / DELTA_UNITS * mpmath.exp(-slack)
        exact = [
            true_delta(mpmath.mpf(amount) / RHO_UNITS, str(left))
            for amount in (rho, int(rho * (1 + 2e-8)) + 2)
        ]
        assert exact[0] <= allowed < exact[1]


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "epsilon",
    [
        0.01,
        pytest.param(0.5, marks=pytest.mark.audit),
        1.0,
        pytest.param(3.0, marks=pytest.mark.audit),
    ],
)
@pytest.mark.parametrize("delta", [1e-9, pytest.param(1e-6, marks=pytest.mark.audit), 1e-4])
def test_another_accountant_says_the_same(epsilon: Any, delta: Any) -> None:
    """Its discretised losses are rounded against the user, so its δ is a little above the true
    one.
    """
    rho = gaussian.rho_units(epsilon, delta) / RHO_UNITS
    found = pld.from_gaussian_mechanism(1 / np.sqrt(2 * rho), value_discretization_interval=1e-5)
    assert 0.98 * delta <= found.get_delta_for_epsilon(epsilon) <= 1.02 * delta


@pytest.mark.slow
def test_more_of_either_is_more_and_never_less_than_zcdp() -> None:
    by_epsilon = [
        gaussian.max_rho(e, 10**12) for e in np.geomspace(1e5, 1e11, 40).astype(int).tolist()
    ]
    by_delta = [gaussian.max_rho(10**9, d) for d in np.geomspace(10, 1e17, 40).astype(int).tolist()]
    assert by_epsilon == sorted(by_epsilon)
    assert by_delta == sorted(by_delta)
    for delta in (10**3, 10**12, 10**16):
        for epsilon in (10**7, 10**9, 10**10):
            assert gaussian.max_rho(epsilon, delta) > 1.03 * conversions.max_rho(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 10), (10, 0), (6, 10**16), (1, 1), (10**9, 0)])
def test_nothing_is_allowed_for_nothing(epsilon: Any, delta: Any) -> None:
    assert gaussian.max_rho(epsilon, delta) == 0


def test_a_start_that_does_not_pass_is_not_taken() -> None:
    """ρ = 1 at (1, 10⁻⁶)."""
    assert gaussian.largest(Decimal(1), Decimal("1e-6"), RHO_UNITS) == 0


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_epsilon_is_turned_back(epsilon: Any) -> None:
    found = gaussian.epsilon_of(gaussian.rho_units(epsilon, 1e-6), 1e-6)
    assert found == pytest.approx(epsilon, rel=1e-6)


def test_pi_has_all_its_digits() -> None:
    with mpmath.workdps(500):
        assert abs(mpmath.mpf(str(gaussian._pi(450))) - mpmath.pi) < mpmath.mpf("1e-449")
