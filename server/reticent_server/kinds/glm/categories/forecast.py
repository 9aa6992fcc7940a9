# SPDX-License-Identifier: Apache-2.0
"""What a planned fit of levels will be worth, from public facts alone: fitting.forecast in D
dimensions.

The recipe's own functions with every release at its expected value: the public rows in place of the
records, at the public shares of the levels and without effects of the regressors.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, GramSum, VectorSum
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import corrected_curvature, measured, missed_curvature, moved
from reticent_server.fitting.identifiability import fit_directions
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.whitening import unwhitened
from reticent_server.kinds.glm.categories.maps import entry_count
from reticent_server.kinds.glm.categories.newton import CategoryNewton
from reticent_server.kinds.glm.categories.public_model import stacked_whitening
from reticent_server.numerics.matrices import power

FORECAST_ROWS = 1024
"""Public rows that a forecast is made of, as those of fitting.forecast: each information costs
their number times D squared."""


@dataclass(frozen=True, slots=True, eq=False)
class CategoryForecast:
    """The forecast of (Θ row by row, λ) in standardised units: covariances of noise and of sampling
    (D, D), and the directions' vectors."""

    privacy: FloatArray
    sampling: FloatArray
    vectors: FloatArray
    resolved: NDArray[np.bool_]
    error: float


def forecast_categories(fit: CategoryNewton) -> CategoryForecast:
    """Goes through a planned fit in expectation."""
    n, law, q, m = fit.sizes.expected_n, fit.law, fit.sizes.size, fit.sizes.unit_rows
    whitening = unwhitened(fit.coordinates, fit.sizes.radius_squared)
    noise_of_rounds = np.full(q, fit.budget.precision / np.sqrt(2 * q))
    whitening = replace(
        whitening,
        rows=whitening.rows[:FORECAST_ROWS],
        error=np.maximum(noise_of_rounds, 1e-9),
        noise=noise_of_rounds,
    )
    model, state = fit.public(whitening), fit.started(whitening)
    point = fit.point(whitening, state)
    J, C, known = model.information(state.parameters), state.covariance, state.known
    back, D = power(J, 0.5), len(state.parameters)
    relative = np.zeros(D)
    for rho, jacobian in zip(fit.budget.gradients, fit.budget.jacobians, strict=True):
        if jacobian:
            part = VectorSum(
                entry_count(law.predictors, law.spacings, q), point.information_bound, jacobian, m
            )
            far = missed_curvature(C, back, 1.0)
            known, relative = measured(known, back, J, planned_sd(part) / n, far)
        noise = planned_sd(VectorSum(D, point.score_bound, rho, m)) / n
        curvature = corrected_curvature(J, 1.0, known)
        C = moved(C, curvature, noise**2 * np.eye(D), np.zeros(D)).covariance
    meat = model.meat(state.parameters)
    sd = planned_sd(GramSum(D, point.score_bound, fit.budget.meat, m)) / n
    sampling = sandwich(np.asarray(np.linalg.inv(J)), calmed_meat(meat, sd, meat), n)
    stacked = stacked_whitening(whitening, law)
    directions = fit_directions(
        stacked,
        back,
        J,
        relative,
        C + sampling,
        n / (fit.sizes.radius_squared * law.most),
        present=True,
    )
    W = stacked.transform
    return CategoryForecast(
        np.asarray(W.T @ C @ W),
        np.asarray(W.T @ sampling @ W),
        directions.vectors,
        directions.resolved,
        float(np.sqrt(np.trace(C))),
    )
