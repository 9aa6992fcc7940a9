"""The two rules of an account, in exact integers.

    basic   Σ ε_i ≤ ε   and  Σ δ_i ≤ δ
    zcdp    Σ ρ_i ≤ ρ*  and  Σ δ_i ≤ δ″, each query being δ_i-approximate ρ_i-zCDP

Under either, queries may be chosen adaptively and the whole interaction is (ε, δ)-DP; under zcdp
because it is δ″-approximate ρ*-zCDP, with ρ* = max{ρ : conv(ρ, δ′) ≤ ε} and δ′ + δ″ = δ (Bun &
Steinke 2016; Canonne, Kamath & Steinke 2020; for adaptive amounts Whitehouse et al. 2023).

*Caps that change.* A curator may raise caps, or lower them to what is spent at least, after answers were
seen, and by amounts that depend on these. For every (ε, δ) that is fixed beforehand, the interaction up to
the first answer that its caps would not have allowed is (ε, δ)-DP. *Proof*: refuse that answer and end
there. What is left is an interaction in which every query is answered with its sums within fixed caps, on
every path: the proof for fixed caps asks for no more, in particular not why a query was not asked. So the
answers that were given while an account's caps were at most those of (ε, δ) are (ε, δ)-DP together,
whatever was raised later and why; those after a raise are covered by the larger caps. There is no promise
about a last cap as such where what was seen has decided how large it became: who means to promise (ε, δ)
decides beforehand not to go beyond it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite

from reticent_server.domain.amounts import ZERO, Amounts, Rule
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.errors import InvalidPrivacy

ZcdpCaps = Callable[[int, int], tuple[int, int]]

MAX_AMOUNT = 2**63 - 1


def charge(cost: PrivacyCost, rule: Rule) -> Amounts:
    """What a cost is under a rule."""
    if rule == "basic":
        return Amounts(cost.epsilon, cost.delta)
    return Amounts(cost.rho, cost.rho_delta)


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget as given: (ε, δ) in units, and the caps that its rule makes of it."""

    epsilon: int
    delta: int
    cap: Amounts


def budget(epsilon: float, delta: float, rule: Rule, zcdp_caps: ZcdpCaps) -> Budget:
    """The budget for (ε, δ), rounded down; the decimal that prints is meant (0.1 is one tenth).

    Raises InvalidPrivacy unless 0 < ε, 0 ≤ δ < 1 (0 < δ under zcdp) and the caps can be stored.
    """
    epsilon_units = decimal_floor(epsilon, EPSILON_UNITS)
    delta_units = decimal_floor(delta, DELTA_UNITS)
    if epsilon_units <= 0 or not 0 <= delta_units < DELTA_UNITS:
        raise InvalidPrivacy("A budget has epsilon > 0 and 0 <= delta < 1.")
    if rule == "basic":
        cap = Amounts(epsilon_units, delta_units)
    else:
        cap = Amounts(*zcdp_caps(epsilon_units, delta_units)) if delta_units else ZERO
    if cap.primary <= 0:
        raise InvalidPrivacy("A budget under the rule zcdp has delta > 0, large enough to answer.")
    if max(epsilon_units, cap.primary) > MAX_AMOUNT:
        raise InvalidPrivacy("That epsilon is too large to mean anything.")
    return Budget(epsilon_units, delta_units, cap)


def decimal_floor(value: float, units: int) -> int:
    """Units of the shortest decimal that prints as `value`, rounded down. Raises InvalidPrivacy."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidPrivacy("Epsilon, delta and rho are finite numbers.")
    return floor(Fraction(repr(value)) * units)
