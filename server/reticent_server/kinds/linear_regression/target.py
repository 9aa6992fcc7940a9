# SPDX-License-Identifier: Apache-2.0
"""What the noisy recipe estimates, computed without noise: for the curator, and for tests."""

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.huber import WeightedMedianResidual
from reticent_server.kinds.shared.linear.loss import ResidualLoss
from reticent_server.kinds.shared.linear.plan import LinearModel, LinearRegressionPlan
from reticent_server.kinds.shared.target import Target, records, settled_whitening, target
from reticent_server.numerics.biweight import fit_biweight
from reticent_server.numerics.huber_mallows import fit_mallows
from reticent_server.numerics.mallows import mallows_weights


def noise_free_fit(plan: LinearRegressionPlan, block: Block) -> Target:
    """Solves the plan's estimating equation on a whole table, its weights settled on the table
    itself."""
    coding = plan.ground.coding
    X, y = records(coding, block)
    loss = _loss(plan)
    if loss.whole:
        return _least_squares(coding, X, y)
    whitening = settled_whitening(plan, X)
    norms = np.sum((X @ whitening.transform.T) ** 2, axis=1)
    w = mallows_weights(norms, plan.sizes.radius_squared)
    residuals = loss.residuals(plan.ground.response.tie)
    if isinstance(residuals, WeightedMedianResidual):
        raise TypeError("the target of a weighted regression is not computed here")
    measure = (lambda _: plan.ground.spread) if residuals is None else residuals.solve
    fit = fit_mallows(X, y, loss.start.c, w, measure)
    theta, covariance, scale = fit.coefficients, fit.covariance, fit.scale
    if loss.biweight is not None:
        settled = fit_biweight(X, y, theta, loss.biweight.c, scale=scale, weights=w)
        theta, covariance, scale = settled.coefficients, settled.covariance, settled.scale
    return target(coding, theta, covariance, (X.T * w) @ X, scale=scale, weights=w)


def _least_squares(coding: Coding, X: FloatArray, y: FloatArray) -> Target:
    """The textbook's, with HC0 errors."""
    inverse = np.linalg.pinv(X.T @ X, hermitian=True)
    theta = inverse @ (X.T @ y)
    r = y - X @ theta
    covariance = inverse @ ((X * (r**2)[:, None]).T @ X) @ inverse
    scale = float(np.sqrt(np.mean(r**2)))
    return target(coding, theta, covariance, X.T @ X, scale=scale, weights=np.ones(len(y)))


def _loss(plan: LinearRegressionPlan) -> ResidualLoss:
    if not isinstance(plan.model, LinearModel):
        raise TypeError("the target of a linear regression is asked for")
    return plan.model.loss
