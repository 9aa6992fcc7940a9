# SPDX-License-Identifier: Apache-2.0
"""What a reply promises and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent._text import plain


@dataclass(frozen=True, slots=True)
class Amount:
    """A privacy amount; None where the account's rule has no such part.

    An account under the rule basic counts epsilon and delta, one under zcdp or gdp rho and
    rho_delta. Of a release rho_gdp is what is debited as rho under gdp.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    rho_delta: float | None = None
    rho_gdp: float | None = None

    def under(self, rule: str) -> str:
        """The parts that add up under an account's rule: ε and δ, or ρ and δ (its rho_delta)."""
        basic = (("ε", self.epsilon), ("δ", self.delta))
        named = (("ρ", self.rho), ("δ", self.rho_delta)) if rule != "basic" else basic
        return ", ".join(f"{name} = {plain(value)}" for name, value in named if value is not None)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Amount":
        """From a cost or a balance of a reply; what its rule does not count is left out there."""
        names = ("epsilon", "delta", "rho", "rho_delta", "rho_gdp")
        return cls(*(_float(content.get(name)) for name in names))

    def __str__(self) -> str:
        named = (("ε", self.epsilon), ("δ", self.delta), ("ρ", self.rho))
        shown = [f"{name} = {plain(value)}" for name, value in named if value is not None]
        return ", ".join(shown + ([f"with δ = {plain(self.rho_delta)}"] if self.rho_delta else []))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a plan costs one account and what is left there, in what the account's rule adds up."""

    rule: str
    cost: Amount
    remaining: Amount
    covered: bool

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Coverage":
        """From an entry of a plan's `coverage`: one account, and whether it can pay."""
        cost, remaining = (Amount.from_json(content[name]) for name in ("cost", "remaining"))
        return cls(str(content["rule"]), cost, remaining, bool(content["covered"]))

    def __str__(self) -> str:
        left = f"{self.remaining.under(self.rule)} left"
        if self.rule != "basic" and self.cost.rho is None:
            return f"{left}; the question has no price under the rule {self.rule} at this epsilon"
        verdict = "covers" if self.covered else "does not cover"
        return f"{left} {verdict} {self.cost.under(self.rule)}"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The promise of a reply. tier: "unconditional", or "conditional" on `assumptions`."""

    tier: str
    unit: str
    epsilon: float
    delta: float
    mechanism: str
    statement: str
    reference: str
    assumptions: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Guarantee":
        """From the `guarantee` of a plan or a release."""
        return cls(
            tier=str(content["tier"]),
            unit=str(content["unit"]),
            epsilon=float(content["epsilon"]),
            delta=float(content["delta"]),
            mechanism=str(content["mechanism"]),
            statement=str(content["statement"]),
            reference=str(content["reference"]),
            assumptions=tuple(map(str, content.get("assumptions") or ())),
        )

    def __str__(self) -> str:
        assumed = "".join(f" Assumes: {each}." for each in self.assumptions)
        source = f"; see {self.reference}" if self.reference else ""
        return (
            f"({plain(self.epsilon)}, {plain(self.delta)})-differentially private, {self.tier}. "
            f"{self.statement}{assumed} Mechanism: {self.mechanism}{source}."
        )


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
