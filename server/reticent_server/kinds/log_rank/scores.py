# SPDX-License-Identifier: Apache-2.0
"""What each person adds to the log-rank statistic, given released hazards and shares of the groups
at risk.

With π_j the groups' shares of those at risk in interval j and Λ_j its cumulative hazard, both from
a pilot, a person of group g who leaves in interval j after the fraction a of it adds, event δ,

    δ (e_g − π_j) − Σ_{i<j} (e_g − π_i) Λ_i − a (e_g − π_j) Λ_j        ∈ R^G,

in G − 1 orthonormal contrasts.

Where the groups have one hazard, its mean is 0 for any π if Λ is right, and the sum over persons is
0 for any Λ if π is right: what the pilot is wrong by enters as a product of two errors. With π and
Λ of the table itself the sum is the log-rank statistic, observed minus expected events. Follow-up
ends after interval `until`, as if everybody were censored there: later events are left out together
with the time at risk for them, which keeps the mean 0.

Weights w_j of the intervals stand before each term. Fleming and Harrington's are S^ρ (1 − S)^γ with
S the pilot's survival in the middle of the interval, all groups together: ρ = γ = 0 is the log-rank
test, ρ = 1 looks at early differences (Peto & Peto), γ = 1 at late ones. They are functions of
released numbers, so the mean stays 0 whatever they are.

Strata have a pilot of their own (shares, hazards, weights), and their scores are added up: groups
are compared within each. A trend takes one contrast in place of G − 1, the levels' places 0, 1, …
(Tarone 1975).

Groups whose number of persons in the pilot is not above its noise are not compared: their persons
add 0, and π is of the others. Which they are is read off the released pilot.

Follow-up of a stratum ends where its number at risk is below 3 sd of its noise: shares of groups
are noise from there on. Intervals are joined to blocks in which π and Λ/width are constant, as few
as it takes for the events of a block to be 3 sd of their noise: a hazard that is noise would make
the products large. Of what is left of them the variance is counted: by block that of δπ, the noise
of a group's number at risk over the number of all, times that of r δΛ, the noise of e − Λr.

Source: Mantel (1966); Tarone (1975); Fleming & Harrington (1991), Counting processes and survival
analysis, chapters 3 and 7.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.follow_up.question import EVENT, FollowUp
from reticent_server.kinds.shared.follow_up.table import LifeTable

_SIGNAL = 3.0  # events of a block over their noise's sd; 1 gave levels of .10 at n = 500, ε = 1
_LEAST_RADIUS = 1e-3  # keeps a part well defined where a pilot says that all persons are alike


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """What a pilot says of each interval: shares (G, J) of the groups at risk, cumulative hazard
    (J,), the variance of the statistic (J, G, G), that (J,) of what the pilot's errors add to it,
    and whether (J,) those at risk are still above their noise."""

    shares: FloatArray
    hazard: FloatArray
    variance: FloatArray
    errors: FloatArray
    followed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LogRankScores:
    """What persons add, in C contrasts: `seen` (S G, C, K) for an event, `lived` (S G, C, K + 1)
    for the time up to the start of an interval, K intervals, of the groups of each of S strata.
    radius: no person's is longer. variance (C, C) of their sum, the pilot's errors included."""

    seen: FloatArray
    lived: FloatArray
    radius: float
    variance: FloatArray

    @property
    def until(self) -> int:
        """K."""
        return int(self.seen.shape[2])


@dataclass(frozen=True, slots=True, eq=False)
class LogRankMap:
    """(C, rows) each record's score; zero for records in no cell."""

    asked: FollowUp
    scores: LogRankScores

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        group, position, status, inside = self.asked.cells(block)
        K = self.scores.until
        ends = np.asarray(self.asked.cuts[:K])
        starts = np.asarray(self.asked.starts[:K])
        g = np.where(inside, group, 0.0).astype(np.int64)
        j = np.where(inside, np.minimum(position, K - 1), 0.0).astype(np.int64)
        time = np.where(inside, block.columns[self.asked.time], 0.0)
        part = np.clip((time - starts[j]) / (ends[j] - starts[j]), 0.0, 1.0)
        seen = inside & (status == EVENT) & (position < K)
        before, after = self.scores.lived[g, :, j], self.scores.lived[g, :, j + 1]
        score = before + part[:, None] * (after - before)
        score = score + np.where(seen[:, None], self.scores.seen[g, :, j], 0.0)
        return (np.ascontiguousarray(np.where(inside[:, None], score, 0.0).T),)


def pilot_of(table: LifeTable) -> Pilot:
    """From released counts."""
    J, G = table.intervals, len(table.counts)
    at_risk = np.maximum(table.at_risk.sum(axis=0), 0.0)
    noise_only = ~clear(at_risk, np.sqrt(G) * table.risk_noise)
    until = max(int(np.argmax(np.append(noise_only, True))), 1)
    block, labels = _blocks(table, until)
    weights = np.einsum("kj,jai->kai", block, table.risk_weights)
    risk_noise = np.maximum(np.diag(table.noise(weights)), 0.0)
    groups = np.maximum(block @ table.at_risk.T, 0.0).T + 1e-9
    whole = np.maximum(groups.sum(axis=0), _SIGNAL * np.sqrt(G * risk_noise))
    shares = groups / groups.sum(axis=0)
    hazard = np.clip(block @ table.events.sum(axis=0) / whole, 0.0, 1.0)
    noise = _noise_of(table, block, hazard[:, None, None] * weights)
    errors = noise * risk_noise / whole**2 / block.sum(axis=1)
    shares, hazard = shares[:, labels], hazard[labels]
    spread = np.einsum("gj,gh->jgh", shares, np.eye(G)) - np.einsum("gj,hj->jgh", shares, shares)
    variance = (hazard * at_risk)[:, None, None] * spread
    return Pilot(shares, hazard, variance, errors[labels], np.arange(J) < until)


