# SPDX-License-Identifier: Apache-2.0
"""Which rows each pass of a fit goes over: all of them, or early on a part (fitting.budget)."""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step, SumStep
from reticent_server.fitting.budget import PART_OFF, FitBudget, Sizes
from reticent_server.fitting.rounds import part_of, whole_of
from reticent_server.fitting.state import State, StepPlace

Asking = Generator[Step, tuple[Released, ...], tuple[Released, ...]]


@dataclass(frozen=True, slots=True)
class Passes:
    """The rows of each pass: all, or, where the budget has a stride, before the last two those of
    one unit of it."""

    budget: FitBudget
    sizes: Sizes

    @property
    def strides(self) -> list[int]:
        """For each round of the whitening, one of how many units it goes over; 1: all."""
        rounds = range(len(self.budget.rounds))
        return [self.budget.stride if self.budget.round_on_part(k) else 1 for k in rounds]

    def stride(self, t: int) -> int:
        """The stride of step t and of the scale after it."""
        return self.budget.stride if self.budget.on_part(t) else 1

    def asked(self, step: SumStep, t: int) -> Asking:
        """What a step releases of all rows, as of step t; of a part, as it would be of all."""
        return (yield from self._of_part(step, self.stride(t)))

    def asked_early(self, step: SumStep) -> Asking:
        """The same of a step whose sums only set constants."""
        return (yield from self._of_part(step, self.budget.stride))

    def _of_part(self, step: SumStep, stride: int) -> Asking:
        released = yield replace(step, subset=part_of(self.sizes, stride))
        return whole_of(released, self.sizes.n)

    def arrived(self, place: StepPlace) -> State:
        """The state at a place, with what its rows may differ by from those of the step before: in
        each step over all rows, as the first of them may leave a part of the difference, where the
        curvature is not what it was taken for."""
        state = place.state
        if not self.rejoins(place.t):
            return state
        return state.widened(self.allowance(place.curvature.H, place.meat, state.count))

    def rejoins(self, t: int) -> bool:
        """Whether step t goes over other rows than an earlier one."""
        return self.budget.after_part(t)

    def allowance(self, H: FloatArray, Q: FloatArray, count: float) -> FloatArray:
        """(q, q) covariance in u of what the solution differs by there. The part is one unit of
        `stride`, so it is (stride − 1)/n of that of a record's score Q, times the rows of a unit,
        which may be alike."""
        A = np.linalg.inv(H)
        share = PART_OFF * self.sizes.unit_rows * (self.budget.stride - 1) / count
        return np.asarray(share * A @ Q @ A.T)
