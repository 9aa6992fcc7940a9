# SPDX-License-Identifier: Apache-2.0
"""The three rules of an account, in exact integers.

    basic   Σ ε_i ≤ ε   and  Σ δ_i ≤ δ
    zcdp    Σ ρ_i ≤ ρ*  and  Σ δ_i ≤ δ″, each query being δ_i-approximate ρ_i-zCDP
    gdp     Σ ρ_i ≤ ρ*  and  Σ δ_i ≤ δ″, each query being δ_i-approximate √(2ρ_i)-GDP
            (accounting.gaussian_account)

Under each, queries may be chosen adaptively and the whole interaction is (ε, δ)-DP; under zcdp
because it is δ″-approximate ρ*-zCDP, with ρ* = max{ρ : conv(ρ, δ′) ≤ ε} and δ′ + δ″ = δ for the δ″
that the curator chose (accounting.conversions.zcdp_caps; Bun & Steinke 2016; Canonne, Kamath &
Steinke 2020; for adaptive amounts Whitehouse et al. 2023).

*Caps that change.* A curator may raise caps, or lower them to what is spent at least, after answers
were seen, and by amounts that depend on these. For every (ε, δ) that is fixed beforehand, the
interaction up to the first answer that its caps would not have allowed is (ε, δ)-DP. *Proof*:
refuse that answer and end there. What is left is an interaction in which every query is answered
with its sums within fixed caps, on every path: the proof for fixed caps asks for no more, in
particular not why a query was not asked. So the answers that were given while an account's caps
were at most those of (ε, δ) are (ε, δ)-DP together, whatever was raised later and why; those after
a raise are covered by the larger caps. There is no promise about a last cap as such where what was
seen has decided how large it became: who means to promise (ε, δ) decides beforehand not to go
beyond it.

*The split of δ.* The caps of (ε, δ) are those of one δ″, chosen before anything is charged. If
answers decided between two splits, one path could spend the larger ρ* and another the larger δ″,
and no one pair of caps would hold for all paths. So after a charge no change may raise one cap and
lower the other for the sake of a new δ″ (ledger.budgets).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite

from reticent_server.accounting import gaussian_account
from reticent_server.domain.amounts import ZERO, Amounts, Rule
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.errors import InvalidPrivacy

ZcdpCaps = Callable[[int, int, int | None], tuple[int, int]]
"""(ε, δ, δ″ or None for the usual part of δ) → (ρ*, δ″), all in units."""

MAX_AMOUNT = 2**63 - 1  # units: the largest whole number of a database's BIGINT


def charge(cost: PrivacyCost, rule: Rule) -> Amounts:
    """What a cost is under a rule."""
    if rule == "basic":
        return Amounts(cost.epsilon, cost.delta)
    if rule == "zcdp":
        return Amounts(cost.rho, cost.rho_delta)
    return Amounts(gaussian_account.price(cost), cost.rho_delta)


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """A budget as given: (ε, δ) in units, and the caps that its rule makes of it."""

    epsilon: int
    delta: int
    cap: Amounts


def budget(
    epsilon: float, delta: float, rule: Rule, zcdp_caps: ZcdpCaps, second: int | None = None
) -> BudgetLimits:
    """The budget for (ε, δ), rounded down; the decimal that prints is meant (0.1 is one tenth).

    second: δ″ of a zcdp or gdp account in DELTA_UNITS; None: the usual part of δ.
    Raises InvalidPrivacy unless 0 < ε, 0 ≤ δ < 1 (0 < δ and δ″ < δ under zcdp and gdp) and the caps
    can be stored.
    """
    epsilon_units = decimal_floor(epsilon, EPSILON_UNITS)
    delta_units = decimal_floor(delta, DELTA_UNITS)
    if epsilon_units <= 0 or not 0 <= delta_units < DELTA_UNITS:
        raise InvalidPrivacy("A budget has epsilon > 0 and 0 <= delta < 1.")
    if rule == "basic":
        cap = Amounts(epsilon_units, delta_units)
    else:
        converted = zcdp_caps if rule == "zcdp" else gaussian_account.caps
        cap = _converted_cap(epsilon_units, delta_units, second, converted)
    if cap.primary <= 0:
        raise InvalidPrivacy(
            f"A budget under the rule {rule} has delta > 0 and, beside what is for queries, "
            "enough of it to answer, and an "
            "epsilon that protects something: in the hundreds at most."
        )
    if max(epsilon_units, cap.primary) > MAX_AMOUNT:
        raise InvalidPrivacy("That epsilon is too large to protect anything; give a smaller one.")
    return BudgetLimits(epsilon_units, delta_units, cap)


def _converted_cap(epsilon: int, delta: int, second: int | None, caps: ZcdpCaps) -> Amounts:
    if delta == 0:
        return ZERO
    if second is not None and not 0 <= second <= delta:
        raise InvalidPrivacy(
            "The delta for queries is a part of delta: at least 0, and not all of it."
        )
    return Amounts(*caps(epsilon, delta, second))


def decimal_floor(value: float, units: int) -> int:
    """Units of the shortest decimal that prints as `value`, rounded down. Raises InvalidPrivacy."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidPrivacy("Epsilon, delta and rho are finite numbers.")
    return floor(Fraction(repr(value)) * units)
