"""M-estimates with noise in proportion to their influence function, after a private pilot fit."""

from reticent_server.kinds.location_scale.influence import plan_influence_location_scale
from reticent_server.kinds.shared.influence.plan import (
    InfluencePlan,
    plan_influence_glm,
    plan_influence_regression,
)

__all__ = [
    "InfluencePlan",
    "plan_influence_glm",
    "plan_influence_location_scale",
    "plan_influence_regression",
]
