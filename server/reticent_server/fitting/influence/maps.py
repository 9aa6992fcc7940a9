# SPDX-License-Identifier: Apache-2.0
"""A released pilot, which is a noisy Newton fit, and the records of a fit around it: functions of
the record and of public values only.

With u = Wx̃ (W the pilot's whitening) and w its Mallows weight, a record is (w, y, o, u):

    Huber      y = (ỹ − x̃ᵀθ₀)/σ,  o = 0,      θ = θ₀ + σWᵀϑ
    logistic   y,                 o = x̃ᵀθ₀,  θ = θ₀ + Wᵀϑ
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.forecast import Forecast
from reticent_server.fitting.maps import coordinates, on_lattice, response, standardised
from reticent_server.fitting.own_profile import NO_PROFILE
from reticent_server.fitting.report import back_transform
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights

Pilot = FitPlan[Any]
NANOSECONDS: Mapping[str, int] = {"huber": 5, "logistic": 12}
"""Planned time of one step of the solver, for a record and coefficient."""


@dataclass(frozen=True, slots=True, eq=False)
class PilotPoint:
    """θ₀ (q,) of x̃, σ, W (q, q) and R²: what a pilot has released, and what its plan says."""

    theta: FloatArray
    scale: float
    transform: FloatArray
    radius_squared: float


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceMap:
    """Gives the records (q + 3, rows)."""

    coding: Coding
    point: PilotPoint
    loss: Literal["huber", "logistic"]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        point = self.point
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            u = coordinates(point.transform, x, block.scratch)
            w = mallows_weights(squared_lengths(u, np.empty(u.shape[1])), point.radius_squared)
            y, offset = response(self.coding, block), on_lattice(point.theta, self.coding.size) @ x
            if self.loss == "huber":
                y, offset = (y - offset) * (1 / point.scale), np.zeros(block.rows)
        return (np.vstack([w, y, offset, u]),)


def notes(pilot: Pilot) -> list[str]:
    """What an analyst should know where the pilot releases quantiles of its own."""
    return [NO_PROFILE] if pilot.own_profile else []


def forecast_ratios(pilot: Pilot, fit: Forecast, noise: float) -> FloatArray:
    """(q,) privacy over sampling standard error, for noise of this deviation in whitened
    coordinates."""
    back = back_transform(pilot.ground.coding).matrix @ fit.transform.T
    return np.asarray(noise * np.sqrt(np.sum(back**2, axis=1)) / fit.sampling)
