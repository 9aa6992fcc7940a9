# SPDX-License-Identifier: Apache-2.0
"""Two-stage least squares, and Anderson–Rubin sets that hold with weak instruments.

`y ~ d + w | w + z`: w is exogenous, d is not, z are instruments. With A =
(S_XZS_ZZ⁻¹S_ZX)⁻¹S_XZS_ZZ⁻¹ the estimate is θ = AS_Zy, its noise (s²/2)A[(vᵀQv)Q_ZZ +
(Qv)_Z(Qv)_Zᵀ]Aᵀ, its sampling variance σ²(S_XZS_ZZ⁻¹S_ZX)⁻¹/n.

For one endogenous d, y − dβ₀ regressed on (w, z) has z-coefficients θ_z that are 0 under β = β₀, so
that AR(β₀) = θ_zᵀV_zz⁻¹θ_z is χ² with as many degrees of freedom as instruments; V counts sampling
and noise. The set of β₀ that are not rejected has its level however weak the instruments are, and
may be unbounded, which is an answer. V is lengthened by what clipping may have moved, as the errors
of a fit are. Source: Anderson & Rubin (1949).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, pi, tan
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

from reticent._errors import InvalidFormula, NotEstimable
from reticent._study.fit import StudyFit, document, fit_result
from reticent._study.formula import Specification
from reticent._study.model import StudyModel, model
from reticent._study.moments import GATE, FloatArray, LeastSquares, Moments, lengthened

_ANGLES = 361
"""Candidates β₀ = β + τ tan φ, by half degrees; ends are found by root finding between them."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class InstrumentalFit(StudyFit):
    """A two-stage fit. `first_stage`: F and p-value by endogenous column; `anderson_rubin()`:
    confidence set.

    With a first-stage F below 10 the intervals are not reliable; Anderson–Rubin sets are.
    """

    @property
    def first_stage(self) -> Mapping[str, Mapping[str, float]]:
        """By endogenous column: `F` of the instruments (noise counted), `pvalue`."""
        found: Mapping[str, Mapping[str, float]] = self.result["first_stage"]
        return found

    def anderson_rubin(self) -> tuple[tuple[float, float], ...]:
        """The 95 % confidence set of the endogenous column's coefficient: disjoint intervals, ends
        may be infinite; empty where the instruments' restrictions are rejected. Raises NotEstimable
        with several endogenous columns.
        """
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
            "Name at least one regressor that is not among the instruments, and at least as many "
            "instruments that are "
            "no regressors."
        )
    structural = model(
        moments, specification.response, specification.terms, specification.intercept
    )
    instruments = model(
        moments, specification.response, specification.instruments, specification.intercept
    )
    fit = _two_stage(moments, structural, instruments.X)
    intercept = specification.intercept and not moments.effects
    reduced = _reduced(moments, specification, excluded, intercept)
    columns = {k: model(moments, k, (), intercept) for k in endogenous}
    first = {moments.names[k]: _first_stage(reduced, d) for k, d in columns.items()}
    said = [
        f"The instruments say little of {name} (F = {found['F']:.2g}): use anderson_rubin()."
        for name, found in first.items()
        if found["F"] < 10
    ]
    bared = moments.bared(structural.y, structural.X, instruments.X)
    result = fit_result(
        structural,
        fit,
        int(release["result"]["n"]),
        estimand="Two-stage least squares, with records beyond the radius downweighted.",
        warnings=[*said, *release["result"]["warnings"]],
        bared=bared,
    )
    sets = None
    if len(endogenous) == 1:
        y = model(moments, specification.response, (), intercept)
        one = columns[endogenous[0]]
        sets = [[None, None]] if bared else _anderson_rubin(reduced, y, one)
    result |= {"first_stage": first, "anderson_rubin": sets}
    return InstrumentalFit(document(release, {"formula": specification.text}, result))


def _two_stage(moments: Moments, structural: StudyModel, Z: FloatArray) -> LeastSquares:
    S, X = moments.sums, structural.X
    XZ = X @ S @ Z.T
    ZZ = np.linalg.pinv(Z @ S @ Z.T, hermitian=True)
    bread = np.linalg.pinv(XZ @ ZZ @ XZ.T, hermitian=True)
    A = bread @ XZ @ ZZ
    theta = A @ (Z @ S @ structural.y)
    v = structural.y - X.T @ theta
    variance = moments.variance(v)
    sampling = np.asarray(variance * bread / moments.n)
    return LeastSquares(
        theta=theta,
        privacy=moments.noise(v, Z, A),
        sampling=sampling,
        leaning=moments.leaning(v, Z, A, sampling),
        inverse=np.asarray(bread),
        variance=variance,
        gate=moments.gate(Z),
        residual=v,
        weakest=np.ones(len(X)),
        stretch=moments.stretch,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Reduced:
    """Regressions on all exogenous columns: X (p, q), and the places of the excluded instruments
    among them.
    """

    moments: Moments
    X: FloatArray
    at: list[int]

    def fit(self, y: FloatArray) -> LeastSquares:
        """Least squares of y (q,) on all exogenous columns: the first stage."""
        return self.moments.least_squares(y, self.X)

    def statistic(self, theta: FloatArray, v: FloatArray, inverse: FloatArray) -> float:
        """θ_zᵀV_zz⁻¹θ_z for coefficients θ (p,) with the residual v (q,)."""
        sampling = self.moments.variance(v) * inverse / self.moments.n
        leaning = self.moments.leaning(v, self.X, inverse, sampling).squares(np.eye(len(theta)))
        whole = lengthened(sampling + self.moments.noise(v, self.X, inverse), leaning)
        V = whole[np.ix_(self.at, self.at)]
        z = theta[self.at]
        return float(z @ np.linalg.solve(V, z))


def _reduced(
    moments: Moments, specification: Specification, excluded: list[int], intercept: bool
) -> _Reduced:
    exogenous = specification.instruments or ()
    whole = model(moments, specification.response, exogenous, intercept)
    head = int(intercept)
    return _Reduced(moments, whole.X, [head + exogenous.index(k) for k in excluded])


def _first_stage(reduced: _Reduced, d: StudyModel) -> dict[str, float]:
    fit, k = reduced.fit(d.y), len(reduced.at)
    statistic = reduced.statistic(fit.theta, fit.residual, fit.inverse)
    return {"F": statistic / k, "pvalue": float(chdtrc(k, statistic))}


def _anderson_rubin(reduced: _Reduced, y: StudyModel, d: StudyModel) -> list[list[float | None]]:
    """The 95 % set by intervals, None for an infinite end; everything where the gate of the
    instruments is shut.
    """
    from scipy.optimize import brentq  # noqa: PLC0415  (a tenth of a second that no other analysis needs)

    first, second = reduced.fit(y.y), reduced.fit(d.y)
    if first.gate > GATE:
        return [[None, None]]
    limit = float(chdtri(len(reduced.at), 0.05))

    def rejected(angle: float) -> float:
        """AR − limit of y cos φ − d sin φ; φ = ±π/2 is β₀ = ±∞."""
        c, s = np.cos(angle), np.sin(angle)
        theta, v = c * first.theta - s * second.theta, c * first.residual - s * second.residual
        return reduced.statistic(theta, v, first.inverse) - limit

    unit = y.unit / d.unit
    angles = np.linspace(-pi / 2, pi / 2, _ANGLES)
    inside = np.array([rejected(a) for a in angles]) <= 0
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
