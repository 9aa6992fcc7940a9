"""Location and scale jointly by Huber's Proposal 2: planned from public facts, run on releases."""

from reticent_server.kinds.location_scale.plan import LocationScalePlan, plan_location_scale

__all__ = ["LocationScalePlan", "plan_location_scale"]
