# SPDX-License-Identifier: Apache-2.0
"""Conversions between ρ-zCDP and (ε, δ)-DP, in the integer units of domain.cost.

ρ-zCDP implies (ε, δ)-DP for

    δ = inf_{α > 1}  exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α

(Canonne, Kamath & Steinke 2020, Corollary 13). Any α gives a valid δ, so an inexact minimiser costs
accuracy and never validity. The logarithm of the bound is required to be below ln δ by a margin
that covers the rounding of its evaluation, and results are rounded against the analyst.
"""

from fractions import Fraction
from functools import lru_cache
from math import floor, log, log1p, sqrt

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS

# taken off ln δ: above the rounding of the bound in float64, so ρ is never too large
_MARGIN = 1e-9
# a bound of the search; ρ ≤ ε + 1 is below it for every ε that is taken (at most 100)
_MAX_RHO = 1e6


def log_delta(rho: float, epsilon: float) -> float:
    """An upper bound of ln δ such that ρ-zCDP implies (ε, δ)-DP. rho, epsilon: positive."""
    alpha = _best_alpha(rho, epsilon)
    return (alpha - 1) * (alpha * rho - epsilon) - log(alpha - 1) + alpha * log1p(-1 / alpha)


def _best_alpha(rho: float, epsilon: float) -> float:
    """Bisection on the sign of the derivative, (2α − 1)ρ − ε + ln(1 − 1/α), increasing in α."""
    low, high = 1 + 1e-12, (epsilon + 1) / (2 * rho) + 2
    for _ in range(80):
        middle = (low + high) / 2
        if (2 * middle - 1) * rho - epsilon + log1p(-1 / middle) < 0:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=4096)
def max_rho(epsilon_units: int, delta_units: int) -> int:
    """The largest ρ (RHO_UNITS) such that ρ-zCDP implies (ε, δ)-DP; 0 where there is none.

    epsilon_units in EPSILON_UNITS, delta_units in DELTA_UNITS; δ must be below 1.
    """
    if epsilon_units <= 0 or delta_units <= 0:
        return 0
    epsilon, target = epsilon_units / EPSILON_UNITS, log(delta_units / DELTA_UNITS) - _MARGIN
    low, high = 0.0, min(epsilon + 1.0, _MAX_RHO)
    for _ in range(64):
        middle = (low + high) / 2
        if log_delta(middle, epsilon) <= target:
            low = middle
        else:
            high = middle
    return floor(Fraction(low) * RHO_UNITS)


def rho_units(epsilon: float, delta: float) -> int:
    """max_rho for decimal amounts: a request's (ε, δ), each rounded down to its unit."""
    return max_rho(
        floor(Fraction(repr(epsilon)) * EPSILON_UNITS), floor(Fraction(repr(delta)) * DELTA_UNITS)
    )


DELTA_FOR_QUERIES = 10
"""δ″ of a new zcdp account is δ over this, unless its curator says otherwise. A tenth of that pays
for one query's exception (pipeline.defaults), so ten such queries fit, and ρ* is less than 1 %
below what no δ″ at all would leave."""


def zcdp_caps(epsilon_units: int, delta_units: int, second: int | None = None) -> tuple[int, int]:
    """(ρ*, δ″) of a zcdp account with total (ε, δ): ρ* = max_rho(ε, δ − δ″).

    second: δ″ in DELTA_UNITS, from 0 to δ; None: a tenth of δ. What is not δ″ is δ′, which converts
    ρ* into ε.

    *Proof* that every choice of δ″, made before the first answer, gives (ε, δ)-DP. The interaction
    is δ″-approximate ρ*-zCDP: on each of two neighbours there is an event of probability at least 1
    − δ″ on which the two laws are ρ*-zCDP, as adaptive compositions of δ_i-approximate ρ_i-zCDP add
    both amounts (Bun & Steinke 2016, Lemma 8.2; Whitehouse et al. 2023 for amounts chosen on the
    way). Coins thin either event to probability 1 − δ″ exactly and leave the law on it as it is. On
    the events the laws are (ε, δ′)-close by `max_rho`, so P(S) ≤ δ″ + (1 − δ″)(e^ε P′(S)/(1 − δ″) +
    δ′) ≤ e^ε P′(S) + δ″ + δ′, and δ′ = δ − δ″.
    """
    second = delta_units // DELTA_FOR_QUERIES if second is None else second
    return max_rho(epsilon_units, delta_units - second), second


def epsilon_of(rho_amount: int, delta: float) -> float:
    """The ε at which ρ-zCDP (rho_amount in RHO_UNITS) implies (ε, δ)-DP; for display."""
    rho, target = rho_amount / RHO_UNITS, log(delta)
    if rho_amount <= 0:
        return 0.0
    low, high = 0.0, rho + 2 * sqrt(rho * -target) + 1e-9
    for _ in range(64):
        middle = (low + high) / 2
        if middle > 0 and log_delta(rho, middle) <= target:
            high = middle
        else:
            low = middle
    return high


def rho_of_pure(epsilon_units: int) -> int:
    """½ε² in RHO_UNITS, rounded up: the zCDP cost of an ε-DP mechanism (Bun & Steinke 2016)."""
    numerator = epsilon_units**2 * RHO_UNITS
    return -(-numerator // (2 * EPSILON_UNITS**2))


def rho_of_bounded_range(epsilon_units: int) -> int:
    """ε²/8 in RHO_UNITS, rounded up: the zCDP cost of an exponential mechanism that is ε-DP.

    Such a mechanism is bounded-range with parameter ε, for any base (Dong, Durfee & Rogers 2020).
    """
    numerator = epsilon_units**2 * RHO_UNITS
    return -(-numerator // (8 * EPSILON_UNITS**2))
