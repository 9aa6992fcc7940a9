# SPDX-License-Identifier: Apache-2.0
"""The best subset of candidate terms, and intervals that survive the search.

Subsets are ranked by BIC, N ln σ² + k ln N, with the released residual variance. Nominal intervals
of the subset that is chosen are too short (coverage .925 for .95 in a simulation with eight
candidates); with √χ²_{p,.95} in place of 1.96, p candidates, all combinations of all coefficients
are covered at once, whatever is chosen (Scheffé 1953; Berk, Brown, Buja, Zhang & Zhao 2013).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt
from typing import Any

from scipy.special import chdtri, ndtri

from reticent import _optional
from reticent._errors import NotEstimable
from reticent._study.fit import StudyFit
from reticent._study.interruption import checkpoint
from reticent._study.model import model
from reticent._study.moments import Moments

_EXHAUSTIVE = 12
"""Candidate terms up to which every subset is looked at: 4,096 fits, a second; beyond, forward
steps.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """fit: of the best subset; its `conf_int()` is simultaneous over all subsets. ranking: the best
    subsets with their BIC, the best first.
    """

    fit: StudyFit
    ranking: tuple[tuple[tuple[str, ...], float], ...]

    def to_frame(self) -> Any:
        """The ranking as a pandas.DataFrame; needs pandas."""
        rows = [{"terms": " + ".join(names) or "1", "bic": bic} for names, bic in self.ranking]
        return _optional.pandas().DataFrame(rows)

    def __repr__(self) -> str:
        return str(self.fit.summary())


def simultaneous(candidates: int) -> float:
    """By how much simultaneous intervals are wider than nominal ones, p columns in all."""
    return sqrt(float(chdtri(candidates, 0.05))) / float(ndtri(0.975))


def ranked(
    moments: Moments,
    response: int,
    groups: Sequence[tuple[int, ...]],
) -> list[tuple[tuple[int, ...], float]]:
    """(chosen groups, BIC) of subsets whose gate is open, the best first. groups: columns that stay
    together.

    Raises NotEstimable where no subset with a term is open.
    """
    found = [
        (chosen, bic)
        for chosen in _searched(moments, response, groups)
        if (bic := _bic(moments, response, groups, chosen)) is not None
    ]
    if not found:
        raise NotEstimable(
            "No subset explains more than the noise does; ask for a study with a larger epsilon."
        )
    return sorted(found, key=lambda pair: pair[1])


def _searched(
    moments: Moments,
    response: int,
    groups: Sequence[tuple[int, ...]],
) -> Iterator[tuple[int, ...]]:
    every = range(len(groups))
    if len(groups) <= _EXHAUSTIVE:
        for size in range(len(groups) + 1):
            for subset in combinations(every, size):
                checkpoint()
                yield subset
        return
    chosen: tuple[int, ...] = ()
    yield chosen
    while len(chosen) < len(groups):
        checkpoint()
        steps = [tuple(sorted((*chosen, k))) for k in every if k not in chosen]
        scored = [
            (bic, step)
            for step in steps
            if (bic := _bic(moments, response, groups, step)) is not None
        ]
        if not scored:
            return
        chosen = min(scored)[1]
        yield chosen


def _bic(
    moments: Moments, response: int, groups: Sequence[tuple[int, ...]], chosen: tuple[int, ...]
) -> float | None:
    places = [p for k in chosen for p in groups[k]]
    if moments.effects and not places:
        return None
    one = model(moments, response, places, True)
    fit = moments.least_squares(one.y, one.X)
    if not fit.open:
        return None
    return moments.records * log(fit.variance) + len(places) * log(moments.records)
