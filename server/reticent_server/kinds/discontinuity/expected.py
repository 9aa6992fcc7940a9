# SPDX-License-Identifier: Apache-2.0
"""What a jump's errors will be, from public facts alone: records where the profile has the running
column, or evenly within its declared bounds; normal residuals as wide as the response.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.design import TriangleWeight
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.discontinuity.lines import LEAKS, SideLine, side_line

_POINTS = (np.arange(2000) + 0.5) / 2000  # probabilities at which the running column is taken
_HALVINGS = 60  # of the interval that the cut is looked for in
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class ExpectedJump:
    """Expected standard deviations, in those of the response: of noise and of sampling. hidden:
    whether no interval is expected. records: within the bandwidth.
    """

    privacy: float
    sampling: float
    hidden: bool
    records: float


def expected_jump(
    facts: DatasetFacts,
    running: Column,
    kernel: TriangleWeight,
    reach: float,
    moments_sd: float,
    power_sd: float,
    rank: float,
) -> ExpectedJump:
    """reach: R in standard deviations. moments_sd, power_sd: of the noise. rank: beyond the cut."""
    x = _places(facts, running)
    each = facts.n / len(x)
    above = x >= kernel.centre
    sides, lengths = [], []
    for side in (~above, above):
        u = np.abs(x[side] - kernel.centre) / kernel.width
        u = u[u < 1]
        a = 1 - u
        S = each * np.array([a.sum(), (a * u).sum(), (a * u * u).sum()])
        line = side_line(S, np.zeros(2), moments_sd)
        sides.append(line)
        lengths.append(np.abs(a * (line.weights[0] + line.weights[1] * u)))
    length = np.concatenate(lengths)
    if not length.size:
        return ExpectedJump(float("inf"), float("inf"), hidden=True, records=0.0)
    C = _cut(length, each, rank)
    product = reach**2 * sum(line.product for line in sides)
    privacy = sqrt((C * power_sd) ** 2 + product)
    return ExpectedJump(
        privacy, sqrt(each * float(length @ length)), _hidden(sides), each * len(length)
    )


def _places(facts: DatasetFacts, running: Column) -> FloatArray:
    known = facts.profile.columns.get(running.name) if facts.profile else None
    if known and known.quantiles and len(known.quantiles) > 1:
        p = known.probabilities[: len(known.quantiles)]
        ends = ((0.0, *p, 1.0), (running.lower, *known.quantiles, running.upper))
        return np.interp(_POINTS, *ends)
    if known and known.counts:
        counts = np.maximum(known.counts, 0.0)
        total = np.cumsum(counts) / max(float(counts.sum()), 1.0)
        return np.asarray(known.first + np.searchsorted(total, _POINTS).clip(0, len(counts) - 1))
    return np.asarray(running.lower + _POINTS * (running.upper - running.lower))


def _cut(length: FloatArray, each: float, rank: float) -> float:
    """C beyond which `rank` of the records' normal pieces of these standard deviations lie."""
    low, high = 0.0, 40.0 * float(length.max()) + _TINY
    for _ in range(_HALVINGS):
        C = (low + high) / 2
        beyond = 2 * each * float(np.sum(ndtr(-C / np.maximum(length, _TINY))))
        low, high = (C, high) if beyond > rank else (low, C)
    return high


def _hidden(sides: list[SideLine]) -> bool:
    return max(line.leak for line in sides) > LEAKS
