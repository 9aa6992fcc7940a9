"""From standardised units to the data's, for a model of η: β_j = θ_j/b_j, β₀ = θ₀ − Σ θ_j a_j/b_j.

The response is not rescaled, so estimators.newton.report's public linear map serves with unit scale.
A coefficient that is not estimable keeps its number and standard error, but has no p-value (null) and
no interval ([null, null]).
"""

from math import inf
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.glm.recipe import GlmFitted
from reticent_server.estimators.glm.settings import GlmSettings
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.report import BoolArray, back_transform

_DOMINATED, _SATURATED = 3.0, 8.0


def report(
    coding: Coding, settings: GlmSettings, fit: GlmFitted, *, level: float, n: int
) -> dict[str, Any]:
    """The model's result."""
    back = back_transform(coding)
    sampling, privacy = back.covariance(fit.sampling), back.covariance(fit.privacy)
    covariance = sampling + privacy
    beta, se = back.coefficients(fit.theta), roots(covariance)
    directions = fit.directions.mapped(back.matrix)
    estimable = directions.flags
    half = float(ndtri((1 + level) / 2)) * se
    p_values = 2 * ndtr(-np.abs(beta) / np.maximum(se, np.finfo(float).tiny))
    return {
        "family": settings.family,
        "terms": list(coding.design.names),
        "coefficients": beta.tolist(),
        "standard_errors": se.tolist(),
        "covariance": covariance.tolist(),
        "confidence_level": level,
        "confidence_intervals": [
            [float(b - h), float(b + h)] if ok else [None, None]
            for b, h, ok in zip(beta, half, estimable, strict=True)
        ],
        "p_values": [float(p) if ok else None for p, ok in zip(p_values, estimable, strict=True)],
        "privacy_standard_errors": roots(privacy).tolist(),
        "estimable": [bool(ok) for ok in estimable],
        "directions": directions.shown,
        "scale": fit.scale,
        **({"dispersion": fit.scale**2} if settings.family == "negative_binomial" else {}),
        "tuning": settings.c if settings.c < inf else None,
        "estimand": estimand(coding, settings),
        "n": n,
        "warnings": warnings(coding, fit, estimable),
    }


def estimand(coding: Coding, settings: GlmSettings) -> str:
    """The target in words."""
    cut = ", no cut of residuals"
    if settings.c < inf:
        units = " times the overdispersion" if settings.overdispersed else ""
        units = units if settings.family == "poisson" else ""
        cut = f", Pearson residuals cut at {settings.c:g}{units} and centred under the family"
    link = "logit" if settings.family == "binomial" else "log"
    return (
        f"{settings.family} quasi-likelihood with the {link} link{cut}; weights "
        f"min(1, {coding.white_radius_squared:g}/|v|^2) on information-whitened terms"
    )


def warnings(coding: Coding, fit: GlmFitted, estimable: BoolArray) -> list[str]:
    """What a reader must know, in sentences; from released values only."""
    found, names = [], coding.design.names
    missing = [t for t, ok in zip(names, estimable, strict=True) if not ok]
    if missing:
        found.append(
            "Not estimable at this budget (collinear, constant or too rare): "
            + ", ".join(missing)
            + "."
        )
    if np.any(roots(fit.privacy) > _DOMINATED * roots(fit.sampling)):
        found.append("Privacy noise dominates the standard errors: a larger epsilon would help.")
    if np.any(np.abs(fit.theta) > _SATURATED):
        found.append(
            "A coefficient is so large that the fit may be separated: read it as a direction only."
        )
    return found


def roots(C: FloatArray) -> FloatArray:
    """(q,) square roots of the diagonal."""
    return np.asarray(np.sqrt(np.maximum(np.diag(C), 0.0)))
