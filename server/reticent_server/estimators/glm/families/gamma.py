"""Positive responses with the log link, V = μ², and a dispersion φ = s² that is estimated.

m = 1, |q| ≤ c + |a|, h = d ≤ E r² = 1. a moves with φ, so with an intercept the last step is solved jointly in θ
and ln s (estimators.glm.dispersion).
"""

from math import log, sqrt

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.glm.families.base import CutSquares, GlmFamily, QuasiScore, Start
from reticent_server.estimators.glm.families.poisson import COUNTS_ONLY, count_start
from reticent_server.fitting.score import Residuals, Score
from reticent_server.numerics.families import Gamma

_EXPLAINED = 0.7  # of the responses' variation, once a model explains some of it
_LEAST_VARIATION, _LARGEST_VARIATION = 0.05, 20.0  # of a public start: standard deviation over mean


class GammaFamily(GlmFamily):
    name, link, tuning, radius = "gamma", "log", 1.345, 2.0
    menu = (1.0, 1.345, 1.7, 2.0, 2.5, 3.0)

    def problem(self, response: Term) -> str | None:
        return COUNTS_ONLY if response.lower < 0 else None

    def start(self, y: FloatArray, response: Term, dispersion: float | None) -> Start:
        mean, variance = count_start(y, response)
        variation = min(max(sqrt(variance) / mean, _LEAST_VARIATION), _LARGEST_VARIATION)
        return Start(log(mean), variation, _EXPLAINED)

    def score(self, c: float, scale: float, start: Start, upper: float) -> Score:
        law = Gamma(scale**2)
        return QuasiScore(law, c, scale, scale, law.predictor_limits(upper), start.eta)

    def residuals(self, start: Start) -> Residuals | None:
        return CutSquares(start.scale, 0.0)

    def joint(self, *, intercept: bool) -> bool:
        return intercept

    def cut(self, c: float) -> str:
        return f", Pearson residuals cut at {c:g} and centred under the family"


GAMMA = GammaFamily()
