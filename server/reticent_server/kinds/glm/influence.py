# SPDX-License-Identifier: Apache-2.0
"""A logistic regression by `influence`: the pilot, and what is released around it
(fitting.influence)."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.influence.asymptotic import AsymptoticPlan, asymptotic_plan, split
from reticent_server.fitting.influence.plan import InfluencePlan
from reticent_server.fitting.influence.settings import fit_part, pilot_rho, spendable
from reticent_server.fitting.influence.whole import check_whole
from reticent_server.kinds.glm.families import family_of
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.numerics.convex_fit import LOGISTIC_SLOPE


def plan_influence_glm(
    facts: DatasetFacts, design: Design, query: Glm, offer: PrivacyCost
) -> InfluencePlan | AsymptoticPlan:
    """A Mallows-weighted logistic regression for at most `offer`'s (ε, δ). Raises InvalidQuery."""
    law = family_of(query.family, query.link)
    if law is None or not law.convex or query.tuning is not None:
        raise InvalidQuery(
            "The influence mechanism needs a convex loss: the binomial family without tuning, or a "
            "linear regression."
        )
    check_whole(facts, design)
    rho, ptr_only = spendable(offer), query.calibration != "asymptotic"
    share = pilot_rho(rho) if ptr_only else split(offer)[0].rho
    pilot = plan_glm(facts, design, query, share)
    curvature = LOGISTIC_SLOPE * pilot.sizes.mean_norm
    if not ptr_only:
        return asymptotic_plan(pilot, "logistic", 0.0, curvature, offer)
    part = fit_part("logistic", pilot.sizes, rho, offer.delta // 2, curvature=curvature)
    return InfluencePlan(pilot, part, offer)
