# SPDX-License-Identifier: Apache-2.0
"""A generalised linear model with R² (fitting.fit_statistics): of the binomial family, or a linear
regression."""

from typing import Any

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.fit_statistics import StatisticsPlan, statistics_part
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.formula import parse_formula
from reticent_server.kinds.glm.plan import asked_model, plan_glm
from reticent_server.kinds.glm.query import GAUSSIAN, Glm
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.statistics import plan_linear_statistics

_ONLY = (
    "fit_statistics is for the binomial family with the logit link, or the gaussian family, by "
    "the newton "
    "mechanism, without by or tuning."
)


def plan_glm_statistics(facts: DatasetFacts, query: Glm, rho: int) -> StatisticsPlan[Any]:
    """The fit and its statistics at `rho` (RHO_UNITS). Raises InvalidQuery."""
    if query.mechanism != "newton" or query.by is not None or query.tuning is not None:
        raise InvalidQuery(_ONLY)
    no_calibration(query.calibration)
    if query.family == GAUSSIAN and query.link is None and query.dispersion is None:
        linear = LinearRegression(
            query.formula, query.where, confidence_level=query.confidence_level
        )
        return plan_linear_statistics(facts, linear, rho)
    if query.family == GAUSSIAN or not _plain_logit(query):
        raise InvalidQuery(_ONLY)
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    part = statistics_part(facts, rho)
    return StatisticsPlan(plan_glm(facts, design, query, rho - part.rho), part, whole=True)


def _plain_logit(query: Glm) -> bool:
    """Whether residuals are y − μ of a 0/1 response: the one family with a convex loss that is not
    cut."""
    law = asked_model(query).law
    return law.convex and law.link == "logit"
