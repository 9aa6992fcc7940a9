# SPDX-License-Identifier: Apache-2.0
"""What a generalised linear model asks of its family."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.budget import Signal
from reticent_server.fitting.score import Joint, Residuals
from reticent_server.kinds.glm.families.likelihood import LikelihoodScore
from reticent_server.kinds.glm.quasi import QuasiScore

_OFFSET = 5.0  # of the link by which a row's predictor may be off at the start
_LIKELIHOOD_OFFSET = 2.5
"""The same of a likelihood: about three standard deviations of the predictors of 14 models of real
tables. With 5 the first steps of a log link were noise, by which some ended 100
standard errors off.
"""
_SHAPE = 0.25  # separated and rare responses have eigenvalues of J/J̄ between .6 and 1.2


@dataclass(frozen=True, slots=True)
class Start:
    """Public: η₀, the link of a typical mean; the scale s₀; upper: the response's declared
    bound.
    """

    eta: float
    scale: float
    upper: float


class GlmFamily(ABC):
    """A family of generalised linear models with its link; one object for each.

    name, link: as in queries and replies. tuning: default c; clustered_tuning: that of the early
    steps of maximum likelihood with errors by cluster, whose scores must weigh clusters as
    likelihood does; None: c. radius: default R² for each coefficient. menu: the tuning constants of
    which tuning="planned" takes one. dispersed: whether a query states the dispersion. uncut:
    whether residuals cannot be cut. rates: whether a predictor may have an offset. blocks: what is
    fitted without noise to blocks of records, in words; None: nothing. convex: whether the loss
    without a cut is convex, as `influence` needs. variance_power: k where the variance grows as
    μ^k; None: otherwise. nanoseconds: that the law's moments take a record."""

    name: ClassVar[str]
    link: ClassVar[str]
    tuning: ClassVar[float]
    clustered_tuning: ClassVar[float | None] = None
    radius: ClassVar[float]
    menu: ClassVar[tuple[float, ...]]
    nanoseconds: ClassVar[int]
    dispersed: ClassVar[bool] = False
    uncut: ClassVar[bool] = False
    rates: ClassVar[bool] = False
    blocks: ClassVar[str | None] = None
    convex: ClassVar[bool] = False
    variance_power: ClassVar[float | None] = None

    @abstractmethod
    def problem(self, response: Term) -> str | None:
        """What is wrong with a response's declared bounds; None if nothing."""

    @abstractmethod
    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:
        """From the responses (rows,) of public rows."""

    @abstractmethod
    def score(self, c: float, scale: float, start: Start) -> QuasiScore:
        """The score at a scale."""

    def likelihood(self, scale: float, start: Start) -> LikelihoodScore | None:  # noqa: ARG002
        """The score of maximum likelihood at a scale; None where a record's has no place to
        begin.
        """
        return None

    def curvature(self, c: float, start: Start) -> float:
        """A guess of the mean of h at a solution: what it is at the start."""
        score = self.score(c, start.scale, start)
        return float(score.expected(np.array([start.eta]), np.zeros(1))[0])

    def residuals(self, start: Start) -> Residuals | None:  # noqa: ARG002 - one interface
        """How the scale is measured; None where it is known."""
        return None

    def joint(self) -> Joint | None:
        """The scale's own equation, where the last step is joint in θ and ln s."""
        return None

    def signal(self, c: float, start: Start, *, intercept: bool) -> Signal:
        """What the score is."""
        score = self.score(c, start.scale, start)
        joint = intercept and self.joint() is not None
        scaled = self.residuals(start) is not None
        return Signal(
            bound=score.bound,
            curvature=self.curvature(c, start),
            scaled=scaled,
            unit=score.unit,
            joint=joint,
            curvature_bound=score.curvature_bound,
            early_jacobian=score.curvature.early_jacobian,
            centred=score.centred,
            signed=score.signed,
            skewed=True,
            rms=sqrt(score.mean_square * GlmFamily.curvature(self, c, start)),
        )

    def cut(self, c: float) -> str:
        """In an estimand's words, what the cut of residuals is."""
        if c == inf:
            return ", no cut of residuals"
        return f", Pearson residuals cut at {c:g} and centred under the family"


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """A family with its constants, as a fit asks for it (fitting.score.Family). spread: as of a
    Ground. likelihood: whether the target is maximum likelihood's. distances: as of a
    ground.
    """

    family: GlmFamily
    c: float
    begun: Start
    intercept: bool
    spread: float = 1.0
    likelihood: bool = False
    distances: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def start(self) -> float:
        """The scale of the public start."""
        return self.begun.scale

    @property
    def offset(self) -> float:
        """The offset in units of the link: less where the target is maximum likelihood, times the
        rows' spread."""
        return (_LIKELIHOOD_OFFSET if self.likelihood else _OFFSET) * self.spread

    @property
    def shape(self) -> float:
        """The relative error of the expected curvature that separated or rare responses make."""
        return _SHAPE

    @property
    def residuals(self) -> Residuals | None:
        """The family's measure of the scale; None where that is known."""
        return self.family.residuals(self.begun)

    @property
    def joint(self) -> Joint | None:
        """The family's equation of the scale, where the design has an intercept."""
        return self.family.joint() if self.intercept else None

    def score(self, scale: float, remaining: int = 0) -> QuasiScore:  # noqa: ARG002 - one interface
        """The family's score at c; the same in all steps."""
        return self.family.score(self.c, scale, self.begun)

    def whole(self, scale: float) -> LikelihoodScore | None:
        """The likelihood's score, with the tail of public responses beside it."""
        score = self.family.likelihood(scale, self.begun)
        return None if score is None else score.beside(self.distances)

    def drift(self, remaining: int) -> float:  # noqa: ARG002 - one interface
        """None: all steps have one solution."""
        return 0.0
