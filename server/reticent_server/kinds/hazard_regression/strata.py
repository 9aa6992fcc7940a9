# SPDX-License-Identifier: Apache-2.0
"""Strata: a baseline hazard of its own for each level of a public column, and for each interval.

Strata lie one after the other on one axis of time: with follow-up that ends at T, a record of
stratum g is at risk from gT + start to gT + time. Cumulative hazards and the areas under the means
of those at risk only enter as differences between two times of one record (partial_score), both in
the record's own piece (gT, (g + 1)T], so that Cox's stratified score is the score on that axis.

*Privacy.* A record is in one stratum and so in one piece: the map to the axis is a function of the
record and of public values, one record to one record. Each sum adds the same vectors as without
strata, of the same length at most, with at most one cell of one line a record; the primitives cut
them as before, whatever stratum a record is in, and a replaced record may change its stratum. So no
sensitivity changes: VectorSum Δ = 2Cm, GramSum Δ = √2 L²m, RunningCounts one cell in, one cell out.

A regressor's mean in a stratum is that of a regression on the strata's indicators, which are
columns of the whitening beside the regressors, so that no release is made for it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design, Indicator
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidFormula
from reticent_server.fitting.coding import TermCoding
from reticent_server.formula.labels import quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.tokens import Token, tokenize
from reticent_server.kinds.shared.follow_up.question import FollowUpGroups
from reticent_server.numerics.matrices import floored
from reticent_server.numerics.public_random import public_generator

MOST_STRATA = 20
"""Each costs a coordinate of the whitening and intervals of the baseline: 20 of 50 events each, the
fewest that tell a regressor's mean, are what 1,000 events have."""
_LEAST_SHARE = 0.25  # of an equal share of the public rows, for a stratum of few records
_LEAST_MOMENT = 0.02  # eigenvalue of the indicators' standardised moment: a twentieth and less
ONE_STRATUM = FollowUpGroups(None, (), ("",))


def one_after_the_other(ends: FloatArray, strata: int) -> FloatArray:
    """(strata · J,) the ends (J,) of each stratum's intervals on the axis of all of them."""
    begins = np.arange(strata)[:, None] * ends[-1]
    return np.asarray((begins + ends).ravel())


def without_strata(text: str) -> tuple[str, str | None]:
    """A formula with blanks in the place of `+ strata(g)`, and g; None where there is none. Raises
    InvalidFormula."""
    tokens = tokenize(text, "formula", Limits())
    at = [k for k, t in enumerate(tokens) if _is_strata(t, tokens[min(k + 1, len(tokens) - 1)])]
    if not at:
        return text, None
    first = at[0]
    form = [t.text for t in tokens[first + 1 : first + 4]]
    if len(at) > 1 or form[0] != "(" or form[2] != ")" or tokens[first + 2].kind != "name":
        raise InvalidFormula("Write strata(g) once, with the name of one column.")
    begin, end = first, first + 4
    if tokens[begin - 1].text == "+":
        begin -= 1
    elif tokens[end].text == "+":
        end += 1
    else:
        raise InvalidFormula("Add strata(g) to at least one term with '+'.")
    start, stop = tokens[begin].position - 1, tokens[end].position - 1
    return text[:start] + " " * (stop - start) + text[stop:], tokens[first + 2].text


def _is_strata(token: Token, following: Token) -> bool:
    word = token.kind == "name" and not token.quoted and token.text == "strata"
    return word and following.text == "("


def with_indicators(right: str, column: str) -> str:
    """The right side of a formula with the strata's indicators as its last terms."""
    return f"{right} + C({quote(column)})"


def indicators(whole: Design, slopes: int, groups: FollowUpGroups) -> FloatArray:
    """(G, terms after the slopes) 1 where a level's indicator is 1. Raises TypeError for terms that
    are no indicators."""
    codes = np.asarray(groups.stored or (0.0,))
    found = np.zeros((len(codes), len(whole.terms) - slopes))
    for j, term in enumerate(whole.terms[slopes:]):
        (factor,) = term.factors
        if not isinstance(factor, Indicator):
            raise TypeError("the terms of strata are indicators")
        found[:, j] = codes == factor.code
    return found


@dataclass(frozen=True, slots=True, eq=False)
class StrataMeans:
    """What is known of regressors by stratum. standing: (G, 1 + d) the constant and the
    standardised indicators of each stratum's records."""

    standing: FloatArray

    @property
    def size(self) -> int:
        """G."""
        return len(self.standing)

    def regressed(self, S: FloatArray, slopes: int) -> FloatArray:
        """(k, 1 + d) coefficients of the regressors on the constant and the indicators, by the
        second moment S (q, q) of constant, regressors and indicators."""
        inside, x = self.others(slopes), np.arange(1, slopes + 1)
        if self.size == 1:
            return np.asarray(S[x][:, inside] / S[0, 0])
        moment = floored(S[np.ix_(inside, inside)], _LEAST_MOMENT)
        return np.asarray(np.linalg.solve(moment, S[np.ix_(inside, x)]).T)

    def others(self, slopes: int) -> NDArray[np.int64]:
        """Where the constant and the indicators stand among the coordinates."""
        return np.append(0, slopes + 1 + np.arange(self.standing.shape[1] - 1))


NO_STRATA = StrataMeans(np.ones((1, 1)))


def strata_means(whole: TermCoding, slopes: int, groups: FollowUpGroups) -> StrataMeans:
    """The means of a coding with a constant first and the indicators last."""
    drawn = indicators(whole.design, slopes, groups)
    centres, scales = whole.centres[slopes + 1 :], whole.scales[slopes + 1 :]
    return StrataMeans(np.column_stack([np.ones(len(drawn)), (drawn - centres) / scales]))


def strata_of_rows(rows: int, shares: FloatArray) -> NDArray[np.int64]:
    """(rows,) a stratum of each public row, in the released shares (G,); rare ones have rows
    enough to be described."""
    G = len(shares)
    if G == 1:
        return np.zeros(rows, dtype=np.int64)
    raised = np.maximum(shares / max(float(shares.sum()), 1e-12), _LEAST_SHARE / G)
    ends = np.cumsum(raised / raised.sum())
    even = (np.arange(rows) + 0.5) / rows
    drawn = np.minimum(np.searchsorted(ends, even), G - 1)
    return np.asarray(public_generator("strata", "of rows", str(G)).permutation(drawn))
