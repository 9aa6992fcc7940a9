# SPDX-License-Identifier: Apache-2.0
"""Early steps of a partial likelihood: from β = 0 to near the solution, with scores cut at a
planned length."""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import GramSum, Part, Released, Step, SumStep, VectorSum
from reticent_server.fitting.beliefs import EXPECTED, beliefs_of
from reticent_server.fitting.curvature import StepView
from reticent_server.fitting.filter import no_correction, prior
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.whole_budget import RANK, WHOLE_STEPS
from reticent_server.fitting.whole_newton import (
    LEAST_INFORMATION,
    Cuts,
    informed_place,
    known_curvature,
)
from reticent_server.fitting.whole_scores import UNLIKE
from reticent_server.kinds.hazard_regression.partial_budget import TURN, PartialBudget
from reticent_server.kinds.hazard_regression.person_passes import (
    PersonPasses,
    mean_of,
    moved,
    score_of,
    scored,
)
from reticent_server.kinds.hazard_regression.public_persons import PersonsModel
from reticent_server.numerics.matrices import floored, power

_START = 1.5  # of a predictor that is off before any step: a hazard ratio of 20 between extremes
_EARLY_CUT, _LEAST_CUT = 0.05, 1e-3  # of public persons' scores, beyond the cut of an early step
# of whitened scores: where all public ones are 0, a sum still has a scale
_SMALLEST_CLIP = 2.0**-20
_NO_CUT = RowCut(0.0, 0.0, 0.0, 0.0)  # of early scores, which nothing is told of


@dataclass(frozen=True, slots=True, eq=False)
class EarlySteps:
    """All steps but the last WHOLE_STEPS."""

    over: PersonPasses
    budget: PartialBudget

    def start(self, model: PersonsModel, count: float, *, present: bool) -> StepPlace:
        """β = 0. count: of the records in use; present: whether there are any."""
        k = self.over.sizes.size
        C = prior(model.whitening, _START)
        known = no_correction(model.whitening, UNLIKE)
        state = State(np.zeros(k), beliefs_of(EXPECTED, C), 1.0, known, count, present)
        place = StepPlace(model, state, model.score_at(np.zeros(k)), 0, last=False)
        return scored(informed_place(place))

    def run(self, place: StepPlace) -> Generator[Step, tuple[Released, ...], StepPlace]:
        """From a start to where the last steps begin."""
        for _ in range(self.budget.fit.steps - WHOLE_STEPS):
            place = yield from self._step(place)
        return place

    def _step(self, place: StepPlace) -> Generator[Step, tuple[Released, ...], StepPlace]:
        """The last of them with the roots' second moment, by which coordinates are turned."""
        score, budget, k = score_of(place), self.budget, self.over.sizes.size
        longest = np.quantile(score.lengths, 1 - self._early_share(place.state.count))
        clip = max(float(longest), _SMALLEST_CLIP)
        parts: tuple[Part, ...] = (
            VectorSum(k, clip, budget.fit.gradients[place.t], self.over.unit_rows),
        )
        last = place.t == TURN
        reach = self.over.reach
        if last:
            parts = (*parts, GramSum(k, reach, budget.moment, self.over.unit_rows))
        g, *more = yield SumStep(
            f"newton step {place.t + 1}", parts, self.over.map(place, curvature=last)
        )
        place = replace(place, score=score)
        if last:
            known = known_curvature(place, score, more[0], Cuts(_NO_CUT, reach, 0.0))
            place = replace(place, state=replace(place.state, known=known))
        place = _stepped(place, g)
        return scored(turned(place) if last else place)

    def _early_share(self, count: float) -> float:
        """Of public persons' scores, beyond the cut of an early step: as many as those of all early
        steps together would be cut at, by the rule of the last ones.
        """
        early = sum(self.budget.fit.gradients[:-WHOLE_STEPS])
        sd = planned_sd(VectorSum(self.over.sizes.size, 1.0, early, self.over.unit_rows))
        return float(np.clip(RANK * sd / count, _LEAST_CUT, _EARLY_CUT))


def _stepped(place: StepPlace, g: Released) -> StepPlace:
    state, mean = place.state, mean_of(g, place)
    seen = StepView(state.beliefs, place.curvature, mean.value, mean.noise, state.way, place.rows)
    step = place.score.curvature.step(seen)
    return replace(place, state=moved(place, step), t=place.t + 1)


def turned(place: StepPlace) -> StepPlace:
    """In coordinates in which the records' information, as measured, is what that of the public
    rows is in theirs: the rows stay, so that the records look like them from here on.
    """
    whitening, known = place.model.whitening, place.state.known
    back = power(place.expected, 0.5)
    E = floored(known.E, LEAST_INFORMATION, 1 / LEAST_INFORMATION)
    turn = back @ power(E, -0.5) @ np.linalg.inv(back)
    W = invertible_on_lattice(turn @ whitening.transform)
    turn = np.asarray(np.linalg.solve(whitening.transform.T, W.T).T, dtype=np.float64)
    out = np.linalg.inv(turn)
    model = replace(place.model, whitening=replace(whitening, transform=W))
    flat = replace(known, E=np.eye(len(W)))
    C = out.T @ place.state.covariance @ out
    state = replace(place.state.sure(C), known=flat)
    return replace(place, model=model, state=state)
