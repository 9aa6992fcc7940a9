# SPDX-License-Identifier: Apache-2.0
"""The parts of a step by name: what is asked of the records, and what was released.

The order in which a step's map gives its contributions stands here, once.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reticent_server.domain.steps import (
    Block,
    Contribution,
    FloatArray,
    GramSum,
    OneVector,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import JointParts
from reticent_server.fitting.filter import StepCurvature
from reticent_server.fitting.identifiability import Directions
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.person_scores import as_matrix
from reticent_server.fitting.scale import MeanScore
from reticent_server.fitting.standard_fit import Freedom
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.trust import SOUND, TrustVerdict

RowMap = Callable[[Block], tuple[Contribution, ...]]
Settling = Generator[Step, tuple[Released, ...], tuple["Contributions", State]]


@dataclass(frozen=True, slots=True, eq=False)
class StepReleases:
    """What a step has released. n, shift: of the records, to each of whose scores `shift` (q,) was
    added."""

    gradient: Released
    jacobian: Released | None
    n: int
    shift: FloatArray

    def mean_score(self, count: float) -> MeanScore:
        """g (q,) over `count` records in use, with its noise."""
        g = (self.gradient.values - self.n * self.shift) / count
        return MeanScore(g, (self.gradient.sd / count) ** 2 * np.eye(len(g)))


@dataclass(frozen=True, slots=True, eq=False)
class LastReleases:
    """The same of the last step. jacobian: (q, q). equation: of the scale, where its step is
    joint."""

    scores: StepReleases
    jacobian: Released
    meat: Released
    equation: Released | None


@dataclass(frozen=True, slots=True, eq=False)
class StepParts:
    """The parts of a step before the last, in the order in which `scores` gives them; joint: those
    that are of one vector of a record."""

    t: int
    n: int
    shift: FloatArray
    scores: RowMap
    joint: JointParts
    gradient: VectorSum
    jacobian: GramSum | None

    @property
    def step(self) -> SumStep:
        """The pass over the table."""
        label = f"newton step {self.t + 1}"
        if self.jacobian is None:
            return SumStep(label, (self.gradient,), self.scores)
        together = OneVector(vector=0, curvature=1) if self.joint.step else None
        return SumStep(label, (self.gradient, self.jacobian), self.scores, joint=together)

    def read(self, released: tuple[Released, ...]) -> StepReleases:
        """The releases of `step` by name."""
        gradient, *jacobian = released
        return StepReleases(gradient, jacobian[0] if jacobian else None, self.n, self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class LastParts:
    """The same of the last step. A Jacobian that is one vector stands for a symmetric matrix."""

    t: int
    n: int
    shift: FloatArray
    scores: RowMap
    joint: JointParts
    gradient: VectorSum
    jacobian: GramSum | VectorSum
    meat: GramSum
    equation: VectorSum | None = None

    @property
    def step(self) -> SumStep:
        """The pass over the table."""
        parts: tuple[Part, ...] = (self.gradient, self.jacobian, self.meat)
        if self.equation is not None:
            parts = (*parts, self.equation)
        meat = 2 if self.joint.meat else None
        together = OneVector(vector=0, curvature=1, meat=meat) if self.joint.step else None
        return SumStep(f"newton step {self.t + 1}", parts, self.scores, joint=together)

    def read(self, released: tuple[Released, ...]) -> LastReleases:
        """The releases of `step` by name."""
        gradient, jacobian, meat, *equation = released
        matrix = as_matrix(jacobian) if isinstance(self.jacobian, VectorSum) else jacobian
        scores = StepReleases(gradient, matrix, self.n, self.shift)
        return LastReleases(scores, matrix, meat, equation[0] if equation else None)


@dataclass(frozen=True, slots=True, eq=False)
class FinalStep:
    """The last step, taken, in u. curvature: as measured; directions: those resolved; sampling and
    left: (q, q), the sandwich and what the filter says is left of the way."""

    place: StepPlace
    curvature: StepCurvature
    releases: LastReleases
    directions: Directions
    sampling: FloatArray
    left: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """sampling and privacy: covariances (q, q) in u. freedom: where the first is known to some
    degrees."""

    sampling: FloatArray
    privacy: FloatArray
    freedom: Freedom | None = None

    @property
    def verdict(self) -> TrustVerdict:
        """Whether standard errors between persons are to be trusted; those of rows are."""
        return SOUND if self.freedom is None else self.freedom.verdict


class Contributions(Protocol):
    """How records add up."""

    def prepared(self, place: StepPlace, passes: Passes) -> Settling:
        """Releases what a step's clip needs; the contributions with it, and the state before the
        step."""
        ...

    def step(self, place: StepPlace) -> StepParts:
        """A step before the last."""
        ...

    def last_step(self, place: StepPlace) -> LastParts:
        """The last step."""
        ...

    def errors(self, last: FinalStep) -> Errors:
        """The standard errors of the fit, from the last step."""
        ...
