# SPDX-License-Identifier: Apache-2.0
"""What a plan says of a fit before it is asked: how much noise, which intervals, and what can be
done about it. Sentences are from public facts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any

import numpy as np

from reticent_server.domain.design import Design, Expression, Indicator, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.fitting.expected_intervals import NO_INTERVALS
from reticent_server.fitting.forecast import Forecast
from reticent_server.fitting.public.rows import level_shares
from reticent_server.fitting.trust import BoolArray
from reticent_server.fitting.trust.thresholds import NOISE_DOMINATES, USELESS

_TWO_SIDED = 1.96  # normal quantile of a two-sided 95 % interval
_BENDS = (
    "There may be no intervals: with a log link the mean response is curved, and by the profile of "
    "the response the noise is so large that the fit may end too far from its solution for a "
    "linear approximation."
)
_LONG_TAIL = (
    "No intervals are expected: by the profile the tails of response and terms are so long that a "
    'few records would decide the coefficients. Ask for loss="huber" or target="robust", or for a '
    "logarithm of what has the long tail."
)
_NAMED = 6  # terms that a sentence names before it counts the others


@dataclass(frozen=True, slots=True, eq=False)
class FitForecast:
    """fit: what it will be worth; intervals: (q,) which coefficients are expected to have one;
    notes: of the model and of the profile. in_units: whether a profile has the columns' spread, so
    that standard errors are in the units of the data.
    """

    design: Design
    facts: DatasetFacts
    fit: Forecast
    intervals: BoolArray
    notes: list[str]
    in_units: bool

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients; infinite where no interval is expected."""
        privacy = np.where(self.intervals, self.fit.privacy, np.inf).tolist()
        sampling = tuple(self.fit.sampling.tolist())
        names = tuple(self.design.names)
        return ForecastPrecision(names, tuple(privacy), sampling, in_units=self.in_units)

    def shown(self, planned: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is `planned`, and for each coefficient the expected privacy over its sampling
        standard error (null where no interval is expected), with what to do about it.
        """
        fit, expected = self.fit, self.intervals
        hidden = bool(fit.estimable.any()) and not expected.any()
        pairs = zip(fit.ratios.tolist(), expected.tolist(), strict=True)
        return {
            **planned,
            "relative_error": fit.error,
            "terms": list(self.design.names),
            "privacy_to_sampling": [ratio if ok else None for ratio, ok in pairs],
            "notes": [
                *self.notes,
                *([NO_INTERVALS] if hidden else []),
                *advice(fit, self.design, self.facts),
            ],
        }


def advice(fit: Forecast, design: Design, facts: DatasetFacts) -> list[str]:
    """Sentences on what is forecast."""
    names, q = design.names, len(fit.ratios)
    said = []
    reach = _TWO_SIDED * fit.error / sqrt(q)
    if reach > USELESS.value:
        said.append(
            "The answer will be useless: from privacy noise alone, intervals are forecast to reach "
            f"{reach:.2g} standard deviations of the response for each of a term, to either side."
        )
    if not fit.settled:
        said.append(_BENDS)
    if not fit.told:
        said.append(_LONG_TAIL)
    lost = [t for t, ok in zip(names, fit.estimable, strict=True) if not ok]
    if lost:
        said.append(
            "Not identifiable at this epsilon (the data's information is forecast to be below "
            "the noise): "
            f"{_listed(lost)}."
        )
        said += _rare_levels(design, lost, facts)
    noisy = (fit.ratios > NOISE_DOMINATES.value) & fit.estimable
    if noisy.any():
        worst = float(np.max(fit.ratios[noisy]))
        which = [t for t, x in zip(names, noisy, strict=True) if x]
        said.append(
            f"Privacy noise will dominate: intervals of {_listed(which)} will be up to "
            f"{hypot(1, worst):.2g} times as wide as sampling alone would make them."
        )
    return said


def _listed(names: list[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more"


def _rare_levels(design: Design, lost: list[str], facts: DatasetFacts) -> Iterator[str]:
    """For each rare level among the terms that are lost: its share, and the next rarest level to
    merge it with."""
    for term in design.terms:
        level = _level(term)
        if term.name not in lost or level is None or facts.profile is None:
            continue
        column = facts.schema.column(level.column)
        released = facts.profile.columns.get(level.column)
        if column is None or not column.levels or released is None or released.counts is None:
            continue
        shares, at = level_shares(released), int(level.code)
        others = [k for k in np.argsort(shares) if k != at and shares[k] >= shares[at]]
        mend = (
            f"; merged with {column.levels[others[0]]} it would have "
            f"{shares[at] + shares[others[0]]:.1%}"
            if others
            else ""
        )
        yield f"{term.name} has about {shares[at]:.1%} of the records{mend}."


def _level(term: Term) -> Indicator | None:
    factor: Expression = term.factors[0]
    return factor if len(term.factors) == 1 and isinstance(factor, Indicator) else None
