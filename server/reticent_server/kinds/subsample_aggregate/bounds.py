# SPDX-License-Identifier: Apache-2.0
"""Public bounds of a model's estimates: as the analyst gives them, or from the profile and the
schema.

With centres a_j and scales s_j of the terms, and a, s of the response (1 on the scale of a logit or
log), a slope lies within ±10 s/s_j, and an intercept within 10 s + Σ 10 s|a_j|/s_j of a. All are
public: bounds that are too narrow cost accuracy, never privacy.
"""

from collections.abc import Sequence
from math import isfinite, log

from reticent_server.domain.design import Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.public.standardise import Location, term_location, usable_scale
from reticent_server.kinds.subsample_aggregate.model import ModelInBlocks

# scales: a coefficient of ±10 s/s_j explains the response a hundred times over; wider means more
# noise
WIDE = 10.0
# a mean count or Gamma response has a logarithm from there on; a profile's 0 does not
_LEAST_MEAN = 1e-9

Bounds = tuple[float, float]


def checked_bounds(given: Sequence[Sequence[float]], names: Sequence[str]) -> tuple[Bounds, ...]:
    """The analyst's bounds. Raises InvalidQuery unless there is an interval for each estimate."""
    bounds = tuple((float(pair[0]), float(pair[1])) for pair in given if len(pair) == 2)
    sound = all(isfinite(a) and isfinite(b) and a < b and isfinite(b - a) for a, b in bounds)
    if not (sound and len(bounds) == len(given) == len(names)):
        raise InvalidQuery(
            f"parameter_bounds needs a [lower, upper], finite, for each of: {', '.join(names)}."
        )
    return bounds


def planned_bounds(facts: DatasetFacts, fitted: ModelInBlocks) -> tuple[Bounds, ...]:
    """Bounds from public facts."""
    y = _location(facts, fitted.rows.response)
    if fitted.model.equation == "location_scale":
        response = fitted.rows.response
        return (response.lower, response.upper), (0.0, max(response.upper - response.lower, 1e-9))
    if fitted.link == "logit":
        y = Location(0.0, 1.0)
    elif fitted.link == "log":
        y = Location(log(max(y.centre, _LEAST_MEAN)), 1.0)
    terms = [_location(facts, term) for term in fitted.rows.design.terms]
    slopes = [WIDE * y.scale / x.scale for x in terms]
    reach = WIDE * y.scale + sum(h * abs(x.centre) for h, x in zip(slopes, terms, strict=True))
    head = [(y.centre - reach, y.centre + reach)] if fitted.rows.design.intercept else []
    return (*head, *((-h, h) for h in slopes))


def _location(facts: DatasetFacts, term: Term) -> Location:
    """From the profile, else from the term's bounds."""
    location = term_location(term, facts.profile) if facts.profile else None
    middle = (term.lower + term.upper) / 2
    scale = usable_scale((), term.lower, term.upper)
    return location or Location(middle if isfinite(middle) else 0.0, scale)
