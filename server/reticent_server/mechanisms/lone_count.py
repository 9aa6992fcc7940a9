# SPDX-License-Identifier: Apache-2.0
"""A count, or a table of counts, that is all of a release: how little noise keeps (ε, δ).

Domain, neighbours, sensitivity: those of a CountSum (mechanisms.noisy_sum). Guarantee: (ε, δ) for
every table and every n, where accounting.exact_counts certifies δ for the scale that is drawn at
the part's ρ. It holds for this release alone, where accounts add up ε and δ; its ρ, Δ²/(2σ²), is
what it costs where they add up ρ. A person of several rows may change many cells of a table by any
numbers that add up to their rows: no such table is certified, and the wider scales of the other
conversions stay.

The engine certifies what it is about to draw (`check`), so what a plan says of
itself decides nothing.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from reticent_server.accounting import exact_counts
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.steps import CountSum, Step
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.gaussian_cost import Unpriced

_WIDEST = 32.0  # of σ: beyond it what is gained is below 0.05 %
_MOST_ROWS = 64  # of a unit: as many distances are evaluated
_MOST_TIMES = 4  # of zCDP's ρ: what is there at ε = 16 is 2.6 times it
_HALVINGS = 20  # of the logarithm's interval: up to 10⁻⁶ of ρ


def check(step: Step, spent: int, cost: PrivacyCost) -> None:
    """Raises Unpriced unless the step is a release's only one, with one count, and certified at its
    charge.

    spent: what the steps before it cost (RHO_UNITS).
    """
    if spent or len(step.parts) != 1:
        raise Unpriced
    (part,) = step.parts
    if not isinstance(part, CountSum) or not certified(part, cost.epsilon, cost.delta):
        raise Unpriced


@lru_cache(maxsize=1024)
def most(part: CountSum, epsilon: int, delta: int) -> int:
    """The largest ρ that is found with (ε, δ) certified, at which the part would be all of a
    release; the part's own where none is.

    epsilon in EPSILON_UNITS, delta in DELTA_UNITS. The part is one at the ρ of another conversion.
    """
    if not _within_reach(part):
        return part.rho
    best = part.rho
    low, high = 1.0, float(_MOST_TIMES)
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        rho = int(part.rho * middle)
        if certified(replace(part, rho=rho), epsilon, delta):
            low, best = middle, rho
        else:
            high = middle
    return best


@lru_cache(maxsize=4096)
def certified(part: CountSum, epsilon: int, delta: int) -> bool:
    """Whether the part is (ε, δ)-DP where it is all of a release."""
    if not _within_reach(part):
        return False
    variance = Fraction(noisy_sum.scale(part)) ** 2
    try:
        bound = exact_counts.delta_bound(
            variance, Fraction(epsilon, EPSILON_UNITS), bins=part.bins, rows=part.unit_rows
        )
    except exact_counts.Uncertified:
        return False
    return bound <= Fraction(delta, DELTA_UNITS)


def _within_reach(part: CountSum) -> bool:
    single = part.bins == 1 and part.unit_rows <= _MOST_ROWS
    return (single or part.unit_rows == 1) and noisy_sum.scale(part) <= _WIDEST
