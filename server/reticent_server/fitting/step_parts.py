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
    """What a step has released: (q, q) the Jacobian and the meat, and the scale's equation, where
    it has these. n, shift: of the records, to each of whose scores `shift` (q,) was added."""

    n: int
    shift: FloatArray
    gradient: Released
    jacobian: Released | None = None
    meat: Released | None = None
    equation: Released | None = None

    @property
    def matrices(self) -> tuple[Released, Released]:
        """The Jacobian and the meat. Raises ValueError before the last step."""
        if self.jacobian is None or self.meat is None:
            raise ValueError("the last step alone releases both matrices")
        return self.jacobian, self.meat

    def mean_score(self, count: float) -> MeanScore:
        """g (q,) over `count` records in use, with its noise."""
        g = (self.gradient.values - self.n * self.shift) / count
        return MeanScore(g, (self.gradient.sd / count) ** 2 * np.eye(len(g)))


@dataclass(frozen=True, slots=True, eq=False)
class StepParts:
    """The parts of step t, in the order in which `scores` gives them: the last one has a Jacobian
    and a meat, and the scale's equation where its step is joint. A Jacobian that is one vector
    stands for a symmetric matrix. joint: those that are of one vector of a record."""

    t: int
    n: int
    shift: FloatArray
    scores: RowMap
    joint: JointParts
    gradient: VectorSum
    jacobian: GramSum | VectorSum | None
    meat: GramSum | None = None
    equation: VectorSum | None = None

    @property
    def _named(self) -> dict[str, Part]:
        parts = {
            "gradient": self.gradient,
            "jacobian": self.jacobian,
            "meat": self.meat,
            "equation": self.equation,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def step(self) -> SumStep:
        """The pass over the table."""
        meat = 2 if self.joint.meat and self.meat is not None else None
        together = OneVector(vector=0, curvature=1, meat=meat)
        joint = together if self.joint.step and self.jacobian is not None else None
        parts = tuple(self._named.values())
        return SumStep(f"newton step {self.t + 1}", parts, self.scores, joint=joint)

    def read(self, released: tuple[Released, ...]) -> StepReleases:
        """The releases of `step` by name."""
        found = dict(zip(self._named, released, strict=True))
        if isinstance(self.jacobian, VectorSum):
            found["jacobian"] = as_matrix(found["jacobian"])
        return StepReleases(self.n, self.shift, **found)


@dataclass(frozen=True, slots=True, eq=False)
class FinalStep:
    """The last step, taken, in u. curvature: as measured, with the released jacobian (q, q) and
    meat; directions: those resolved; sampling and left: (q, q), the sandwich and what the filter
    says is left of the way. chance: in 0 to 1, of a mean score as far from what was expected as
    the last one is."""

    place: StepPlace
    curvature: StepCurvature
    jacobian: Released
    meat: Released
    directions: Directions
    sampling: FloatArray
    left: FloatArray
    chance: float = 1.0


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

    def last_step(self, place: StepPlace) -> StepParts:
        """The last step."""
        ...

    def errors(self, last: FinalStep) -> Errors:
        """The standard errors of the fit, from the last step."""
        ...
