# SPDX-License-Identifier: Apache-2.0
"""What scores of standardised residuals z = (y − η)/s share: their unit, their ball, how much a
residual spreads."""

from abc import ABC, abstractmethod

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import STEADY, ScoreCurvature
from reticent_server.fitting.score import OFFSET, Ball, Joint, whole_ball

_LEAST_VARIANCE = 0.4
"""Of a row's residual in s²: rows that are surer than most are not sure of the error."""


class ResidualScore(ABC):
    """A score of residuals with the scale s, in units of the response's; satisfies
    fitting.score.Score."""

    __slots__ = ()
    scale: float

    @property
    @abstractmethod
    def bound(self) -> float:
        """sup |q|."""

    @property
    def curvature(self) -> ScoreCurvature:
        """Linear, nearly: residuals are measured in the scale that they have at θ."""
        return STEADY

    @property
    def unit(self) -> float:
        """s: residuals change by the predictor's change."""
        return self.scale

    @property
    def limits(self) -> tuple[float, float]:
        """η has none."""
        return -np.inf, np.inf

    @property
    def varies(self) -> bool:
        """No: m(η) = 1."""
        return False

    def leverage(self, eta: FloatArray) -> FloatArray:
        """(rows,) 1."""
        return np.ones_like(eta)

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """The ball about 0 of radius R sup|q|."""
        return whole_ball(len(direction), radius * self.bound)

    def residual_variance(self, variance: FloatArray) -> FloatArray:
        """(rows,) in s², where predictors are off by N(0, variance): s² holds the mean of these
        already, since it is measured where the predictor stands."""
        excess = (variance - np.mean(variance)) / self.scale**2
        return np.asarray(np.maximum(1 + excess, _LEAST_VARIANCE))


class ResidualFamily(ABC):
    """Scores of residuals, of steps that start at the scale `start`; satisfies
    fitting.score.ScoreFamily."""

    __slots__ = ()
    start: float

    @property
    def offset(self) -> float:
        """OFFSET residual scales."""
        return OFFSET * self.start

    @property
    def joint(self) -> Joint | None:
        """None: the scale is measured between steps."""
        return None
