"""A public ridge on a released fit: post-processing, so it costs nothing and leaks nothing.

About a fit θ̂ the mean loss (of the standardised response) is ½(θ − θ̂)ᵀP(θ − θ̂) to second order, P the
released information in x̃. With the penalty ½θᵀλDθ its minimum is

    θ_λ = Aθ̂,   A = (P + λD)⁻¹P,   covariance A C Aᵀ

where D is the identity, but 0 for the intercept. Where no residual is cut this is ridge regression. P is
public by then: the intervals are about Aθ, the same map of the target. What is not estimable stays so: a
penalty makes such a coefficient small, and no better known. Source: Hoerl & Kennard (1970).
"""

from dataclasses import replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.recipe import StandardFit

PENALISED = "Intervals and p-values are about the penalised coefficients, which the ridge has drawn towards 0."


def ridged(fit: StandardFit, penalty: float, intercept: bool) -> StandardFit:
    """The released fit with the penalty λ on its standardised slopes."""
    A = shrinkage(information(fit), penalty, intercept)
    return replace(
        fit,
        theta=A @ fit.theta,
        sampling=np.asarray(A @ fit.sampling @ A.T),
        privacy=np.asarray(A @ fit.privacy @ A.T),
    )


def information(fit: StandardFit) -> FloatArray:
    """P (q, q): the last step's usable Jacobian in x̃."""
    last = fit.records[-1]
    return np.asarray(last.k0 * last.curvature.M)


def shrinkage(P: FloatArray, penalty: float, intercept: bool) -> FloatArray:
    """A (q, q)."""
    free = int(intercept)
    D = np.diag(np.repeat([0.0, 1.0], [free, len(P) - free]))
    return np.asarray(np.linalg.solve(P + penalty * D, P))


def penalised_estimand(penalty: float) -> str:
    """What a ridge adds to the target, in words."""
    return (
        f"; with the penalty {penalty:g}/2 times the sum of squared slopes of the standardised terms, the "
        "mean loss of the standardised response being quadratic with the released information"
    )
