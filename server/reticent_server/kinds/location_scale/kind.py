# SPDX-License-Identifier: Apache-2.0
"""The kind `location_scale`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.location_scale.influence import plan_influence_location_scale
from reticent_server.kinds.location_scale.plan import LocationScaleResult, plan_location_scale
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.shared.columns import mask, numeric_column, sufficient


def _plan(facts: DatasetFacts, query: LocationScale, offer: PrivacyCost) -> Planned:
    column = numeric_column(facts, query.column)
    design = mask(facts, query.where, column.name)
    if query.mechanism == "influence":
        return plan_influence_location_scale(facts, design, column, query, sufficient(offer))
    no_calibration(query.calibration)
    return plan_location_scale(facts, design, column, query, offer.rho)


KIND = Kind(
    query=LocationScale,
    group=QuestionGroup.DESCRIBE,
    asks="What are a typical value and a typical spread, when some records are far off?",
    plan=_plan,
    result=LocationScaleResult,
    examples=(LocationScale("y"), LocationScale("y", "x > 0")),
    page="location-scale",
)
