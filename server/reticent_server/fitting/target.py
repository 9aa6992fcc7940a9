# SPDX-License-Identifier: Apache-2.0
"""The parts of a target that all models share: records without noise, and whitening settled on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.steps import Block, FloatArray, Released
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.coordinates import WIDE, clipped_moment
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.maps import coordinates, response, standardised
from reticent_server.fitting.whitening import Whitening, unwhitened, whitened
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.person_columns import prepared

_ROUNDS = 12  # of the whitening, without noise; three settle it but on collinear terms


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Private. coefficients and sandwich standard errors (q,), in the units of the data; scale of the residuals
    in units of the response's; weights (n,) of the records in use."""

    coefficients: FloatArray
    standard_errors: FloatArray
    scale: float
    weights: FloatArray


def records(coding: Coding, block: Block) -> tuple[FloatArray, FloatArray]:
    """X̃ (n, q) and ỹ (n,) of the records in use, as the maps see them."""
    block = prepared(coding.design, block)
    x = np.array(standardised(coding, block)).T
    y = response(coding, block)
    used = in_use(coding.design, block) & np.isfinite(x).all(axis=1) & np.isfinite(y)
    return x[used], y[used]


def settled_whitening(plan: FitPlan[Any], X: FloatArray) -> Whitening:
    """The whitening of records X (n, q) by rounds without noise, at the wide radius."""
    radius = WIDE * X.shape[1]
    state = unwhitened(plan.ground.coordinates, radius)
    for k in range(_ROUNDS):
        moment = clipped_moment(coordinates(state.transform, X.T).T, radius)
        state = whitened(state, Released(moment, 0.0), 1.0, radius, last=k == _ROUNDS - 1)
    return state
