# SPDX-License-Identifier: Apache-2.0
"""Counts with the log link and V = μ + αμ², α public: overdispersed counts.

m = g/g₀ with g = √(μ/(1 + αμ)), |q| ≤ c + sup|a|, h = d ≤ 1; s = √α is known. With the score of
maximum likelihood before the cut this is the truncated maximum likelihood estimator of
Avella-Medina (2021), Corollary 2.
"""

from math import log, sqrt

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.glm.families.base import GlmFamily, Start
from reticent_server.kinds.glm.families.likelihood import CountLikelihoodScore
from reticent_server.kinds.glm.families.poisson import COUNTS_ONLY, count_start
from reticent_server.kinds.glm.quasi import LogScore
from reticent_server.numerics.families import NegativeBinomial


class NegativeBinomialFamily(GlmFamily):
    """Negative binomial regression at a public dispersion."""

    name, link, tuning, radius, dispersed = "negative_binomial", "log", 4.0, 3.0, True
    variance_power = 1.0
    rates = True
    menu, nanoseconds = (1.0, 1.345, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0), 12_000

    def problem(self, response: Term) -> str | None:
        return COUNTS_ONLY if response.lower < 0 else None

    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:
        mean, _ = count_start(term, values)
        return Start(log(mean), sqrt(dispersion or 1.0), term.upper)

    def likelihood(self, scale: float, start: Start) -> CountLikelihoodScore:  # noqa: ARG002
        law = NegativeBinomial(start.scale**2)
        return CountLikelihoodScore(law, 1.0, law.predictor_limits(start.upper), start.eta)

    def score(self, c: float, scale: float, start: Start) -> LogScore:
        law = NegativeBinomial(scale**2)
        gain = float(law.gain(np.array([start.eta]))[0])
        limits = law.predictor_limits(start.upper)
        return LogScore(law, c, scale, 1 / gain, limits, start.eta, varies=True, measured=False)


NEGATIVE_BINOMIAL = NegativeBinomialFamily()
