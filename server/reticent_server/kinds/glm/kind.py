# SPDX-License-Identifier: Apache-2.0
"""The kind `glm`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.special_columns import offset_design, weighted_design
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind
from reticent_server.kinds.glm.by_group import plan_glm_by
from reticent_server.kinds.glm.families import family_of
from reticent_server.kinds.glm.influence import plan_influence_glm
from reticent_server.kinds.glm.model import plan_model
from reticent_server.kinds.glm.plan import NO_LINK, plan_glm
from reticent_server.kinds.glm.query import GAUSSIAN, Glm
from reticent_server.kinds.glm.statistics import plan_glm_statistics
from reticent_server.kinds.shared.columns import sufficient

NEWTON_ONLY = (
    "Weights, offset and exposure are for the newton mechanism, and not for the gaussian family."
)
WHOLE_ONLY = "by and fit_statistics are for fits without weights, offset and exposure."
COUNTS_ONLY = "Offset and exposure are for the families of counts: poisson and negative_binomial."


def _has_special(query: Glm) -> bool:
    """Whether a question names columns that are no terms; raises InvalidQuery where these make no sense."""
    if all(name is None for name in (query.weights, query.offset, query.exposure)):
        return False
    law = family_of(query.family, query.link)
    if query.mechanism != "newton" or query.family == GAUSSIAN:
        raise InvalidQuery(NEWTON_ONLY)
    if not (query.offset is None and query.exposure is None) and law is not None and not law.rates:
        raise InvalidQuery(COUNTS_ONLY)
    return True


def _plan(facts: DatasetFacts, query: Glm, offer: PrivacyCost) -> Planned:
    special = _has_special(query)
    if special and (query.fit_statistics or query.by is not None):
        raise InvalidQuery(WHOLE_ONLY)
    if query.fit_statistics:
        return plan_glm_statistics(facts, query, offer.rho)
    if query.by is not None:
        return plan_glm_by(facts, query, query.by, offer.rho)
    if query.mechanism == "influence":
        design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
        return plan_influence_glm(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    if query.link is not None or special:
        if query.family == GAUSSIAN:
            raise InvalidQuery(NO_LINK)
        design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
        design = weighted_design(design, facts.schema, query.weights)
        design = offset_design(design, facts.schema, query.offset, query.exposure)
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
        Glm("b ~ x", "binomial", weights="k"),
        Glm("k ~ b", "poisson", offset="x"),
        Glm("b ~ x", "binomial", by="g"),
        Glm("b ~ x", "binomial", fit_statistics=True),
        Glm("y ~ x", "gaussian"),
        Glm("k ~ x", "poisson"),
        Glm("k ~ x", "negative_binomial", dispersion=0.5),
        Glm("exp(x) ~ b", "gamma"),
    ),
    page="glm",
)
