"""Two-stage least squares, and Anderson–Rubin sets that hold with weak instruments.

`y ~ d + w | w + z`: w is exogenous, d is not, z are instruments. With A = (S_XZS_ZZ⁻¹S_ZX)⁻¹S_XZS_ZZ⁻¹ the estimate is θ = AS_Zy, its
noise (s²/2)A[(vᵀQv)Q_ZZ + (Qv)_Z(Qv)_Zᵀ]Aᵀ, its sampling variance σ²(S_XZS_ZZ⁻¹S_ZX)⁻¹/n.

For one endogenous d, y − dβ₀ regressed on (w, z) has z-coefficients θ_z that are 0 under β = β₀, so that
AR(β₀) = θ_zᵀV_zz⁻¹θ_z is χ² with as many degrees of freedom as instruments; V counts sampling and noise. The set of β₀ that
are not rejected has its level however weak the instruments are, and may be unbounded, which is an answer.
Source: Anderson & Rubin (1949).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, pi, tan
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from reticent._errors import InvalidFormula, NotEstimable
from reticent._study.fit import StudyFit, document, fit_result
from reticent._study.formula import Specification
from reticent._study.model import Model, model
from reticent._study.moments import GATE, FloatArray, LeastSquares, Moments

_ANGLES = 721
"""Candidates β₀ = β + τ tan φ, by quarters of a degree; ends are found by root finding between them."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class InstrumentalFit(StudyFit):
    """A two-stage fit. `first_stage`: F and p-value by endogenous column; `anderson_rubin()`: confidence set.

    With a first-stage F below 10 the intervals are not reliable; Anderson–Rubin sets are.
    """

    @property
    def first_stage(self) -> Mapping[str, Mapping[str, float]]:
        """By endogenous column: `F` of the instruments (noise counted), `pvalue`."""
        found: Mapping[str, Mapping[str, float]] = self.result["first_stage"]
        return found

    def anderson_rubin(self) -> tuple[tuple[float, float], ...]:
        """The 95 % confidence set of the endogenous column's coefficient: disjoint intervals, ends may be infinite; empty
        where the instruments' restrictions are rejected. Raises NotEstimable with several endogenous columns."""
        found = self.result["anderson_rubin"]
        if found is None:
            raise NotEstimable("An Anderson-Rubin set is given for one endogenous column.")
        return tuple(
            (-inf if low is None else float(low), inf if high is None else float(high))
            for low, high in found
        )


def instrumental(
    release: Mapping[str, Any], moments: Moments, specification: Specification
) -> InstrumentalFit:
    """The fit of a formula with instruments."""
    if specification.instruments is None:
        raise InvalidFormula("Write the instruments after '|', such as 'y ~ x + w | z + w'.")
    endogenous = [k for k in specification.terms if k not in specification.instruments]
    excluded = [k for k in specification.instruments if k not in specification.terms]
    if not endogenous or len(excluded) < len(endogenous):
        raise InvalidFormula(
            "Name at least one regressor that is not among the instruments, and at least as many instruments that are "
            "no regressors."
        )
    structural = model(
        moments, specification.response, specification.terms, specification.intercept
    )
    instruments = model(
        moments, specification.response, specification.instruments, specification.intercept
    )
    fit = _two_stage(moments, structural, instruments.X)
    first = {
        moments.names[k]: _first_stage(moments, k, specification, excluded) for k in endogenous
    }
    said = [
        f"The instruments say little of {name} (F = {found['F']:.2g}): use anderson_rubin()."
        for name, found in first.items()
        if found["F"] < 10
    ]
    result = fit_result(
        structural,
        fit,
        moments.n,
        estimand="Two-stage least squares, with records beyond the radius downweighted.",
        warnings=said,
    )
    sets = None
    if len(endogenous) == 1:
        sets = _anderson_rubin(moments, specification, endogenous[0], excluded)
    result |= {"first_stage": first, "anderson_rubin": sets}
    return InstrumentalFit(document(release, {"formula": specification.text}, result))