def scores_of(
    pilots: Sequence[Pilot],
    rho: float,
    comparison: FloatArray,
    emphasis: tuple[float, float] = (0.0, 0.0),
    compared: NDArray[np.bool_] | None = None,
) -> LogRankScores:
    """Scores up to the interval with which the test is most powerful, at `rho` (not in units) of
    their sum. pilots: of each stratum. comparison (C, G): contrasts of the groups. emphasis: ρ and
    γ of the weights. compared (G,): persons of the other groups add 0; None: all."""
    C, J = len(comparison), len(pilots[0].hazard)
    parts = [_weighted(pilot, comparison, _weights(pilot, *emphasis)) for pilot in pilots]
    every = np.ones(comparison.shape[1]) if compared is None else compared.astype(np.float64)
    deviation = np.concatenate([part[0] * every[:, None, None] for part in parts])
    lived = np.concatenate([part[1] * every[:, None, None] for part in parts])
    variance = np.cumsum(np.sum([part[2] for part in parts], axis=0), axis=0)
    errors = np.cumsum(np.sum([part[3] for part in parts], axis=0))
    radii = np.maximum.accumulate(_radii(deviation, lived))
    signal = np.einsum("jcc->j", variance) / C
    noise = 2 * radii**2 / rho
    K = int(np.argmax(signal**2 / (signal + noise + errors + 1e-300))) + 1 if J else 0
    within = variance[K - 1] + errors[K - 1] * np.eye(C)
    return LogRankScores(deviation[:, :, :K], lived[:, :, : K + 1], float(radii[K - 1]), within)


def _weighted(
    pilot: Pilot, comparison: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of one stratum: what an event adds (G, C, J), what was lived through (G, C, J + 1), and by
    interval the variance (J, C, C) and that of the pilot's errors (J,)."""
    apart = np.eye(len(pilot.shares))[:, :, None] - pilot.shares[:, None]
    deviation = weights * np.einsum("cg,gpj->pcj", comparison, apart)
    lived = np.cumsum(-deviation * pilot.hazard, axis=2)
    lived = np.concatenate([np.zeros((*lived.shape[:2], 1)), lived], axis=2)
    variance = comparison @ pilot.variance @ comparison.T
    return deviation, lived, weights[:, None, None] ** 2 * variance, weights**2 * pilot.errors


def _weights(pilot: Pilot, rho: float, gamma: float) -> FloatArray:
    """(J,) Fleming and Harrington's; 0 from where a stratum's persons at risk are noise."""
    survival = np.exp(pilot.hazard / 2 - np.cumsum(pilot.hazard))
    return np.asarray(survival**rho * (1 - survival) ** gamma * pilot.followed)


def contrasts(groups: int) -> FloatArray:
    """(G − 1, G) orthonormal rows that add up to 0 (Helmert)."""
    rows = np.zeros((groups - 1, groups))
    for k in range(1, groups):
        rows[k - 1, :k], rows[k - 1, k] = 1.0, -float(k)
        rows[k - 1] /= np.sqrt(k * (k + 1))
    return rows


def trend(places: NDArray[np.int64]) -> FloatArray:
    """(1, G) a contrast of the groups' places (G,), of length 1."""
    apart = places - places.mean()
    return np.asarray(apart / np.linalg.norm(apart))[None]


def _radii(deviation: FloatArray, lived: FloatArray) -> FloatArray:
    """(J,) the longest score of a person who leaves in an interval, at its ends: between them it is
    convex."""
    seen = [deviation + lived[:, :, :-1], deviation + lived[:, :, 1:]]
    lengths = [np.sqrt(np.sum(v**2, axis=1)).max(axis=0) for v in [*seen, lived[:, :, 1:]]]
    return np.asarray(np.maximum(np.max(lengths, axis=0), _LEAST_RADIUS))


def _noise_of(table: LifeTable, block: FloatArray, expected: FloatArray | float) -> FloatArray:
    """(K,) noise variance of all groups' events in each block of intervals (K, J), less those that
    are expected by weights (K, 2, J + 1) of the counts."""
    J = table.intervals
    weights = np.zeros((len(block), 2, J + 1))
    weights[:, EVENT, :J] = block
    of_all = np.repeat((weights - expected)[:, None], len(table.counts), axis=1)
    return np.maximum(np.diag(table.noise_of_groups(of_all)), 0.0)


def _blocks(
    table: LifeTable, until: int
) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """(K, J) which of the first `until` intervals make a block, and (J,) each one's block; later
    ones have the last one's."""
    places = np.arange(table.intervals, dtype=np.int64)
    total, K = float(table.events[:, :until].sum()), until
    while True:
        labels = np.minimum(places * K // until, K - 1)
        block = ((labels == np.arange(K)[:, None]) & (places < until)).astype(np.float64)
        if K == 1 or total >= _SIGNAL * float(np.sqrt(_noise_of(table, block, 0.0)).sum()):
            return block, labels
        K = (K + 1) // 2
