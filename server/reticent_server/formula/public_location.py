# SPDX-License-Identifier: Apache-2.0
"""The public centre and spread of a value, for center(x) and scale(x).

From the released profile: the median, and the distance of the quartiles relative to a normal law's
(fitting.public.standardise). Without one: the middle of the value's interval on the declared
bounds, and its width/√12. Both are rounded, because the term's name says them. They are functions
of released and declared numbers: post-processing.
"""

from collections.abc import Mapping
from math import floor, log10

from reticent_server.domain.design import Expression, Term
from reticent_server.domain.facts import Profile
from reticent_server.domain.schema import Column
from reticent_server.fitting.public.standardise import term_location, usable_scale
from reticent_server.formula.intervals import interval

# of the spread, and so of the centre in units of it: rounding moves a centre by at most 5 % of a
# spread
_DIGITS = 2


def public_location(
    value: Expression, columns: Mapping[str, Column], profile: Profile | None
) -> tuple[float, float]:
    """(centre, spread > 0) of a value. Raises InvalidFormula where it is undefined on the declared
    bounds."""
    lower, upper = interval(value, columns)
    known = term_location(Term("", (value,), lower, upper), profile) if profile else None
    if known is None:
        centre, spread = lower + (upper - lower) / 2, usable_scale((), lower, upper)
    else:
        centre, spread = known.centre, known.scale
    places = _DIGITS - 1 - floor(log10(spread))
    return round(centre, places) + 0.0, float(f"{spread:.{_DIGITS}g}")
