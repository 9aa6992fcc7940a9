# SPDX-License-Identifier: Apache-2.0
"""Positive responses with the log link, V = μ², and a dispersion φ = s² that is estimated.

m = 1, |q| ≤ c + |a|, h = d ≤ E r² = 1. a moves with φ, so with an intercept the last step is solved
jointly in θ and ln s (kinds.glm.dispersion).
"""

from math import log, sqrt

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.score import Joint
from reticent_server.kinds.glm.dispersion import GammaDispersion
from reticent_server.kinds.glm.families.base import GlmFamily, Start
from reticent_server.kinds.glm.families.likelihood import AmountLikelihoodScore
from reticent_server.kinds.glm.families.poisson import COUNTS_ONLY, count_start
from reticent_server.kinds.glm.quasi import CutSquares, LogScore
from reticent_server.numerics.families import Gamma

_VARIATION = 0.05, 20.0  # of a public start: standard deviation over mean


class GammaFamily(GlmFamily):
    """Gamma regression with free dispersion."""

    name, link, tuning, radius = "gamma", "log", 1.345, 2.0
    variance_power = 2.0
    menu, nanoseconds = (1.0, 1.345, 1.7, 2.0, 2.5, 3.0), 400
    blocks = "maximum likelihood, Gamma family, log link"

    def problem(self, response: Term) -> str | None:
        return COUNTS_ONLY if response.lower < 0 else None

    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:  # noqa: ARG002
        mean, variance = count_start(term, values)
        variation = min(max(sqrt(variance) / mean, _VARIATION[0]), _VARIATION[1])
        return Start(log(mean), variation, term.upper)

    def likelihood(self, scale: float, start: Start) -> AmountLikelihoodScore:
        law = Gamma()
        return AmountLikelihoodScore(law, scale, law.predictor_limits(start.upper), start.eta)

    def score(self, c: float, scale: float, start: Start) -> LogScore:
        law = Gamma(scale**2)
        return LogScore(
            law,
            c,
            scale,
            unit=scale,
            limits=law.predictor_limits(start.upper),
            start=start.eta,
            signed=False,
            curvature_bound=1 + c * scale,
        )

    def residuals(self, start: Start) -> CutSquares | None:
        return CutSquares(start.scale, 0.0)

    def joint(self) -> Joint | None:
        return GammaDispersion()


GAMMA = GammaFamily()
