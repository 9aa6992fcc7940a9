# SPDX-License-Identifier: Apache-2.0
"""The least ε at which a release's intervals are forecast to be as narrow as wanted. Reads no
private cell.

The noise that a wanted width leaves room for is τ = s√(r² − 1) for a ratio r of widths and a
sampling deviation s, and τ = √((h/z)² − s²) for half a width h; the excess of a plan is the largest
quotient of its noise and τ. Noise falls about as ρ^(−1/2), so the search of fitting.forecast over
plans at growing ρ ends after a few; ρ is turned into ε, at which the plan is made again, and what
is returned is that plan.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from reticent_server.accounting.conversions import epsilon_of, rho_units
from reticent_server.domain.plan import Plan
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.pipeline.forecasts import LEAST_RHO, rounded_up, search_of

Widths = float | Mapping[str, float]
_START = 1.0  # ε at which the search begins: a usual amount
_NO_FORECAST = (
    "The plan of this question forecasts no interval: give epsilon. (ci_ratio and half_width are "
    "for the questions whose "
    "plan has a precision.)"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Widths of intervals, of every number or by name: relative to the same interval without
    privacy, or in units."""

    ci_ratio: Widths | None = None
    half_width: Widths | None = None

    def check(self, precision: ForecastPrecision | None) -> ForecastPrecision:
        """Raises InvalidQuery where a plan's precision cannot say when this is reached."""
        if (self.ci_ratio is None) == (self.half_width is None):
            raise InvalidQuery("Give either ci_ratio or half_width.")
        if precision is None:
            raise InvalidQuery(_NO_FORECAST)
        widths = self.ci_ratio if self.half_width is None else self.half_width
        if isinstance(widths, Mapping) and not set(widths) <= set(precision.names):
            raise InvalidQuery("A name in ci_ratio or half_width is none of the numbers forecast.")
        if any(precision.sampling[place] is None for place, _ in self._places(precision)):
            raise InvalidQuery(
                "No width can be forecast, as what the numbers vary by is not public: no profile "
                "has been released. Give epsilon, or ask the curator for a profile."
            )
        if self.half_width is not None:
            self._check_units(precision)
        elif not all(precision.sampling[place] for place, _ in self._places(precision)):
            raise InvalidQuery(
                "This number is about the table itself and has no sampling error, so there is no "
                "ci_ratio. Give "
                "half_width."
            )
        return precision

    def _check_units(self, precision: ForecastPrecision) -> None:
        if not precision.in_units:
            raise InvalidQuery("The plan forecasts ratios, and no width in units. Give ci_ratio.")
        if len(precision.names) > 1 and not isinstance(self.half_width, Mapping):
            raise InvalidQuery(
                'Coefficients have units of their own: give half_width by name, such as {"x": 0.1}.'
            )

    def excess(self, precision: ForecastPrecision) -> float:
        """The largest quotient of forecast noise and what the widths leave room for; inf where they
        leave none."""
        quotients = [
            precision.privacy[place] / room if room else inf
            for place, room in self._rooms(precision)
        ]
        return max(quotients)

    def _rooms(self, precision: ForecastPrecision) -> list[tuple[int, float | None]]:
        room = (
            precision.noise_for_ratio if self.half_width is None else precision.noise_for_half_width
        )
        return [(place, room(place, width)) for place, width in self._places(precision)]

    def _places(self, precision: ForecastPrecision) -> list[tuple[int, float]]:
        widths = self.ci_ratio if self.half_width is None else self.half_width
        if isinstance(widths, Mapping):
            return [(precision.names.index(name), width) for name, width in widths.items()]
        return [(place, widths or 0.0) for place in range(len(precision.names))]


def least_plan(
    planned: Callable[[float], Plan], wanted: Wanted, delta: float, highest: float
) -> Plan:
    """The plan at the least ε, to three digits and rounded up, that is forecast to bring what is
    wanted.

    planned: the plan at an ε; it may raise InvalidPrivacy where that is too small. delta: above 0,
    by which amounts of the search become ε. highest: the largest ε that may be asked. Raises
    InvalidQuery where a plan cannot say, InvalidPrivacy where it takes more than `highest`.
    """
    widest = planned(highest)
    wanted.check(widest.planned.precision)
    at_most = _excess(widest, wanted)
    if at_most > 1.0:
        raise InvalidPrivacy(_out_of_reach(at_most))

    def excess(rho: int) -> float:
        try:
            return _excess(planned(min(highest, epsilon_of(rho, delta))), wanted)
        except InvalidPrivacy:  # too small an ε to plan at all
            return inf

    limits = (LEAST_RHO, rho_units(highest, delta))
    rho = search_of(widest)(excess, 1.0, rho_units(min(_START, highest), delta), limits)
    if rho is None:
        return widest
    return planned(min(rounded_up(epsilon_of(rho, delta)), highest))


def _excess(plan: Plan, wanted: Wanted) -> float:
    precision = plan.planned.precision
    return inf if precision is None else wanted.excess(precision)


def _out_of_reach(excess: float) -> str:
    """What a refusal says."""
    if excess == inf:
        return (
            "No epsilon brings these widths: the sampling error alone, or a number that is not "
            "identifiable, takes "
            "them. Ask for wider intervals, or for fewer numbers by name."
        )
    return (
        f"The largest epsilon that may be asked leaves {excess:.3g} times the noise that these "
        "widths have room for. "
        "Ask for wider intervals, or allow a larger epsilon."
    )


def precision_json(plan: Plan) -> dict[str, Any] | None:
    """What a plan's intervals are forecast to be; None where public facts do not tell."""
    known = plan.planned.precision
    if known is None:
        return None
    return {
        "names": list(known.names),
        "ci_ratios": [None if r in (None, inf) else r for r in known.ci_ratios],
        "half_widths": [None if w in (None, inf) else w for w in known.half_widths],
    }
