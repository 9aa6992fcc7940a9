# SPDX-License-Identifier: Apache-2.0
"""The ρ at which a forecast ratio falls to a target, by few forecasts: each takes a while."""

from collections.abc import Callable
from math import log, sqrt

# a search for ρ ends within 2 % (ε is shown to three digits, rounded up), or after 16 forecasts
_CLOSE, _TRIALS = 1.02, 16
_MARGIN = 1.05  # of a ratio that is aimed at where there are only three forecasts
# ratio to a target beyond which an amount is a guess: its square is within the floats
_FARTHEST = 1e100


def least_rho(
    worst: Callable[[int], float], target: float, start: int, limits: tuple[int, int]
) -> int | None:
    """The amount, within 2 %, at which worst(ρ) falls to `target`; None where it does not within
    the limits. It falls about as ρ^(−1/2), with small jumps where another number of steps is
    planned.
    """
    low, high = limits
    at, reached = min(max(start, low), high), False
    for _ in range(_TRIALS):
        ratio = worst(at)
        if ratio <= target:
            high, reached = at, True
        else:
            low = at
        if high <= low * _CLOSE or target * (1 - (_CLOSE - 1) / 2) <= ratio <= target:
            break
        guess = int(min(at * (1 + _CLOSE) / 2 * min(ratio / target, _FARTHEST) ** 2, high))
        at = guess if low < guess < high else _between(low, high, reached=reached)
    return high if reached else None


def rough_rho(
    worst: Callable[[int], float], target: float, start: int, limits: tuple[int, int]
) -> int | None:
    """An amount at which worst(ρ) falls to `target`, of a design whose forecasts take long: after
    three of them at most, by the straight line in logarithms between `start` and the upper limit;
    the upper end of the line where it falls elsewhere.
    """
    low, high = limits
    start = min(max(start, low), high)
    ratio = min(worst(start), _FARTHEST)
    if ratio <= target:
        less = max(int(start * (_MARGIN * ratio / target) ** 2), low)
        return less if less < start and worst(less) <= target else start
    best = worst(high)
    if best > target:
        return None
    share = log(_MARGIN * ratio / target) / log(ratio / max(best, 1 / _FARTHEST))
    guess = int(start * (high / start) ** min(share, 1.0))
    return guess if guess < high and worst(guess) <= target else high


def _between(low: int, high: int, *, reached: bool) -> int:
    """The geometric mean of two amounts; the upper one where it has not been tried."""
    return int(sqrt(low) * sqrt(high)) if reached else high
