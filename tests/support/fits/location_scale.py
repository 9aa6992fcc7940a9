# SPDX-License-Identifier: Apache-2.0
"""Helpers of the location–scale tests."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from reticent_server.domain.design import Design
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.public.standardise import Location
from reticent_server.kinds.location_scale.plan import LocationScalePlan, plan_location_scale
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.location_scale.recipe import fit
from reticent_server.kinds.location_scale.settings import plan_settings
from support.fits.regressions import drive, facts_of, numeric, profile_of, whole

COLUMN = numeric("y")


def planned(
    y: FloatArray,
    rho: int,
    *,
    profile: bool = True,
    max_rows: int = 1,
    tuning: float | None = None,
    where: Any = None,
    missing: tuple[str, ...] = (),
) -> LocationScalePlan:
    table = {"y": y}
    released = profile_of(table, [COLUMN]) if profile else None
    facts = facts_of(len(y), [COLUMN], released, max_rows)
    design = Design(None, (), False, where, ("y",), missing)
    return plan_location_scale(facts, design, COLUMN, LocationScale("y", tuning=tuning), rho)


def released(
    y: FloatArray, rho: int, *, masks: Mapping[str, Any] | None = None, **more: Any
) -> Any:
    return drive(planned(y, rho, **more).run(), whole({"y": y}, masks)).result


def fitted_from(
    y: FloatArray, rho: int, centre: float, scale: float, c: float = 1.5
) -> tuple[Any, list[float]]:
    """The fit from a start of one's own, and the scales that its steps were taken at."""
    design = Design(None, (), False, None, ("y",), ())
    query = LocationScale("y", tuning=c)
    settings = plan_settings(len(y), 1, rho, query, masked=False, expected_n=len(y))
    trace = drive(fit(design, "y", settings, Location(centre, scale)), whole({"y": y}))
    return trace.result, [cast(Any, step.map_fn).scale for step in trace.steps]


def in_errors(found: Any, truth: ArrayLike) -> FloatArray:
    """(2,) (found − truth) over the reported standard errors."""
    se = np.sqrt(np.diag(found.sampling + found.privacy))
    return np.asarray((np.array([found.location, found.scale]) - np.asarray(truth)) / se)
