"""What the noisy recipe estimates, computed without noise: for the curator, and for tests."""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.report import back_transform
from reticent_server.estimators.newton.settings import Settings
from reticent_server.numerics.biweight import fit_whitened_biweight
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.huber_mallows import HuberFit, fit_whitened_mallows


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Private. coefficients and sandwich standard errors (q,), in the units of the data and the
    reported order; fit: in standardised units and the internal order."""

    coefficients: FloatArray
    standard_errors: FloatArray
    fit: HuberFit


def standardised_table(coding: Coding, block: Block) -> tuple[FloatArray, FloatArray]:
    """X (n, q) in the internal order and y (n,), in standardised units."""
    head = [np.ones(block.rows)] * int(coding.design.intercept)
    terms = [evaluate_term(term, block) for term, _ in coding.columns]
    X = (np.column_stack([*head, *terms]) - coding.centres) / coding.scales
    y = coding.response_location
    return X, (evaluate_term(coding.response, block) - y.centre) / y.scale


def noise_free_fit(coding: Coding, settings: Settings, block: Block) -> Target:
    """Solves the recipe's estimating equation on a whole table, in its coding and with its c."""
    X, y = standardised_table(coding, block)
    if coding.design.masked:
        used = in_use(coding.design, block)
        X, y = X[used], y[used]
    fit = solve(coding, settings, X, y)
    back = back_transform(coding)
    errors = np.sqrt(np.diag(back.covariance(fit.covariance)))
    return Target(back.coefficients(fit.coefficients), np.asarray(errors), fit)


def solve(coding: Coding, settings: Settings, X: FloatArray, y: FloatArray) -> HuberFit:
    """The fit of standardised records in use, X (n, q) in the internal order and y (n,)."""
    R2, kappa = coding.white_radius_squared, settings.mean_norm
    fit = fit_whitened_mallows(
        X, y, settings.start.c, radius_squared=R2, mean_norm=kappa, whitened=coding.white_size
    )
    if settings.biweight is None:
        return fit
    c = settings.biweight.c
    return fit_whitened_biweight(X, y, c, fit, radius_squared=R2, mean_norm=kappa)
