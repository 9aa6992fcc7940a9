# SPDX-License-Identifier: Apache-2.0
"""The parts of a target that all models share: records without noise, and whitening settled on
them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, FloatArray, Released
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.maps import coordinates, response, standardised
from reticent_server.fitting.public.coordinates import WIDE, clipped_moment
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.whitening import Whitening, unwhitened, whitened
from reticent_server.numerics.evaluate import evaluate, in_use
from reticent_server.numerics.matrices import identified
from reticent_server.numerics.person_columns import prepared

_ROUNDS = 12  # of the whitening, without noise; three settle it but on collinear terms


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Private. coefficients and sandwich standard errors (q,), in the units of the data: NaN where
    the table does not identify a coefficient; scale of the residuals in units of the response's;
    weights (n,) of the records in use."""

    coefficients: FloatArray
    standard_errors: FloatArray
    scale: float
    weights: FloatArray


def target(
    coding: Coding,
    theta: FloatArray,
    covariance: FloatArray,
    information: FloatArray,
    *,
    scale: float,
    weights: FloatArray,
) -> Target:
    """The target of θ (q,) of x̃ with its covariance (q, q); information (q, q): about θ, of any
    scale."""
    back = back_transform(coding)
    known = identified(information, back.matrix)
    errors = np.where(known, np.sqrt(np.diag(back.covariance(covariance))), np.nan)
    return Target(np.where(known, back.coefficients(theta), np.nan), errors, scale, weights)


def records(coding: Coding, block: Block) -> tuple[FloatArray, FloatArray]:
    """X̃ (n, q) and ỹ (n,) of the records in use, as the maps see them."""
    x, y, used, _ = _records(coding, block)
    return x[used], y[used]


def offsets(coding: Coding, block: Block) -> FloatArray:
    """(n,) what the design adds to the predictor of each record in use."""
    _, _, used, block = _records(coding, block)
    design = coding.design
    every = np.zeros(block.rows) if design.offset is None else evaluate(design.offset, block)
    return np.asarray(every[used])


def _records(
    coding: Coding, block: Block
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_], Block]:
    block = prepared(coding.design, block)
    x = np.array(standardised(coding, block)).T
    y = response(coding, block)
    used = in_use(coding.design, block) & np.isfinite(x).all(axis=1) & np.isfinite(y)
    return x, y, used, block


def settled_whitening(plan: FitPlan[Any], X: FloatArray) -> Whitening:
    """The whitening of records X (n, q) by rounds without noise, at the wide radius."""
    radius = WIDE * X.shape[1]
    state = unwhitened(plan.ground.coordinates, radius)
    for k in range(_ROUNDS):
        moment = clipped_moment(coordinates(state.transform, X.T).T, radius)
        state = whitened(state, Released(moment, 0.0), 1.0, radius, last=k == _ROUNDS - 1)
    return state
