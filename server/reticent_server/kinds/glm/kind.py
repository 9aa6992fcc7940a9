# SPDX-License-Identifier: Apache-2.0
"""The kind `glm`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.results import RegressionResult
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind
from reticent_server.kinds.glm.by_group import plan_glm_by
from reticent_server.kinds.glm.influence import plan_influence_glm
from reticent_server.kinds.glm.model import plan_model
from reticent_server.kinds.glm.plan import NO_LINK, plan_glm
from reticent_server.kinds.glm.query import GAUSSIAN, Glm
from reticent_server.kinds.glm.statistics import plan_glm_statistics
from reticent_server.kinds.shared.columns import sufficient


def _plan(facts: DatasetFacts, query: Glm, offer: PrivacyCost) -> Planned:
    if query.fit_statistics:
        return plan_glm_statistics(facts, query, offer.rho)
    if query.by is not None:
        return plan_glm_by(facts, query, query.by, offer.rho)
    if query.mechanism == "influence":
        design = parse_formula(query.formula, facts.schema, query.where)
        return plan_influence_glm(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    if query.link is not None:
        if query.family == GAUSSIAN:
            raise InvalidQuery(NO_LINK)
        design = parse_formula(query.formula, facts.schema, query.where)
        return plan_glm(facts, design, query, offer.rho)
    return plan_model(facts, query, offer.rho)


KIND = Kind(
    query=Glm,
    plan=_plan,
    result=RegressionResult | GroupFits,
    examples=(
        Glm("b ~ x", "binomial"),
        Glm("b ~ x", "binomial", mechanism="influence"),
        Glm("b ~ x", "binomial", link="probit"),
        Glm("b ~ x", "binomial", link="log"),
        Glm("b ~ x", "binomial", by="g"),
        Glm("b ~ x", "binomial", fit_statistics=True),
        Glm("y ~ x", "gaussian"),
        Glm("k ~ x", "poisson"),
        Glm("k ~ x", "negative_binomial", dispersion=0.5),
        Glm("exp(x) ~ b", "gamma"),
    ),
    page="glm",
)
