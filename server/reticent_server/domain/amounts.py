# SPDX-License-Identifier: Apache-2.0
"""Pairs of integers in which an account is kept, by its rule."""

from dataclasses import dataclass
from typing import Literal

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, from_units

Rule = Literal["basic", "zcdp", "gdp"]

UNITS: dict[Rule, tuple[tuple[str, int], tuple[str, int]]] = {
    "basic": (("epsilon", EPSILON_UNITS), ("delta", DELTA_UNITS)),
    "zcdp": (("rho", RHO_UNITS), ("rho_delta", DELTA_UNITS)),
    "gdp": (("rho", RHO_UNITS), ("rho_delta", DELTA_UNITS)),
}
"""The names of a rule's two amounts, and how many units make 1."""

SYMBOLS: dict[Rule, tuple[str, str]] = {"basic": ("ε", "δ"), "zcdp": ("ρ", "δ"), "gdp": ("ρ", "δ")}
"""How a rule's two amounts are shown to people; the same wherever one is shown."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """(ε, δ) under basic, (ρ, δ) under zcdp and gdp, in the units of domain.cost."""

    primary: int
    secondary: int

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.primary + other.primary, self.secondary + other.secondary)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.primary - other.primary, self.secondary - other.secondary)

    def within(self, other: "Amounts") -> bool:
        """Whether neither amount exceeds the other's."""
        return self.primary <= other.primary and self.secondary <= other.secondary

    def floats(self, rule: Rule) -> dict[str, float]:
        """By the rule's names, for display only."""
        (first, first_units), (second, second_units) = UNITS[rule]
        return {
            first: from_units(self.primary, first_units),
            second: from_units(self.secondary, second_units),
        }

    def text(self, rule: Rule) -> str:
        """Such as "ρ = 0.3087, δ = 1e-07": in the units that the account is kept in, which add
        up.
        """
        named = zip(SYMBOLS[rule], self.floats(rule).values(), strict=True)
        return ", ".join(f"{symbol} = {value:.6g}" for symbol, value in named)


ZERO = Amounts(0, 0)  # units of either amount
