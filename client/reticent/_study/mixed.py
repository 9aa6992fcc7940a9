# SPDX-License-Identifier: Apache-2.0
"""A linear model with a random intercept of every person, from a study's moments.

    y_it = x_itᵀβ + u_i + e_it,      Var u = τ², Var e = σ², u independent of x

Of columns z and their person means z̄ the study has the moments of both, summed over rows: between
ones B = Σ T_i z̄z̄ᵀ and within ones W, of z − z̄ (Σ over persons, T_i rows each; R rows and P
persons in all, weighted as the study weights them). With V_W and V_B the squares in W and in B of
the residuals at θ̂, whose means are σ²(R − P) and τ²R + σ²P up to degrees of freedom of slopes,

    σ² = V_W/(R − P),                   τ² = (V_B − Pσ²)/R,
    θ̂ = (W_xx + λB_xx)⁻¹(W_xy + λB_xy),  λ = σ²/(σ² + τ²R/P),

solved by iteration from λ = 1: for equally many rows the maximum of the restricted likelihood, up
to degrees of freedom; at any λ θ̂ estimates β. Sampling, with M the most rows a person may have, as
ΣT_i²z̄z̄ᵀ ≤ M·B:

    Var θ̂ ≤ A⁻¹[σ²W_xx + λ²(σ² + Mτ²)B_xx]A⁻¹,  A = W_xx + λB_xx;
    Var V_W = kσ⁴(R − P),   Var V_B ≤ k(MRτ⁴ + 2Rτ²σ² + Pσ⁴),

with equality where all have M rows. k = 2 holds for normal u and e. A study has no fourth moments,
and real errors have tails: k = 4, of laws whose kurtosis is 5, is taken. Noise enters by gradients
in the moments, and that of P besides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent._errors import InvalidFormula, NotEstimable
from reticent._study.fit import StudyFit, document, fit_result
from reticent._study.formula import Columns, Specification
from reticent._study.model import StudyModel
from reticent._study.moments import GATE, Delta, FloatArray, LeastSquares, Moments, gradients
from reticent._text import number

COMPONENTS = ("var(person)", "var(residual)", "icc")
ESTIMAND = (
    "Generalised least squares with a random intercept of every person, with persons beyond the "
    "study's radius downweighted. Intercepts are taken as independent of the terms, and intervals "
    "of the components allow for a kurtosis of 5."
)
_HIDDEN = (
    "Not identifiable at this epsilon: the noise is too large beside what these columns have "
    "within and between persons. Use fewer columns, or ask a study at a larger epsilon."
)
_MEANS = (
    "A random intercept needs the person's mean beside each column: ask a study with {missing} "
    "among its variables too, or name columns that are the same in all rows of a person in "
    "constant."
)
_ROUNDS = 20
"""Of the iteration, which gains a digit or more in each."""
_TAILS = 4.0
"""k: with 2, intervals of the share of persons in wages held .8 of the samples of a real panel."""
_LEAST_WITHIN = 0.05
"""Of the rows, those beyond one a person at the least: below, noise may be all of them."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MixedFit(StudyFit):
    """Coefficients of a linear model with a random intercept, and its variance components. Free.

    Standard errors are those of the model: other likenesses of a person's rows than a common
    intercept are not counted. For errors by person: `linear_regression` with `working_correlation`.
    """

    @property
    def components(self) -> Mapping[str, float]:
        """var(person), var(residual) in the square of the response's units, and the ICC."""
        found = self.result["components"]
        return dict(zip(COMPONENTS, map(float, found["values"]), strict=True))

    @property
    def icc(self) -> float:
        """The share of the variance that is common to a person's rows."""
        return self.components["icc"]

    @property
    def components_bse(self) -> Mapping[str, float]:
        """Standard errors by name: sampling and noise; NaN where there are no intervals."""
        found = self.result["components"]["standard_errors"]
        return dict(zip(COMPONENTS, map(float, found), strict=True))

    def components_conf_int(self, alpha: float = 0.05) -> Mapping[str, tuple[float, float]]:
        """(lower, upper) by name: normal intervals, of variances from 0, of the ICC within [0,
        1]."""
        z, found = float(ndtri(1 - alpha / 2)), {}
        for name, value in self.components.items():
            half = z * self.components_bse[name]
            top = 1.0 if name == "icc" else np.inf
            found[name] = (max(value - half, 0.0), min(value + half, top))
        return found

    def _footer(self) -> list[str]:
        rows = self.components_conf_int()
        said = [
            f"{name} {number(value)} [{number(rows[name][0])}, {number(rows[name][1])}]"
            for name, value in self.components.items()
        ]
        return [*said, "", *StudyFit._footer(self)]  # noqa: SLF001 - as of StudyFit


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Rows (k, q) that make deviations D and means M of the response, the intercept and the terms
    from z̃, in the units of the columns.
    """

    D: FloatArray
    M: FloatArray

    def of(self, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """W and B (k, k)."""
        return self.D @ S @ self.D.T, self.M @ S @ self.M.T

    def gate(self, moments: Moments, lam: float) -> float:
        """The noise of A, at most, relative to its smallest eigenvalue in the frame in which the
        noise is alike in all directions.
        """
        D, M = self.D[1:], self.M[1:]
        Q = moments.overlap
        size, axes = np.linalg.eigh(D @ Q @ D.T + lam * M @ Q @ M.T)
        frame = (axes / np.sqrt(np.maximum(size, np.finfo(float).tiny))) @ axes.T
        W, B = self.of(moments.sums)
        least = float(np.linalg.eigvalsh(frame @ (W + lam * B)[1:, 1:] @ frame)[0])
        noise = moments.norm(frame @ D) + lam * moments.norm(frame @ M)
        return noise / least if least > 0 else np.inf


@dataclass(frozen=True, slots=True)
class Persons:
    """P over n, the sd of its noise, and M."""

    share: float
    sd: float
    most: float


def persons_of(result: Mapping[str, Any]) -> Persons:
    """Of a study of persons. Raises InvalidFormula for another."""
    if result.get("persons_standard_error") is None or result.get("effects") is not None:
        raise InvalidFormula(
            "A random intercept is of persons with several rows: ask a study of a data set whose "
            "unit is a column, without effects."
        )
    n, kept = float(result["n"]), 1 - max(float(result["clipped"]["share"]), 0.0)
    P, sd = float(result["persons"]) / n, float(result["persons_standard_error"]) / n
    return Persons(min(P, 1.0) * kept, sd, float(result["design_effect"]))


def mixed(
    release: Mapping[str, Any],
    moments: Moments,
    columns: Columns,
    specification: Specification,
    constant: Sequence[str],
) -> MixedFit:
    """The fit of a formula with an intercept. Raises InvalidFormula, NotEstimable."""
    if not specification.intercept:
        raise InvalidFormula("A model with a random intercept has an intercept: leave 0 out.")
    result = release["result"]
    persons = persons_of(result)
    used = (specification.response, *specification.terms)
    fixed = {p for text in constant for p in columns.places(text)}
    parts = _parts(moments, columns, used, fixed)
    found, gate = _estimates(moments, parts, persons)
    bared = moments.bared(parts.D, parts.M)
    return _fit(release, moments, used, found, gate, bared, specification.text)


def _parts(moments: Moments, columns: Columns, used: Sequence[int], fixed: set[int]) -> Parts:
    """Of the response, the intercept and the terms, in this order."""
    q = len(moments.names)
    means = {p: (p if p in fixed else _mean_of(moments, columns, p)) for p in used}
    missing = [f"mean({moments.names[p]})" for p, at in means.items() if at is None]
    if missing:
        raise InvalidFormula(_MEANS.format(missing=", ".join(missing)))
    D, M, rows = np.zeros((len(used) + 1, q)), np.zeros((len(used) + 1, q)), np.eye(q)
    M[1] = rows[0]
    for k, p in zip((0, *range(2, len(used) + 1)), used, strict=True):
        at = int(means[p] or 0)
        M[k] = rows[at] * moments.scales[at] / moments.scales[p]
        M[k, 0] += (moments.centres[at] - moments.centres[p]) / moments.scales[p]
        D[k] = 0.0 if at == p else rows[p] - M[k]
    if not np.any(D[0]):
        raise InvalidFormula("The response is not constant within persons: leave it out there.")
    return Parts(D, M)


def _mean_of(moments: Moments, columns: Columns, place: int) -> int | None:
    name = f"mean({moments.names[place]})"
    return columns.one(name) if name in moments.names else None


def _estimates(moments: Moments, parts: Parts, persons: Persons) -> tuple[Delta, float]:
    """θ (p,), then τ², σ² and the ICC, with their errors; and the gate."""
    S, P = moments.sums, persons.share
    R = float(S[0, 0])
    if R - P < _LEAST_WITHIN * R:
        raise NotEstimable("Too few persons have several rows to estimate a random intercept.")
    if parts.gate(moments, 1.0) > GATE:
        raise NotEstimable(_HIDDEN)

    def values(moved: FloatArray, share: float = P) -> FloatArray:
        return _values(*parts.of(moved), float(moved[0, 0]), share)

    at = values(S)
    gate = parts.gate(moments, _weight(float(at[-3]), float(at[-2]), R / P))
    if gate > GATE or at[-2] <= 0:
        raise NotEstimable(_HIDDEN)
    step = 1e-4 * P
    turned = (values(S, P + step) - values(S, P - step)) / (2 * step)
    sampling = _sampling(parts, moments, persons, at)
    sampling += np.outer(turned, turned) * persons.sd**2
    return moments.moved(range(len(S)), at, gradients(S, values), sampling), gate


def _values(W: FloatArray, B: FloatArray, R: float, P: float) -> FloatArray:
    """(p + 3,) θ, τ², σ², ICC. W, B: of the response, the intercept and the terms."""
    lam = 1.0
    for _ in range(_ROUNDS):
        theta = _slopes(W + lam * B)
        r = np.append(1.0, -theta)
        sigma2 = float(r @ W @ r) / (R - P)
        tau2 = (float(r @ B @ r) - P * sigma2) / R
        lam = _weight(tau2, sigma2, R / P)
    return np.array([*theta, tau2, sigma2, tau2 / max(tau2 + sigma2, 1e-12)])


def _slopes(G: FloatArray) -> FloatArray:
    """Least squares of the first column on the others."""
    return np.asarray(np.linalg.solve(G[1:, 1:], G[1:, 0]))


def _weight(tau2: float, sigma2: float, rows: float) -> float:
    """λ."""
    return sigma2 / (sigma2 + max(tau2, 0.0) * rows) if sigma2 > 0 else 1.0


def _sampling(parts: Parts, moments: Moments, persons: Persons, at: FloatArray) -> FloatArray:
    """(p + 3, p + 3) by the formulas above."""
    W, B = (G[1:, 1:] for G in parts.of(moments.sums))
    n, R, P, most = moments.n * persons.most, float(moments.sums[0, 0]), persons.share, persons.most
    tau2, sigma2 = max(float(at[-3]), 0.0), max(float(at[-2]), 0.0)
    lam = _weight(tau2, sigma2, R / P)
    inverse = np.linalg.inv(W + lam * B)
    middle = sigma2 * W + lam**2 * (sigma2 + most * tau2) * B
    found = np.zeros((len(at), len(at)))
    found[:-3, :-3] = inverse @ middle @ inverse / n
    within = _TAILS * sigma2**2 / (R - P) / n
    means = _TAILS * (most * R * tau2**2 + 2 * R * tau2 * sigma2 + P * sigma2**2) / n
    J = np.array([[1 / R, -P / R], [0.0, 1.0]])
    components = J @ np.diag([means, within]) @ J.T
    total = max(tau2 + sigma2, 1e-12)
    J = np.vstack([np.eye(2), [sigma2 / total**2, -tau2 / total**2]])
    found[-3:, -3:] = J @ components @ J.T
    return found


def _fit(
    release: Mapping[str, Any],
    moments: Moments,
    used: Sequence[int],
    delta: Delta,
    gate: float,
    bared: Sequence[str],
    formula: str,
) -> MixedFit:
    p, result = len(used), release["result"]
    response, places = used[0], list(used[1:])
    unit = float(moments.scales[response])
    matrix = np.diag(unit / moments.scales[[0, *places]])
    matrix[0, 1:] -= unit * moments.centres[places] / moments.scales[places]
    offset = np.append(moments.centres[response], np.zeros(p - 1))
    names = (moments.names[0], *(moments.names[k] for k in places))
    rows = np.eye(len(moments.names))
    model = StudyModel(names, rows[response], rows[[0, *places]], matrix, offset, unit)
    fit = LeastSquares(
        theta=delta.values[:p],
        privacy=delta.privacy[:p, :p],
        sampling=delta.sampling[:p, :p],
        leaning=delta.leaning.of(p),
        inverse=np.eye(p),
        variance=float(delta.values[-2]),
        gate=gate,
        residual=np.zeros(len(moments.names)),
        weakest=np.zeros(p),
    )
    said = fit_result(
        model, fit, int(result["n"]), estimand=ESTIMAND, warnings=result["warnings"], bared=bared
    )
    squares = np.array([unit**2, unit**2, 1.0])
    none = np.nan if bared else 1.0
    components = {
        "values": np.maximum(delta.values[p:] * squares, 0.0).tolist(),
        "standard_errors": (delta.bse[p:] * squares * none).tolist(),
    }
    return MixedFit(document(release, {"formula": formula}, said | {"components": components}))
