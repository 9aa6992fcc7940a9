# SPDX-License-Identifier: Apache-2.0
"""What one person's follow-up is worth to a piecewise-exponential hazard: events and cumulative
hazards by interval.

The hazard at time t of interval j is λ_j exp(η), η = uᵀβ, and a person is at risk from `start`
(0 without one) to `time`. With E_j the time at risk in interval j,

    Λ_j = λ_j E_j exp(η),   stopped where their running sum reaches c:   Λ_1 + … + Λ_j = min(Σ_{i ≤ j} λ_i E_i exp(η), c)
    δ_j = 1 where the event was seen in interval j and the running sum did not exceed c, else 0
    m_j = δ_j − Λ_j

Stopping a follow-up at the cumulative hazard c is a stopping time, so m_j still have mean 0 at the
true hazards (they are increments of a stopped martingale): nothing is biased by it, as would be by
cutting large values. It gives

    Σ_j Λ_j ≤ c,   Σ_j δ_j ≤ 1,   |Σ_j m_j| ≤ c,   ‖m‖² ≤ c² + Σδ

for c ≥ 1. Source: Andersen, Borgan, Gill & Keiding (1993), Statistical models based on counting
processes, II.4, VII.6; Holford (1980), Biometrics 36.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.hazard_regression.surv import Hazards

_FARTHEST = 8.0
"""|η| at the most: a hazard ratio of 3,000 to the middle. Keeps exp(η) within the floats wherever
noise leads.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Of each record: E (J, rows) at risk by interval; position (rows,) of the interval that its
    time is in (J: beyond the last cut); seen (rows,) whether it ended there with the event."""

    at_risk: FloatArray
    position: NDArray[np.int64]
    seen: NDArray[np.bool_]


def watched(asked: Hazards, block: Block) -> Watched:
    """A record whose start is not before its time was never at risk, and its event is none."""
    time = block.columns[asked.time]
    start = block.columns[asked.start] if asked.start else np.zeros(block.rows)
    ends = np.asarray(asked.cuts)[:, None]
    begins = np.append(0.0, asked.cuts[:-1])[:, None]
    at_risk = np.maximum(np.minimum(time, ends) - np.maximum(start, begins), 0.0)
    position = np.searchsorted(ends[:, 0], time, side="left")
    entered = start < time if asked.start else np.ones(block.rows, dtype=bool)
    seen = (block.columns[asked.event] == 1) & (position < len(ends)) & entered
    return Watched(at_risk, position, seen)


def stopped(
    found: Watched, hazards: FloatArray, eta: FloatArray, stop: float
) -> tuple[FloatArray, FloatArray]:
    """(δ, Λ), each (J, rows), at hazards (J,) λ and predictors (rows,) η; stop: c."""
    rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
    running = np.cumsum(found.at_risk * hazards[:, None] * rate, axis=0)
    kept = found.seen & (running[-1] <= stop)
    cut = np.minimum(running, stop)
    return events(found, kept), np.diff(cut, axis=0, prepend=0.0)


def events(found: Watched, kept: NDArray[np.bool_]) -> FloatArray:
    """(J, rows): 1 where a kept event was seen in the interval."""
    rows = np.arange(len(found.at_risk))[:, None]
    return np.where((found.position == rows) & kept, 1.0, 0.0)
