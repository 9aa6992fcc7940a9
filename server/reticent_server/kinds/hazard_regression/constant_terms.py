# SPDX-License-Identifier: Apache-2.0
"""Terms that are the same for all records, or for all but a few, as public facts tell.

The baseline hazard takes what is common to all records, so such a term has no coefficient. Asked
for all the same, its direction has no information and takes the intervals of the others with it
(in simulated tables of 9,000 persons a level of 0 to 25 of them did). What is public says so before
anything is charged: a released profile, and `where`.
"""

from collections.abc import Iterator

import numpy as np

from reticent_server.domain.design import Design, Indicator, Term
from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.trust.thresholds import LEAST_EVENTS
from reticent_server.formula.parse import column_of

CONSTANT = (
    "By the profile and the condition {names} is the same for all records, or for all but fewer "
    "than {least:.0f}: the baseline hazard absorbs it, and its coefficient cannot be estimated. "
    "Leave it out, merge its level with another, or ask of other records."
)


def refuse_constant(design: Design, profile: Profile | None, X: FloatArray) -> None:
    """Raises InvalidQuery where a term is constant by the profile, or for the public rows X (rows,
    k) of the design's k terms, which are those of `where`.
    """
    if profile is None:
        return
    named = [
        term.name for term, x in zip(design.terms, X.T, strict=True) if _constant(term, profile, x)
    ]
    if named:
        names = ", ".join(named)
        raise InvalidQuery(CONSTANT.format(names=names, least=LEAST_EVENTS.value))


def _constant(term: Term, profile: Profile, x: FloatArray) -> bool:
    known = [profile.columns.get(column_of(factor)) for factor in term.factors]
    if len(known) != 1 or known[0] is None:
        return False
    shares = list(_others(term, known[0]))
    if shares:
        few, share = min(shares)
        # rows tell of a level that they are expected to have often
        seen = share * len(x) >= LEAST_EVENTS.value
        return few < LEAST_EVENTS.value or (seen and not np.ptp(x))
    quantiles = known[0].quantiles
    return quantiles is not None and min(quantiles) == max(quantiles)


def _others(term: Term, known: ColumnProfile) -> Iterator[tuple[float, float]]:
    """The released number, and the share, of the records with a dummy's 1, and of those with its
    0; none of another term."""
    factor = term.factors[0]
    code = factor.code if isinstance(factor, Indicator) else 1.0
    if known.counts is None or not (term.dummy or isinstance(factor, Indicator)):
        return
    counts, place = np.maximum(known.counts, 0.0), round(code - known.first)
    total = float(np.sum(counts))
    here = float(counts[place]) if 0 <= place < len(counts) else 0.0
    for number in (here, total - here):
        yield number, number / max(total, 1.0)
