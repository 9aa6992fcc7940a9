"""From standardised units to the data's: coefficients, covariance, intervals, flags, warnings.

ỹ = x̃ᵀθ with x̃_j = (x_j − a_j)/b_j and ỹ = (y − m)/s₀ gives β_j = s₀θ_j/b_j and, with an intercept,
β₀ = m + s₀(θ₀ − Σ θ_j a_j/b_j): β = Lθ + o with a public L (q, q), so cov β = L cov θ Lᵀ.

A coefficient that is not estimable keeps its number and standard error in the covariance, but has no
p-value (null) and no interval ([null, null]). `directions` tells the same of any linear combination.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.recipe import StandardFit

BoolArray = NDArray[np.bool_]

_DOMINATED = 3.0
_USELESS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class BackTransform:
    """β = Lθ + o: L (q, q) and o (q,), rows in the reported order."""

    matrix: FloatArray
    offset: FloatArray

    def coefficients(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ theta + self.offset)

    def covariance(self, C: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ C @ self.matrix.T)


def back_transform(coding: Coding) -> BackTransform:
    """The public map from standardised to reported coefficients."""
    y, q = coding.response_location, coding.size
    matrix = np.diag(y.scale / coding.scales)
    offset = np.zeros(q)
    if coding.design.intercept:
        matrix[0] -= y.scale * coding.centres / coding.scales
        offset[0] = y.centre
    order = list(coding.reported_order)
    return BackTransform(matrix[order], offset[order])


def report(
    coding: Coding, fit: StandardFit, *, tuning: float, level: float, factor: float, n: int
) -> dict[str, Any]:
    """The regression's result; `factor` ≥ 1 widens every standard error (parametric bootstrap)."""
    back = back_transform(coding)
    privacy = factor**2 * back.covariance(fit.privacy)
    covariance = privacy + factor**2 * back.covariance(fit.sampling)
    beta, se = back.coefficients(fit.theta), _roots(covariance)
    directions = fit.directions.mapped(back.matrix)
    estimable = directions.flags
    return {
        "terms": list(coding.design.names),
        "coefficients": beta.tolist(),
        "standard_errors": se.tolist(),
        "covariance": covariance.tolist(),
        "confidence_level": level,
        "confidence_intervals": intervals(beta, se, level, estimable),
        "p_values": p_values(beta, se, estimable),
        "privacy_standard_errors": _roots(privacy).tolist(),
        "estimable": [bool(ok) for ok in estimable],
        "directions": directions.shown,
        "scale": fit.scale * coding.response_location.scale,
        "tuning": tuning,
        "estimand": estimand(coding, tuning),
        "n": n,
        "interval_factor": factor,
        "warnings": warnings(coding, fit, factor, estimable),
    }


def intervals(
    beta: FloatArray, se: FloatArray, level: float, estimable: BoolArray
) -> list[list[float | None]]:
    """β ± z se, [None, None] where not estimable."""
    half = float(ndtri((1 + level) / 2)) * se
    return [
        [float(b - h), float(b + h)] if ok else [None, None]
        for b, h, ok in zip(beta, half, estimable, strict=True)
    ]


def p_values(beta: FloatArray, se: FloatArray, estimable: BoolArray) -> list[float | None]:
    """Two-sided normal p-values of β_j = 0, None where not estimable."""
    p = 2 * ndtr(-np.abs(beta) / np.maximum(se, np.finfo(float).tiny))
    return [float(value) if ok else None for value, ok in zip(p, estimable, strict=True)]


def estimand(coding: Coding, tuning: float, start: float | None = None) -> str:
    """The target in words. start: of a biweight fit, the tuning constant of its Huber fit."""
    name = "Mallows-Huber" if start is None else "Mallows-Tukey (biweight)"
    text = (
        f"{name} regression coefficients with tuning constant {tuning:g} and residual scale "
        f"median|r|/0.6745; weights min(1, {coding.white_radius_squared:g}/|u|^2) on whitened terms"
    )
    text += " and the intercept" if coding.design.intercept else ""
    if start is not None:
        text += f"; the solution reached from the Huber fit with tuning constant {start:g}"
    return text


def warnings(coding: Coding, fit: StandardFit, factor: float, estimable: BoolArray) -> list[str]:
    """What a reader of the intervals must know, in sentences; from released values only."""
    found = []
    names = [t for t, ok in zip(coding.design.names, estimable, strict=True) if not ok]
    if names:
        found.append(
            "Not estimable at this budget (collinear, constant or too rare): "
            + ", ".join(names)
            + "."
        )
    privacy, sampling = _roots(fit.privacy), _roots(fit.sampling)
    if np.any(privacy > _DOMINATED * sampling):
        found.append("Privacy noise dominates the standard errors: a larger epsilon would help.")
    wide = (factor * np.hypot(privacy, sampling) > _USELESS)[list(coding.reported_order)]
    if np.any(wide & estimable):
        useless = [t for t, bad in zip(coding.design.names, wide & estimable, strict=True) if bad]
        found.append("The interval is too wide to be of use for: " + ", ".join(useless) + ".")
    if factor > 1:
        found.append("Standard errors were widened by a parametric bootstrap of the mechanism.")
    return found


def _roots(C: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(np.diag(C), 0.0)))
