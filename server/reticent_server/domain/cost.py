# SPDX-License-Identifier: Apache-2.0
"""Privacy amounts as exact integers in fixed small units, rounded against the analyst.

    epsilon  1e-9      delta  1e-18      rho  1e-12

Every amount fits a signed 64-bit column up to ε = 9·10⁹, δ = 1, ρ = 9·10⁶.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

EPSILON_UNITS = 10**9  # units in ε = 1: the finest ε that an account tells, 10⁻⁹
# units in δ = 1: 10⁻¹⁸, far below any default δ; δ of less than 9.2 fits an int64
DELTA_UNITS = 10**18
RHO_UNITS = 10**12  # units in ρ = 1: at ε = 10⁻⁴ a pure charge of ½ε² is still 5,000 units


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """What one answer costs, under each rule of an account.

    basic accounts are debited (`epsilon`, `delta`); zcdp accounts (`rho`, `rho_delta`), with the
    meaning `rho_delta`-approximate `rho`-zCDP; gdp accounts (`gaussian`, `rho_delta`), with the
    meaning of accounting.gaussian_account, where a release has no noise but Gaussian; `gaussian` is
    0 where it has other noise, or is not known, and the price then follows from `rho`. All are
    integers in the units of this module.
    """

    epsilon: int
    delta: int
    rho: int
    rho_delta: int = 0
    gaussian: int = 0

    def __post_init__(self) -> None:
        amounts = (self.epsilon, self.delta, self.rho, self.rho_delta, self.gaussian)
        if not all(type(a) is int and a >= 0 for a in amounts):
            raise ValueError("privacy amounts are non-negative integers")

    def __add__(self, other: "PrivacyCost") -> "PrivacyCost":
        return PrivacyCost(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.rho + other.rho,
            self.rho_delta + other.rho_delta,
            self.gaussian + other.gaussian,
        )

    def within(self, other: "PrivacyCost") -> bool:
        """Whether no amount exceeds the other's."""
        return (
            self.epsilon <= other.epsilon
            and self.delta <= other.delta
            and self.rho <= other.rho
            and self.rho_delta <= other.rho_delta
        )


def decimal_units(value: float, units: int) -> int:
    """Units of the shortest decimal that prints as `value` (0.1 means one tenth, not its float).

    Exact when the decimal is a multiple of the unit, else rounded up.
    """
    return ceil(Fraction(repr(value)) * units)


def from_units(amount: int, units: int) -> float:
    """The float nearest to an amount, for display only."""
    return amount / units
