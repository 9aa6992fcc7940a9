# SPDX-License-Identifier: Apache-2.0
"""A guarantee in plain words: what ε and δ mean for the one whose data they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import exp
from typing import Any

PRIORS = (0.01, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Belief:
    """What a belief of `before` can become at most, as probabilities."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class PlainWords:
    """who: whose data are protected. beliefs: the bounds on what can be learnt about them."""

    who: str
    beliefs: tuple[Belief, ...]
    failure: str
    reach: str
    assumptions: tuple[str, ...]


def plain_words(guarantee: Mapping[str, Any]) -> PlainWords:
    """The words for a release's guarantee.

    (ε, δ)-differential privacy bounds, outside an event of probability δ, the ratio of the chances
    of any reply under two values of one unit by e^ε; by Bayes' rule, posterior odds are then at
    most e^ε times the prior odds (Wasserman & Zhou 2010; Kasiviswanathan & Smith 2014).
    """
    epsilon = float(guarantee["epsilon"])
    unit = str(guarantee["unit"])
    conditional = guarantee["tier"] != "unconditional"
    return PlainWords(
        who="one row" if unit == "row" else _rows_of_one(unit),
        beliefs=tuple(Belief(p, bound(epsilon, p)) for p in PRIORS),
        failure=_failure(float(guarantee["delta"])),
        reach=(
            "This holds only where the assumptions below hold."
            if conditional
            else "This holds whatever is in the table, and whatever else is known about it."
        ),
        assumptions=tuple(map(str, guarantee.get("assumptions") or ())),
    )


def _rows_of_one(unit: str) -> str:
    return f"what is in the rows that share one value of {unit} (how many they are is known)"


def bound(epsilon: float, prior: float) -> float:
    """The largest posterior probability, e^ε p / (1 − p + e^ε p), in a form that cannot
    overflow."""
    return prior / (prior + (1 - prior) * exp(-epsilon))


def _failure(delta: float) -> str:
    if delta <= 0:
        return "There is no exception: δ is 0."
    if delta >= 1:
        return "With δ = 1 nothing is promised."
    whole = Decimal(f"{1 / Decimal(str(delta)):.2g}")  # exact, where 1/δ is larger than any float
    return f"The exception, δ, has a chance of at most 1 in {whole:,.0f}."
