"""What the noisy recipe estimates, computed without noise: for the curator, and for tests."""

from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import Block, FloatArray, Released
from reticent_server.estimators.linear_regression.plan import LinearRegressionPlan
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.coordinates import WIDE, clipped_moment
from reticent_server.fitting.maps import coordinates, response, standardised
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.whitening import Whitening, unwhitened, whitened
from reticent_server.numerics.biweight import fit_biweight
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.huber_mallows import fit_mallows
from reticent_server.numerics.mallows import mallows_weights

_ROUNDS = 12  # of the whitening, without noise; three settle it but on collinear terms


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Private. coefficients and sandwich standard errors (q,), in the units of the data; scale of the residuals
    in units of the response's; weights (n,) of the records in use."""

    coefficients: FloatArray
    standard_errors: FloatArray
    scale: float
    weights: FloatArray


def noise_free_fit(plan: LinearRegressionPlan, block: Block) -> Target:
    """Solves the plan's estimating equation on a whole table, its weights settled on the table itself."""
    coding = plan.ground.coding
    X, y = records(coding, block)
    whitening = settled_whitening(plan, X)
    norms = np.sum((X @ whitening.transform.T) ** 2, axis=1)
    w = mallows_weights(norms, plan.sizes.radius_squared)
    residuals = plan.loss.residuals(plan.ground.response.tie)
    measure = (lambda _: plan.ground.spread) if residuals is None else residuals.solve
    fit = fit_mallows(X, y, plan.loss.start.c, w, measure)
    theta, covariance, scale = fit.coefficients, fit.covariance, fit.scale
    if plan.loss.biweight is not None:
        found = fit_biweight(X, y, theta, plan.loss.biweight.c, scale=scale, weights=w)
        theta, covariance, scale = found.coefficients, found.covariance, found.scale
    back = back_transform(coding)
    errors = np.sqrt(np.diag(back.covariance(covariance)))
    return Target(back.coefficients(theta), np.asarray(errors), scale, w)


def records(coding: Coding, block: Block) -> tuple[FloatArray, FloatArray]:
    """X̃ (n, q) and ỹ (n,) of the records in use, as the maps see them."""
    x = np.array(standardised(coding, replace(block))).T
    y = response(coding, block)
    used = in_use(coding.design, block) & np.isfinite(x).all(axis=1) & np.isfinite(y)
    return x[used], y[used]


def settled_whitening(plan: LinearRegressionPlan, X: FloatArray) -> Whitening:
    """The whitening of records X (n, q) by rounds without noise, at the wide radius."""
    radius = WIDE * X.shape[1]
    state = unwhitened(plan.ground.coordinates, radius)
    for k in range(_ROUNDS):
        moment = clipped_moment(coordinates(state.transform, X.T).T, radius)
        state = whitened(state, Released(moment, 0.0), 1.0, radius, last=k == _ROUNDS - 1)
    return state
