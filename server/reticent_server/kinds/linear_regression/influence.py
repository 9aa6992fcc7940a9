# SPDX-License-Identifier: Apache-2.0
"""A linear regression by `influence`: the pilot, and what is released around it
(fitting.influence)."""

from dataclasses import replace

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.influence.asymptotic import AsymptoticPlan, asymptotic_plan, split
from reticent_server.fitting.influence.plan import InfluencePlan
from reticent_server.fitting.influence.settings import fit_part, pilot_rho, spendable
from reticent_server.fitting.influence.whole import check_whole
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.psi import Huber

TUNING = 1.345  # Huber's c: 95 % efficient at the normal law


def plan_influence_regression(
    facts: DatasetFacts, design: Design, query: LinearRegression, offer: PrivacyCost
) -> InfluencePlan | AsymptoticPlan:
    """A Huber–Mallows regression for at most `offer`'s (ε, δ). Raises InvalidQuery."""
    check_whole(facts, design)
    if isinstance(query.tuning, str):
        raise InvalidQuery(
            'tuning="planned" is for mechanism="newton"; leave it out or give a number.'
        )
    c, ptr_only = query.tuning or TUNING, query.calibration != "asymptotic"
    rho = spendable(offer)
    share = pilot_rho(rho) if ptr_only else split(offer)[0].rho
    pilot = plan_linear_regression(facts, design, replace(query, tuning=c), share)
    curvature = Huber(c).mean_derivative * pilot.sizes.mean_norm
    if not ptr_only:
        return asymptotic_plan(pilot, "huber", c, curvature, offer)
    part = fit_part("huber", pilot.sizes, rho, offer.delta // 2, tuning=c, curvature=curvature)
    return InfluencePlan(pilot, part, offer)
