# SPDX-License-Identifier: Apache-2.0
"""A public ridge on a released fit: post-processing, so it costs nothing and leaks nothing.

The penalised fit minimises mean s²ρ_c(r/s)·w + (λ/2)‖β‖² over the slopes β in the units of the data
(for least squares ½ mean r² + (λ/2)‖β‖², as statsmodels' `fit_regularized` with L1_wt=0). About a
fit β̂ the first part is ½(β − β̂)ᵀP(β − β̂) to second order, P the released curvature. The minimum
is

    β_λ = Aβ̂,   A = (P + λD)⁻¹P,   covariance A C Aᵀ

with D the identity, but 0 for the intercept. P is public by then: the intervals are about Aβ, the
same map of the target. What is not identifiable stays so: a penalty makes such a coefficient small,
and no better known. Source: Hoerl & Kennard (1970).
"""

from dataclasses import replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.standard_fit import StandardFit

PENALISED = (
    "Intervals and p-values are about the penalised coefficients, which the ridge has drawn "
    "towards 0."
)


def ridged(fit: StandardFit, penalty: float, coding: Coding) -> StandardFit:
    """The released fit with the penalty λ on its slopes in the units of the data."""
    back = back_transform(coding)
    L = back.matrix
    P = (
        np.linalg.solve(L.T, np.linalg.solve(L.T, fit.information).T)
        * coding.response_location.scale**2
    )
    A = shrinkage((P + P.T) / 2, penalty, intercept=coding.design.intercept)
    own = np.linalg.solve(L, A @ L)
    shifted = np.linalg.solve(L, A @ back.offset - back.offset)
    return replace(
        fit,
        theta=own @ fit.theta + shifted,
        sampling=np.asarray(own @ fit.sampling @ own.T),
        privacy=np.asarray(own @ fit.privacy @ own.T),
        taken=None if fit.taken is None else np.asarray(own @ fit.taken @ own.T),
    )


def shrinkage(P: FloatArray, penalty: float, *, intercept: bool) -> FloatArray:
    """A (q, q), in units in which P has a diagonal of 1: a column far from 0 and narrow makes P
    singular to the floats, and then A is the one of least norm there."""
    free = int(intercept)
    D = np.diag(np.repeat([0.0, 1.0], [free, len(P) - free]))
    unit = 1 / np.sqrt(np.maximum(np.diag(P), np.finfo(float).tiny))
    both = np.outer(unit, unit)
    A = np.linalg.lstsq((P + penalty * D) * both, P * both, rcond=None)[0]
    return np.asarray(unit[:, None] * A / unit)


def penalised_estimand(penalty: float) -> str:
    """What a ridge adds to the target, in words."""
    return (
        f"; with the penalty {penalty:g}/2 times the sum of squared slopes in the units of the "
        "data, the mean "
        "loss being quadratic with the released curvature"
    )
