"""Any model of the catalogue by subsample and aggregate."""

from reticent_server.kinds.subsample_aggregate.plan import (
    SubsampleAggregatePlan,
    plan_subsample_aggregate,
)

__all__ = ["SubsampleAggregatePlan", "plan_subsample_aggregate"]
