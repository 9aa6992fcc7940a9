# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.accounting.conversions import max_rho, zcdp_caps
from reticent_server.domain.amounts import Amounts, Rule
from reticent_server.domain.cost import PrivacyCost, decimal_units
from reticent_server.errors import InvalidPrivacy
from reticent_server.ledger.rules import MAX_AMOUNT, budget, charge, decimal_floor


def test_a_budget_under_basic_is_the_decimal_that_prints() -> None:
    assert budget(0.3, 1e-6, "basic", zcdp_caps).cap == Amounts(300_000_000, 10**12)


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
def test_a_budget_between_two_units_is_the_lower(rule: Rule) -> None:
    """Rounded up it would let a little more be spent than was given."""
    between = budget(0.3000000009, 1.0000000000009e-6, rule, zcdp_caps)
    assert between == budget(0.3, 1e-6, rule, zcdp_caps)
    assert (between.epsilon, between.delta) == (300_000_000, 10**12)


def test_a_budget_under_zcdp_keeps_a_tenth_of_delta_for_queries() -> None:
    made = budget(1.0, 1e-6, "zcdp", zcdp_caps)
    assert made.cap == Amounts(*zcdp_caps(10**9, 10**12))
    assert made.cap.secondary == 10**11
    assert (made.epsilon, made.delta) == (10**9, 10**12)


@pytest.mark.parametrize("second", [0, 1, 5 * 10**11, 10**12 - 1])
def test_a_curator_chooses_how_much_of_delta_queries_may_be_charged(second: int) -> None:
    made = budget(1.0, 1e-6, "zcdp", zcdp_caps, second)
    assert made.cap == Amounts(max_rho(10**9, 10**12 - second), second)


@pytest.mark.parametrize("second", [-1, 10**12, 10**12 + 1])
def test_queries_cannot_be_charged_all_of_delta(second: int) -> None:
    with pytest.raises(InvalidPrivacy, match="for queries"):
        budget(1.0, 1e-6, "zcdp", zcdp_caps, second)


@pytest.mark.slow
@given(st.floats(min_value=1e-9, max_value=1e9))
def test_a_cap_is_never_above_a_charge_of_the_same_number(value: float) -> None:
    assert decimal_floor(value, 10**9) <= decimal_units(value, 10**9)
    assert decimal_units(value, 10**9) - decimal_floor(value, 10**9) <= 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "rule"),
    [
        (0.0, 1e-6, "basic"),
        (-1.0, 1e-6, "basic"),
        (float("nan"), 1e-6, "basic"),
        (float("inf"), 1e-6, "basic"),
        (True, 1e-6, "basic"),
        ("1", 1e-6, "basic"),
        (1.0, -1e-6, "basic"),
        (1.0, 1.0, "basic"),
        (1.0, float("nan"), "basic"),
        (1e-10, 1e-6, "basic"),
        (1e10, 1e-6, "basic"),
        (1.0, 0.0, "zcdp"),
        (1e10, 1e-6, "zcdp"),
        (1.0, 0.0, "gdp"),
        (1e-6, 1e-18, "gdp"),
    ],
)
def test_what_is_no_budget_is_refused(epsilon: float, delta: float, rule: str) -> None:
    with pytest.raises(InvalidPrivacy):
        budget(epsilon, delta, rule, zcdp_caps)  # type: ignore[arg-type]


def test_an_epsilon_beyond_what_the_rule_can_certify_is_named() -> None:
    with pytest.raises(InvalidPrivacy, match="an epsilon that protects something"):
        budget(2000.0, 1e-3, "gdp", zcdp_caps)


def test_a_cap_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(InvalidPrivacy):
        budget(1.0, 1e-6, "zcdp", lambda *_: (MAX_AMOUNT + 1, 0))


def test_each_rule_charges_its_own_amounts() -> None:
    cost = PrivacyCost(epsilon=1, delta=2, rho=3, rho_delta=4)
    assert charge(cost, "basic") == Amounts(1, 2)
    assert charge(cost, "zcdp") == Amounts(3, 4)
    assert charge(replace(cost, gaussian=5), "gdp") == Amounts(5, 4)
    assert charge(cost, "gdp").primary > 3 * 1.5


def test_amounts_are_within_only_if_both_are() -> None:
    assert Amounts(1, 1).within(Amounts(1, 1))
    assert not Amounts(2, 0).within(Amounts(1, 1))
    assert not Amounts(0, 2).within(Amounts(1, 1))
