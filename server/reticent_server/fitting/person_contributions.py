# SPDX-License-Identifier: Apache-2.0
"""The contributions of persons to a step: the scores of a person's rows are added, and the sum is
clipped.

Mathematics and proof: fitting.person_scores.
"""

from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.filter import prior
from reticent_server.fitting.maps import ScoreMap
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.person_scores import (
    EARLY,
    RECLIPPED,
    Clusters,
    Lengths,
    PersonLengthsMap,
    PersonScoreMap,
    chosen,
    chosen_reach,
    triangle,
)
from reticent_server.fitting.score import Score
from reticent_server.fitting.standard_fit import Freedom
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.step_parts import (
    Contributions,
    Errors,
    FinalStep,
    Settling,
    StepParts,
)
from reticent_server.mechanisms.noisy_sum import noise_sd


@dataclass(frozen=True, slots=True, eq=False)
class PersonScores(Contributions):
    """A person adds k Σ w v q, clipped at C (fitting.person_scores): before the last step at a
    public multiple of a likely length, in it at a length that the histogram of `clusters`
    chooses."""

    coding: Coding
    budget: FitBudget
    sizes: Sizes
    clusters: Clusters | None = None

    def prepared(self, place: StepPlace, passes: Passes) -> Settling:
        """Before the last step: how long persons' sums are, and their Jacobians where these are
        summed."""
        if not place.last:
            return self, place.state
        counts, *reaches = yield from passes.asked_early(self._lengths_step(place))
        clusters = chosen(self._lengths, counts, self._clip_noise)
        if reaches:
            reach = chosen_reach(self._reaches(place.score), reaches[0])
            clusters = replace(clusters, reach=reach)
        return replace(self, clusters=clusters), self._reclipped(place)

    def step(self, place: StepPlace) -> StepParts:
        t, clip = place.t, self._lengths.unit * EARLY
        jacobian = self._row_jacobians(place.score, t) if self.budget.jacobians[t] else None
        scores = PersonScoreMap(
            ScoreMap(self.coding, place.point, self._centre, jacobian is not None), self._m, clip
        )
        gradient = self._gradient(clip, t)
        joint = self.budget.joint
        return StepParts(t, self.sizes.n, self._centre, scores, joint, gradient, jacobian)

    def last_step(self, place: StepPlace) -> StepParts:
        clusters, q, m = self._settled, self.sizes.size, self._m
        clip, t = clusters.clip, place.t
        scores = ScoreMap(self.coding, place.point, self._centre, curvature=True, meat=True)
        return StepParts(
            t=t,
            n=self.sizes.n,
            shift=self._centre,
            scores=PersonScoreMap(scores, m, clip, clusters.reach > 0),
            joint=self.budget.joint,
            gradient=self._gradient(clip, t),
            jacobian=self._jacobians(place.score, t),
            meat=GramSum(q, clip, self.budget.meat, 1, person_rows=m),
        )

    def errors(self, last: FinalStep) -> Errors:
        """With what the clip takes of skewed scores, and the degrees of freedom of a variance
        between so many persons."""
        clusters, place, directions = self._settled, last.place, last.directions
        count, W, left = place.state.count, place.model.whitening.transform, last.left
        A = np.asarray(np.linalg.inv(last.curvature.H))
        if self.sizes.skewed:
            left = left + (clusters.lost / count) ** 2 * A @ A.T
        sampling = last.sampling * (clusters.persons / max(clusters.persons - 1, 1.0))
        noise = last.meat.sd / count**2
        unsure = directions.unsure(last.curvature.J, W, last.jacobian.sd / count)
        return Errors(sampling, left, Freedom(clusters, noise, np.asarray(W.T @ A), unsure))

    @property
    def _m(self) -> int:
        return self.sizes.person_rows

    @property
    def _settled(self) -> Clusters:
        if self.clusters is None:
            raise ValueError("the last step of persons comes after their lengths")
        return self.clusters

    @property
    def _centre(self) -> FloatArray:
        return np.zeros(self.sizes.size)

    def _gradient(self, clip: float, t: int) -> VectorSum:
        return VectorSum(self.sizes.size, clip, self.budget.gradients[t], 1, self._m)

    def _jacobians(self, score: Score, t: int) -> GramSum | VectorSum:
        """The Jacobians of persons' sums where their reach was measured, else of rows."""
        reach, rho = self._settled.reach, self.budget.jacobians[t]
        if reach > 0:
            return VectorSum(triangle(self.sizes.size), reach, rho, 1, self._m)
        return self._row_jacobians(score, t)

    def _row_jacobians(self, score: Score, t: int) -> GramSum:
        root = float(np.sqrt(self.sizes.radius_squared)) * float(np.sqrt(score.curvature_bound))
        return GramSum(self.sizes.size, root, self.budget.jacobians[t], self._m, score.signed)

    @property
    def _lengths(self) -> Lengths:
        return Lengths(self.sizes.person_length)

    def _reaches(self, score: Score) -> Lengths:
        size = float(np.sqrt(self.sizes.size))
        return Lengths(self._m * size * self.sizes.mean_norm * score.most)

    def _lengths_step(self, place: StepPlace) -> SumStep:
        lengths, reaches = self._lengths, self._reaches(place.score)
        whole = self.budget.reaches > 0
        rows = ScoreMap(self.coding, place.point, self._centre, curvature=whole)
        parts = [lengths.part(self.budget.lengths, self._m)]
        parts += [reaches.part(self.budget.reaches, self._m)] if whole else []
        measured = PersonLengthsMap(rows, self._m, lengths, reaches if whole else None)
        return SumStep("lengths", tuple(parts), measured)

    @property
    def _clip_noise(self) -> float | None:
        """The noise of the last sum of scores that are skewed, in clips."""
        if not self.sizes.skewed:
            return None
        return noise_sd(VectorSum(self.sizes.size, 1.0, self.budget.gradients[-1], 1, self._m))

    def _reclipped(self, place: StepPlace) -> State:
        """With what the solution of the last clip may differ by from that of the early one."""
        if not self.sizes.skewed:
            return place.state
        reach = self.sizes.rms / place.score.most * place.score.unit
        return place.state.widened(prior(place.model.whitening, RECLIPPED * reach))
