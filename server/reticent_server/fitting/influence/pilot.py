# SPDX-License-Identifier: Apache-2.0
"""The pilot: a noisy Newton fit, whose releases all else is relative to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.forecast import Forecast
from reticent_server.fitting.own_profile import NO_PROFILE
from reticent_server.fitting.report import back_transform

Pilot = FitPlan[Any]
NANOSECONDS: Mapping[str, int] = {"huber": 5, "logistic": 12}
"""Planned time of one step of the solver, for a record and coefficient."""


def notes(pilot: Pilot) -> list[str]:
    """What an analyst should know where the pilot releases quantiles of its own."""
    return [NO_PROFILE] if pilot.own_profile else []


def forecast_ratios(pilot: Pilot, fit: Forecast, noise: float) -> FloatArray:
    """(q,) privacy over sampling standard error, for noise of this deviation in whitened
    coordinates."""
    back = back_transform(pilot.coding).matrix @ fit.transform.T
    return np.asarray(noise * np.sqrt(np.sum(back**2, axis=1)) / fit.sampling)
