# SPDX-License-Identifier: Apache-2.0
"""The released counts of a follow-up's cells, and the numbers at risk, with the covariance of their
noise.

Post-processing of one release of RunningCounts, y = B h + z for each line (latest time first).
h = B⁻¹y has noise of the covariance s²(BᵀB)⁻¹ on a line. Two facts are then put in by least
squares: no event is seen beyond the last cut; and where no record can be out of use, all cells add
up to the public number of records n.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.kinds.shared.follow_up.question import EVENT, FollowUp
from reticent_server.numerics.running_factor import FACTOR_BITS, running_factor


@dataclass(frozen=True, slots=True, eq=False)
class LifeTable:
    """Counts (G, A, J + 1) by group, status and position in time, unbiased; A statuses: the causes
    of the event (usually one), and last those without it.

    Cov of cells (g, a, i) and (g′, b, j): 1{(g, a) = (g′, b)} covariance[a, i, j] − shared[a, i]
    shared[b, j]. covariance (A, J + 1, J + 1), shared (A, J + 1).
    """

    counts: FloatArray
    covariance: FloatArray
    shared: FloatArray

    @property
    def intervals(self) -> int:
        """J."""
        return int(self.counts.shape[2]) - 1

    @property
    def events(self) -> FloatArray:
        """(G, J) events seen in each interval, of all causes."""
        return np.asarray(self.counts[:, :-1, :-1].sum(axis=1))

    def of(self, groups: slice | NDArray[np.int64]) -> "LifeTable":
        """The table of some of the groups."""
        return replace(self, counts=self.counts[groups])

    @property
    def entering(self) -> FloatArray:
        """(G, J) persons followed beyond the middle of the interval before: at risk when each
        begins, where that interval is short (question.with_numbers_at_risk)."""
        later: FloatArray = np.cumsum(self.counts.sum(axis=1)[:, ::-1], axis=1)[:, ::-1]
        return later[:, :-1]

    @property
    def at_risk(self) -> FloatArray:
        """(G, J) r: persons at risk in each interval."""
        return np.asarray(np.einsum("jai,gai->gj", self.risk_weights, self.counts))

    @property
    def risk_weights(self) -> FloatArray:
        """(J, A, J + 1) by which a group's counts add up to its r."""
        weights = self.left_weights
        weights[:, :-1] += np.eye(self.intervals, self.intervals + 1)[:, None]
        return weights

    @property
    def left_weights(self) -> FloatArray:
        """(J, A, J + 1) by which they add up to r − e, those of them who have no event in the
        interval."""
        J, A = self.intervals, self.counts.shape[1]
        return np.repeat(np.triu(np.ones((J, J + 1)), 1)[:, None], A, axis=1)

    def noise(self, gradient: FloatArray) -> FloatArray:
        """(k, k) noise covariance of k linear functions of one group's counts, gradient
        (k, A, J + 1)."""
        return self.noise_of_groups(gradient[:, None])

    def noise_of_groups(self, gradient: FloatArray) -> FloatArray:
        """(k, k) noise covariance of k linear functions of all groups' counts, gradient
        (k, G, A, J + 1)."""
        by_status = np.moveaxis(gradient, 2, 0)
        moved = by_status @ self.covariance[:, None]
        own = np.tensordot(moved, by_status, axes=((0, 2, 3), (0, 2, 3)))
        shared = np.einsum("kgai,ai->k", gradient, self.shared)
        return np.asarray(own - np.outer(shared, shared))

    @property
    def risk_noise(self) -> FloatArray:
        """(J,) sd of the noise in r, the same in every group."""
        return np.sqrt(np.maximum(np.diag(self.noise(self.risk_weights)), 0.0))


def life_table(asked: FollowUp, released: Released, n: int) -> LifeTable:
    """From the released lines; n: the public number of records."""
    length = asked.intervals + 1
    inverse = np.linalg.inv(running_factor(length) / (1 << FACTOR_BITS))[::-1, ::-1]
    lines = released.values.reshape(asked.size, asked.statuses, length)[:, :, ::-1]
    counts = np.einsum("ij,gaj->gai", inverse, lines)
    covariance = np.stack([released.sd**2 * inverse @ inverse.T] * asked.statuses)
    counts, covariance = _without_late_events(counts, covariance)
    shared = np.zeros((asked.statuses, length))
    if asked.design.masked:
        return LifeTable(counts, covariance, shared)
    leverage = covariance.sum(axis=2)
    total = asked.size * leverage.sum()
    counts = counts - leverage * ((counts.sum() - n) / total)
    return LifeTable(counts, covariance, leverage / np.sqrt(total))


def _without_late_events(
    counts: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Given that no event is beyond the last cut; every line of events has the same covariance."""
    known = covariance[EVENT, :, -1] / covariance[EVENT, -1, -1]
    counts = counts.copy()
    counts[:, :-1] -= counts[:, :-1, -1:] * known
    covariance = covariance.copy()
    covariance[:-1] -= np.outer(known, covariance[EVENT, -1])
    return counts, covariance
