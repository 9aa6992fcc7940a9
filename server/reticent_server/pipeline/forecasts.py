# SPDX-License-Identifier: Apache-2.0
"""The forecast of a plan: the estimator's own, and the ε at which its noise would fall to a target.

From public facts only. The targets are ratios of privacy to sampling standard error, of the
coefficient with the largest: at 1 the intervals are √2 times as wide as sampling alone would make
them, at ½ by 12 %.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, floor, log10, sqrt
from typing import Any

from reticent_server.accounting import conversions, gaussian
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.domain.plan import Plan
from reticent_server.errors import InvalidQuery
from reticent_server.pipeline.rho_search import least_rho, rough_rho

Search = Callable[[Callable[[int], float], float, int, tuple[int, int]], int | None]
"""(ratio by ρ, target, first ρ, limits) → the ρ at which the target is reached, or None."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of (ε, δ) into ρ (RHO_UNITS), and back into ε."""

    rho_units: Callable[[float, float], int]
    epsilon_of: Callable[[int, float], float]


ZCDP = Conversion(conversions.rho_units, conversions.epsilon_of)
GAUSSIAN = Conversion(gaussian.rho_units, gaussian.epsilon_of)
# privacy noise over sampling error: equal (intervals 1.41 times as wide), and half (1.12 times)
USUAL_TARGETS = (1.0, 0.5)
MAX_EPSILON = 100.0  # where the search for ε ends: no larger one can be asked (pipeline.planning)
# units of ρ where the search starts: ε of some 10⁻⁴, at which no forecast has an answer
LEAST_RHO = 1000
_AMPLE, _SMALL = 1.02, 1.1
"""Widths relative to no privacy: from 2 % down a reader sees no difference, and 10 % more is what
many would take for a half of ε or less."""
_LEAST_EPSILON = 0.01  # below it no advice is given
_DIGITS = 3  # significant ones of an ε that is shown, rounded up


def forecast_json(ready: Plan, target: float | None = None) -> dict[str, Any]:
    """The estimator's forecast; of a regression model also `epsilon_for`, at `target` or at 1 and
    ½.

    epsilon null: the target is not reached at any ε that can be asked for. Raises InvalidQuery for
    a target of another kind.
    """
    forecast = dict(ready.planned.forecast)
    fit = ready.planned.fit
    if fit is None and target is not None:
        raise InvalidQuery("A target is for regression models by newton; leave it out.")
    if fit is not None:
        targets = USUAL_TARGETS if target is None else (target,)
        delta = from_units(ready.cost.delta, DELTA_UNITS)
        conversion = ZCDP if ready.gaussian_rho is None else GAUSSIAN
        search = search_of(ready)
        ratio = cache(fit.noise_ratio)
        forecast["epsilon_for"] = [
            {
                "privacy_to_sampling": t,
                "epsilon": epsilon_for(ratio, fit.rho, delta, t, conversion, search),
            }
            for t in targets
        ]
    spare = thrift(ready)
    return forecast | ({"notes": [*forecast.get("notes", ()), spare]} if spare else {})


def thrift(ready: Plan) -> str:
    """The ε at which noise would still be small, where most of what is asked buys nothing; else
    empty."""
    known = ready.planned.precision
    ratios = [] if known is None else list(known.ci_ratios)
    if not ratios or any(ratio is None or ratio > _AMPLE for ratio in ratios):
        return ""
    noise = max(sqrt(ratio**2 - 1) for ratio in ratios if ratio is not None)
    asked = from_units(ready.cost.epsilon, EPSILON_UNITS)
    enough = rounded_up(max(asked * noise / sqrt(_SMALL**2 - 1), _LEAST_EPSILON))
    if enough > asked / 2:
        return ""
    return (
        f"Most of this epsilon buys nothing: at about {enough:g} intervals would be at most "
        f"{_SMALL:g} times as wide as without "
        "privacy. Ask for less, and keep the rest."
    )


def search_of(ready: Plan) -> Search:
    """How an amount is looked for, by what a forecast of the plan takes."""
    fit = ready.planned.fit
    return rough_rho if fit is not None and fit.is_wide else least_rho


def epsilon_for(
    ratio: Callable[[int], float],
    start: int,
    delta: float,
    target: float,
    conversion: Conversion,
    search: Search = least_rho,
) -> float | None:
    """The ε, to three digits and rounded up, at which ratio(ρ) falls to `target`; start: where the
    search begins."""
    limits = (LEAST_RHO, conversion.rho_units(MAX_EPSILON, delta))
    rho = search(ratio, target, start, limits)
    return None if rho is None else min(rounded_up(conversion.epsilon_of(rho, delta)), MAX_EPSILON)


def rounded_up(value: float) -> float:
    """To three significant digits, upwards."""
    unit = 10.0 ** (floor(log10(value)) - _DIGITS + 1)
    return float(f"{ceil(value / unit) * unit:.{_DIGITS}g}")
