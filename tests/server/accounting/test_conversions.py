# SPDX-License-Identifier: Apache-2.0
"""Conversions against stored figures, against dp-accounting, and their rounding."""

from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from reticent_server.accounting import conversions
from reticent_server.domain.cost import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    PrivacyCost,
    decimal_units,
)


def delta_of(rho: Any, epsilon: Any) -> Any:
    """A δ ≤ 1 such that ρ-zCDP implies (ε, δ)-DP."""
    return min(1.0, np.exp(min(0.0, conversions.log_delta(rho, epsilon) + conversions._MARGIN)))


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(0.2, 0.001183), (0.5, 0.006642), (1, 0.02436), (4, 0.3111)]
)
def test_rho_of_the_published_table(epsilon: float, rho: float) -> None:
    assert conversions.rho_units(epsilon, 1e-6) / RHO_UNITS == pytest.approx(rho, rel=5e-4)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4])
def test_a_gaussian_of_that_rho_is_epsilon_delta_dp_by_another_accountant(
    epsilon: float, delta: float
) -> None:
    rho = conversions.rho_units(epsilon, delta) / RHO_UNITS
    gaussian = pld.from_gaussian_mechanism(1 / np.sqrt(2 * rho), value_discretization_interval=1e-3)
    exact = gaussian.get_delta_for_epsilon(epsilon)
    assert exact <= delta
    assert exact >= delta / 30


def test_the_bound_is_a_minimum_over_alpha() -> None:
    rho, epsilon = 0.02, 1.0
    alphas = 1 + np.geomspace(1e-3, 1e3, 20_001)
    grid = (
        (alphas - 1) * (alphas * rho - epsilon)
        - np.log(alphas - 1)
        + alphas * np.log1p(-1 / alphas)
    )
    assert conversions.log_delta(rho, epsilon) == pytest.approx(grid.min(), abs=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2.0, 50.0])
def test_max_rho_is_the_largest(epsilon: float) -> None:
    delta = 1e-7
    units = conversions.rho_units(epsilon, delta)
    assert delta_of(units / RHO_UNITS, epsilon) <= delta
    assert delta_of((units * (1 + 1e-6) + 2) / RHO_UNITS, epsilon) > delta * (1 - 1e-6)
    if units > 1000:
        assert conversions.epsilon_of(units, delta) == pytest.approx(epsilon, rel=1e-6)


def test_zcdp_caps_split_delta_and_lose_nothing() -> None:
    rho, second = conversions.zcdp_caps(EPSILON_UNITS, 10**12 + 1)
    assert second == 10**11
    assert rho == conversions.max_rho(EPSILON_UNITS, 10**12 + 1 - second)


@pytest.mark.parametrize("second", [0, 10**11, 5 * 10**11])
def test_a_zcdp_account_never_promises_more_than_its_delta(second: int) -> None:
    """δ″ for the exceptions and what ρ* leaves at ε are δ together, and not less by a millionth."""
    rho, kept = conversions.zcdp_caps(EPSILON_UNITS, 10**12, second)
    total = kept / DELTA_UNITS + delta_of(rho / RHO_UNITS, 1.0)
    assert kept == second
    assert 1e-6 * (1 - 1e-6) < total <= 1e-6


def test_a_tenth_for_queries_costs_less_than_a_hundredth_of_rho() -> None:
    none, _ = conversions.zcdp_caps(EPSILON_UNITS, 10**12, 0)
    usual, _ = conversions.zcdp_caps(EPSILON_UNITS, 10**12)
    half, _ = conversions.zcdp_caps(EPSILON_UNITS, 10**12, 5 * 10**11)
    assert usual > 0.99 * none
    assert 1.04 < usual / half < 1.07


def test_nothing_for_nothing() -> None:
    assert conversions.max_rho(0, 10**12) == conversions.max_rho(10**9, 0) == 0


def test_rounding_is_against_the_analyst() -> None:
    assert decimal_units(0.1, EPSILON_UNITS) == 10**8
    assert decimal_units(1e-10, EPSILON_UNITS) == 1
    assert conversions.rho_of_pure(1) == 1
    assert conversions.rho_of_pure(10**9) == RHO_UNITS // 2


@pytest.mark.parametrize("bad", [-1, 0.5, True])
def test_costs_are_non_negative_integers(bad: bool | float) -> None:
    with pytest.raises(ValueError, match="non-negative integers"):
        PrivacyCost(epsilon=bad, delta=0, rho=0)
