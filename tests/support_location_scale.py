"""Helpers of the location–scale tests."""

from reticent_server.domain.design import Design
from reticent_server.domain.query import LocationScale
from reticent_server.estimators.location_scale import plan_location_scale
from support_newton import drive, facts_of, numeric, profile_of, whole

COLUMN = numeric("y")


def planned(y, rho, *, profile=True, max_rows=1, tuning=None, where=None, missing=()):
    table = {"y": y}
    released = profile_of(table, [COLUMN]) if profile else None
    facts = facts_of(len(y), [COLUMN], released, max_rows)
    design = Design(None, (), False, where, ("y",), missing)
    return plan_location_scale(facts, design, COLUMN, LocationScale("y", tuning=tuning), rho)


def released(y, rho, *, masks=None, **more):
    return drive(planned(y, rho, **more).run(), whole({"y": y}, masks)).result
