# SPDX-License-Identifier: Apache-2.0
"""The last steps of a partial likelihood, with scores cut as a whole at a rank from the top: the
second moment of the roots, the score, the score with its meat (fitting.whole_newton).
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    OneVector,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.beliefs import Stepped, covariance, surprise
from reticent_server.fitting.curvature import StepView
from reticent_server.fitting.filter import Moved
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.row_tail import allowance_covariance
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.state import StepPlace
from reticent_server.fitting.whole_budget import WHOLE_STEPS
from reticent_server.fitting.whole_newton import Cuts, Whole, fitted, known_curvature
from reticent_server.kinds.hazard_regression.partial_budget import PartialBudget
from reticent_server.kinds.hazard_regression.person_passes import (
    PersonPasses,
    mean_of,
    model_of,
    moved,
    score_of,
    scored,
)
from reticent_server.numerics.matrices import power

_ALIGNED = 0.5
"""Of what a cut takes by public persons, in the directions that it is in: where age is the axis and
few have the event these have hazards, and scores, that nobody has, and intervals are declined
(nafld by age; without it they held .46).
"""
_REACH = 1.0  # change of the predictor of a person as far off as the cut, in a step
_TINY = 1e-12  # of what is divided by


@dataclass(frozen=True, slots=True, eq=False)
class LastSteps:
    """The last WHOLE_STEPS steps."""

    over: PersonPasses
    budget: PartialBudget

    def run(
        self, place: StepPlace, cuts: Cuts
    ) -> Generator[Step, tuple[Released, ...], tuple[Whole, StandardFit]]:
        """Where they lead, and the fit with its errors."""
        whole = yield from self._first(place, cuts)
        for _ in range(WHOLE_STEPS - 2):
            whole = yield from self._again(whole)
        return (yield from self._last(whole))

    def _gradient(self, cuts: Cuts, t: int) -> VectorSum:
        rho = self.budget.fit.gradients[t]
        return VectorSum(self.over.sizes.size, cuts.score.length, rho, self.over.unit_rows)

    def _first(self, place: StepPlace, cuts: Cuts) -> Generator[Step, tuple[Released, ...], Whole]:
        k, t, score = self.over.sizes.size, place.t, score_of(place)
        roots = GramSum(k, cuts.reach, self.budget.fit.jacobians[t], self.over.unit_rows)
        g, moment = yield SumStep(
            f"newton step {t + 1}",
            (self._gradient(cuts, t), roots),
            self.over.map(place, curvature=True),
        )
        known = known_curvature(place, score, moment, cuts)
        wide = max(cuts.reach, cuts.score.length) ** 2
        return _after(Whole(place, score, cuts, known, wide, moment, mean_of(g, place)))

    def _again(self, whole: Whole) -> Generator[Step, tuple[Released, ...], Whole]:
        place = whole.place
        part = self._gradient(whole.cuts, place.t)
        (g,) = yield SumStep(f"newton step {place.t + 1}", (part,), self.over.map(place))
        return _after(replace(whole, mean=mean_of(g, place)))

    def _last(
        self, whole: Whole
    ) -> Generator[Step, tuple[Released, ...], tuple[Whole, StandardFit]]:
        place, k = whole.place, self.over.sizes.size
        meat_part = GramSum(k, whole.cuts.score.length, self.budget.fit.meat, self.over.unit_rows)
        g, meat = yield SumStep(
            f"newton step {place.t + 1}",
            (self._gradient(whole.cuts, place.t), meat_part),
            self.over.map(place, meat=True),
            joint=OneVector(vector=0, meat=1),
        )
        whole = _after(replace(whole, mean=mean_of(g, place)))
        return whole, replace(fitted(whole, meat), events=self._events(whole))

    def _events(self, whole: Whole) -> FloatArray:
        """(k,) about how many events decide each coefficient: (Σ c)²/Σ c² of events, each of which
        adds c to the coefficient's information, by the public rows at risk.
        """
        place = whole.place
        model = model_of(place)
        A = np.linalg.inv(whole.curvature.H)
        L = back_transform(self.over.coding).matrix @ model.whitening.transform.T @ A
        told, squared = model.weight_of_events(place.direction, L)
        return np.asarray(told**2 / np.maximum(squared, _TINY))


def _after(whole: Whole) -> Whole:
    """After a step with the score that `whole` has: the same coordinates, a new baseline."""
    place, curvature, mean = whole.place, whole.curvature, whole.mean
    chance = surprise(place.state.beliefs, curvature, mean.noise, mean.value)
    state = place.state
    seen = StepView(state.beliefs, curvature, mean.value, mean.noise, state.way, place.rows)
    step = shortened(place.score.curvature.last_step(seen), _REACH / whole.cuts.score.length)
    place = replace(place, state=moved(place, step), t=place.t + 1)
    return replace(whole, place=scored(place), chance=chance)


def shortened(step: Stepped, most: float) -> Stepped:
    """A step whose way (k,) is no longer than `most`; what is cut off is added to C. Beyond it the
    cumulative hazards of persons as far off as the cut grow by more than e, and what the curvature
    at the place says of the way no longer holds.
    """
    way = step.way * min(1.0, most / max(float(np.linalg.norm(step.way)), _TINY))
    rest = step.way - way
    return Stepped.sure(Moved(way, covariance(step.beliefs) + np.outer(rest, rest)))


def allowed(fit: StandardFit, H: FloatArray, *, cut: FloatArray, unsure: float) -> StandardFit:
    """With an allowance for what the cut takes, cut (k, k) of the solution in u, beside that of any
    direction; and for the baseline. H: (k, k) the curvature; unsure: the variance of each
    coordinate of the sum of scores, in standardised units of the regressors.
    """
    W = fit.transform
    A = np.linalg.inv(H) / fit.count
    baseline = unsure * W.T @ A @ W @ W.T @ A.T @ W
    cut = W.T @ cut @ W
    taken = cut if fit.taken is None else fit.taken + cut
    return replace(fit, taken=taken, privacy=fit.privacy + cut + baseline)


def aligned(H: FloatArray, length: float, scores: FloatArray) -> FloatArray:
    """(k, k) of the solution in u, by what a cut at `length` takes of public persons' scores (rows,
    k), each scaled down to it: one direction that all of them are in is not told by their lengths
    alone.
    """
    lengths = np.linalg.norm(scores, axis=1)
    taken = scores * (1 - np.minimum(length, lengths) / np.maximum(lengths, _TINY))[:, None]
    excess = float(np.mean(np.linalg.norm(taken, axis=1)))
    directions = taken.T @ taken / max(float(np.sum(taken**2)), _TINY)
    A = power(allowance_covariance(1.0, H), 0.5)
    return np.asarray((_ALIGNED * excess) ** 2 * A @ directions @ A.T)