def _two_stage(moments: Moments, structural: Model, Z: FloatArray) -> LeastSquares:
    S, Q, X = moments.sums, moments.overlap, structural.X
    XZ = X @ S @ Z.T
    ZZ = np.linalg.pinv(Z @ S @ Z.T, hermitian=True)
    bread = np.linalg.pinv(XZ @ ZZ @ XZ.T, hermitian=True)
    A = bread @ XZ @ ZZ
    theta = A @ (Z @ S @ structural.y)
    v = structural.y - X.T @ theta
    across = Z @ Q @ v
    inner = (v @ Q @ v) * (Z @ Q @ Z.T) + np.outer(across, across)
    variance = moments.variance(v)
    return LeastSquares(
        theta=theta,
        privacy=np.asarray(moments.sd**2 / 2 * A @ inner @ A.T),
        sampling=np.asarray(variance * bread / moments.n),
        variance=variance,
        gate=moments.gate(Z),
        residual=v,
        weakest=np.ones(len(X)),
    )


def _on_instruments(
    moments: Moments, y: FloatArray, specification: Specification, excluded: list[int]
) -> tuple[FloatArray, FloatArray, LeastSquares]:
    """z-coefficients (k,) of yᵀz̃ on all exogenous columns, their covariance (k, k), and the fit."""
    exogenous = specification.instruments or ()
    whole = model(moments, specification.response, exogenous, specification.intercept)
    fit = moments.least_squares(y, whole.X)
    head = int(specification.intercept)
    at = [head + list(exogenous).index(k) for k in excluded]
    return fit.theta[at], (fit.privacy + fit.sampling)[np.ix_(at, at)], fit


def _first_stage(
    moments: Moments, place: int, specification: Specification, excluded: list[int]
) -> dict[str, float]:
    own = model(moments, place, (), specification.intercept)
    theta, covariance, _ = _on_instruments(moments, own.y, specification, excluded)
    statistic = float(theta @ np.linalg.solve(covariance, theta))
    k = len(excluded)
    return {"F": statistic / k, "pvalue": float(chdtrc(k, statistic))}


def _anderson_rubin(
    moments: Moments, specification: Specification, place: int, excluded: list[int]
) -> list[list[float | None]] | None:
    """The 95 % set by intervals, None for an infinite end; None where the gate of the instruments is shut."""
    y = model(moments, specification.response, (), specification.intercept)
    d = model(moments, place, (), specification.intercept)
    limit = float(chdtri(len(excluded), 0.05))

    def rejected(angle: float) -> float:
        """AR − limit at y cos φ − d sin φ; φ = ±π/2 is β₀ = ±∞."""
        combined = np.cos(angle) * y.y - np.sin(angle) * d.y
        theta, covariance, fit = _on_instruments(moments, combined, specification, excluded)
        if fit.gate > GATE:
            return -limit
        return float(theta @ np.linalg.solve(covariance, theta)) - limit

    unit = y.unit / d.unit
    angles = np.linspace(-pi / 2, pi / 2, _ANGLES)
    values = np.array([rejected(a) for a in angles])
    inside = values <= 0
    found: list[list[float | None]] = []
    start: float | None = -pi / 2 if inside[0] else None
    for k in range(1, len(angles)):
        if inside[k] and not inside[k - 1]:
            start = brentq(rejected, angles[k - 1], angles[k])
        elif inside[k - 1] and not inside[k]:
            end = brentq(rejected, angles[k - 1], angles[k])
            found.append([_coefficient(start, unit), _coefficient(end, unit)])
            start = None
    if start is not None:
        found.append([_coefficient(start, unit), None])
    return found


def _coefficient(angle: float | None, unit: float) -> float | None:
    """β₀ in the units of the data; None for −∞."""
    return None if angle is None or angle <= -pi / 2 else tan(angle) * unit
