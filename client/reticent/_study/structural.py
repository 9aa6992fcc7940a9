# SPDX-License-Identifier: Apache-2.0
"""Confirmatory factors, paths and structural equations from a study's moments.

Estimates are of normal maximum likelihood. Standard errors count the noise by the delta method,
what clipping may have moved, and sampling of a normal law with the released covariance, whether or
not the model has that covariance: where it fits they are those of the expected information, where
it does not they are those of the sandwich. A study holds no fourth moments, so that none are robust
to kurtosis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent import _drawing, _optional
from reticent._errors import InvalidFormula, NotEstimable
from reticent._study.exact_fit import Misfit, indices, misfit
from reticent._study.moments import GATE, Delta, FloatArray, Moments
from reticent._study.path_fit import (
    Array,
    Structure,
    fitted,
    jacobian,
    movement,
    start,
    structure,
)
from reticent._study.path_text import COVARIANCE, DEFINED, LOADING, SLOPE, Path, PathModel
from reticent._text import Text, number, paragraph, probability, text_table

NORMAL = (
    "Sampling errors and the test of fit assume a normal law: a study has no fourth moments. Noise "
    "and clipping are counted."
)
ALIKE = (
    "Persons have several rows, and moments do not show how alike these are: standard errors are "
    "as large as that can make them, and there is no test of fit."
)
_SINGULAR = (
    "The model gives no covariance that can be fitted, or a function of labels has no value at the "
    "estimates: look at the numbers that it fixes, and at divisions and powers."
)
_ROUNDED = 1e-9
"""Of the largest variance: an eigenvalue that rounding makes of 0."""


@dataclass(frozen=True, slots=True)
class PathEstimate:
    """One row: `lhs op rhs`, its label, the estimate, standard errors (all, and of the noise
    alone), and the same standardised by all variables' deviations. Fixed parameters have errors of
    0.
    """

    lhs: str
    op: str
    rhs: str
    label: str
    est: float
    se: float
    privacy_se: float
    std_all: float
    std_se: float

    @property
    def z(self) -> float:
        """est/se, which Wald's test refers to a standard normal; nan where the error is 0."""
        return self.est / self.se if self.se > 0 else float("nan")

    @property
    def pvalue(self) -> float:
        """Two-sided, of 0."""
        return float(2 * ndtr(-abs(self.z)))

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) by the normal law."""
        half = float(ndtri(1 - alpha / 2)) * self.se
        return self.est - half, self.est + half

    def __str__(self) -> str:
        return f"{self.lhs} {self.op} {self.rhs}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructuralFit:
    """A fitted structural model, in the units of the data; nothing was charged for it.

    >>> fit = study.sem("visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; textual ~ visual")
    >>> fit.parameter_estimates(), fit.fit_indices["rmsea"], fit.reliability()

    fit_indices: by lavaan's names; empty where there is no test of fit. `noise` is what the noise
    multiplies χ² by under an exact fit, for which all of them are corrected.
    """

    estimates: tuple[PathEstimate, ...]
    fit_indices: Mapping[str, float]
    rsquared: Mapping[str, float]
    notes: tuple[str, ...]
    loadings: Mapping[str, Mapping[str, float]]
    residual_covariance: FloatArray
    columns: tuple[str, ...]

    def __getitem__(self, name: str) -> PathEstimate:
        """A parameter by its text ("y ~ x") or its label. Raises KeyError."""
        wanted = " ".join(name.split())
        for each in self.estimates:
            if wanted in {str(each), each.label} or (each.op == DEFINED and wanted == each.lhs):
                return each
        raise KeyError(f"{name}: the parameters are {', '.join(map(str, self.estimates))}")

    def parameter_estimates(self) -> Any:
        """A pandas.DataFrame with lavaan's columns, one row a parameter; needs pandas."""
        rows = [
            (e.lhs, e.op, e.rhs, e.label, e.est, e.se, e.privacy_se, e.z, e.pvalue, *e.conf_int())
            for e in self.estimates
        ]
        names = ("lhs", "op", "rhs", "label", "est", "se", "privacy_se", "z", "pvalue")
        frame = _optional.pandas().DataFrame(rows, columns=[*names, "ci.lower", "ci.upper"])
        return frame.assign(**{"std.all": [e.std_all for e in self.estimates]})

    to_frame = parameter_estimates

    def standardized_solution(self) -> Any:
        """A pandas.DataFrame of standardised parameters with errors and intervals; needs pandas."""
        z = float(ndtri(0.975))
        rows = [
            (
                *(e.lhs, e.op, e.rhs, e.std_all, e.std_se),
                *(e.std_all - z * e.std_se, e.std_all + z * e.std_se),
            )
            for e in self.estimates
        ]
        names = ["lhs", "op", "rhs", "est.std", "se", "ci.lower", "ci.upper"]
        return _optional.pandas().DataFrame(rows, columns=names)

    @property
    def factor_correlations(self) -> dict[tuple[str, str], PathEstimate]:
        """Covariances of factors, whose `std_all` are correlations (of residuals, where
        explained)."""
        pairs = [e for e in self.estimates if e.op == COVARIANCE and e.lhs != e.rhs]
        return {(e.lhs, e.rhs): e for e in pairs if {e.lhs, e.rhs} <= set(self.loadings)}

    def reliability(self) -> dict[str, float]:
        """McDonald's ω of each factor by the model: (Σλ)²ψ over that plus its indicators' residuals
        (Bollen 1980; Raykov 2001). Intervals: study.reliability.
        """
        found = {}
        variance = {e.lhs: e.est for e in self.estimates if e.op == COVARIANCE and e.lhs == e.rhs}
        for factor, loadings in self.loadings.items():
            at = [self.columns.index(x) for x in loadings if x in self.columns]
            common = sum(loadings.values()) ** 2 * variance[factor]
            left = float(np.sum(self.residual_covariance[np.ix_(at, at)]))
            found[factor] = common / (common + left)
        return found

    def summary(self) -> Text:
        """The estimates with standard errors, p-values and standardised values, then the measures
        of fit."""
        rows = [
            (
                str(e),
                *map(number, (e.est, e.se, e.privacy_se)),
                probability(e.pvalue),
                number(e.std_all),
            )
            for e in self.estimates
        ]
        header = ("", "estimate", "std err", "privacy", "p", "std.all")
        said = [line for note in self.notes for line in paragraph(note)]
        return Text("\n".join([*self._fit(), *text_table(header, rows), "", *said]))

    def __repr__(self) -> str:
        return str(self.summary())

    def plot(self, ax: Any = None) -> Any:
        """Standardised loadings, slopes and covariances with 95 % intervals; needs matplotlib,
        gives the Axes.
        """
        shown = [e for e in self.estimates if e.op != DEFINED and (e.lhs != e.rhs)]
        values = np.array([e.std_all for e in shown])
        half = float(ndtri(0.975)) * np.array([e.std_se for e in shown])
        ends = np.column_stack([values - half, values + half])
        axes = _drawing.intervals(list(map(str, shown)), values, ends, ax)
        axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("standardised estimate, 95 % interval")
        return axes

    def _fit(self) -> list[str]:
        f = self.fit_indices
        if not f:
            return []
        low, high = f["rmsea.ci.lower"], f["rmsea.ci.upper"]
        return [
            (
                f"χ²({f['df']:.0f}) = {f['chisq']:.4g}, p = {probability(f['pvalue'])}; noise "
                f"alone would multiply its mean by {f['noise']:.3g}, which is corrected for"
            ),
            (
                f"CFI {f['cfi']:.3f}, TLI {f['tli']:.3f}, RMSEA {f['rmsea']:.3f} [{low:.3f}, "
                f"{high:.3f}], SRMR {f['srmr']:.3f}"
            ),
            "",
        ]


def structural(
    moments: Moments, model: PathModel, *, alike: bool, warnings: Sequence[str]
) -> StructuralFit:
    """The fit of a model. alike: whether persons have several rows. Raises NotEstimable."""
    try:
        with np.errstate(all="ignore"):
            found = _structural(moments, model, alike=alike, warnings=warnings)
    except (np.linalg.LinAlgError, ArithmeticError):
        raise NotEstimable(_SINGULAR) from None
    if not np.isfinite([e.est for e in found.estimates]).all():
        raise NotEstimable(_SINGULAR)
    return found


def _structural(
    moments: Moments, model: PathModel, *, alike: bool, warnings: Sequence[str]
) -> StructuralFit:
    places = tuple(model.columns.values())
    units = moments.scales[list(places)]
    K = clear_covariance(moments, places) * np.outer(units, units)
    S = structure(model)
    if S.df < 0:
        raise InvalidFormula(
            f"The model has {S.t} parameters for {S.df + S.t} variances and covariances: "
            "leave some out."
        )
    theta = fitted(S, start(S, model, K), K)
    _proper(S, theta)
    carried = _carried(S, theta, K, moments, places, units)
    shut = bare(moments, places)
    estimates = _estimates(S, theta, model, carried, shut=bool(shut))
    C, P = S.total(theta), S.matrices(theta)[1]
    fit = {} if alike or shut else _fit_of(S, theta, model, moments, places, units, K)
    notes = (NORMAL, *([ALIKE] if alike else []), *shut, *warnings)
    explained = {e.lhs if e.op == SLOPE else e.rhs for e in estimates if e.op in {LOADING, SLOPE}}
    r2 = {n: 1 - P[k, k] / C[k, k] for k, n in enumerate(S.names) if n in explained}
    loadings = {
        f: {e.rhs: e.est for e in estimates if e.op == LOADING and e.lhs == f}
        for f in model.factors
    }
    left = P[-S.m :, -S.m :]
    return StructuralFit(estimates, fit, r2, notes, loadings, left, tuple(model.columns))


def clear_covariance(moments: Moments, places: Sequence[int]) -> FloatArray:
    """(m, m) in the study's units. Raises NotEstimable where the noise hides a combination."""
    rows = np.eye(len(moments.names))[[0, *places]]
    K = moments.covariance(places)
    if moments.gate(rows) > GATE or np.linalg.eigvalsh(K)[0] <= 0:
        raise NotEstimable(
            "Not identifiable at this epsilon: the noise is too large beside what distinguishes "
            "these columns. Use fewer columns, or ask a study at a larger epsilon."
        )
    return K


def bare(moments: Moments, places: Sequence[int]) -> list[str]:
    """A sentence about columns of which the radius takes too much, where there are any."""
    named = moments.bared(np.eye(len(moments.names))[list(places)])
    if not named:
        return []
    return [
        (
            "No intervals and no test of fit: the study's radius takes much of "
            f"{', '.join(named)}, whose variance is in few large values. Ask a study of its "
            "logarithm."
        )
    ]


def _proper(S: Structure, theta: FloatArray) -> None:
    """Raises NotEstimable for a variance below 0, or correlations beyond 1 (a Heywood case)."""
    P = S.matrices(theta)[1]
    negative = [n for k, n in enumerate(S.names) if P[k, k] < 0]
    if negative or np.linalg.eigvalsh(P)[0] < -_ROUNDED * np.max(np.diag(P)):
        which = f"{', '.join(negative)} below 0" if negative else "correlations beyond 1"
        raise NotEstimable(
            f"An improper solution (Heywood case): {which}. The noise may be too large, or the "
            "model wrong: use fewer factors, more indicators for each, or a study at a larger "
            "epsilon."
        )


def _carried(
    S: Structure,
    theta: FloatArray,
    K: FloatArray,
    moments: Moments,
    places: Sequence[int],
    units: FloatArray,
) -> Delta:
    """θ̂ with its errors."""
    slopes = [each * np.outer(units, units) for each in movement(S, theta, K)]
    return moments.carried(places, theta, slopes)


def _estimates(
    S: Structure, theta: FloatArray, model: PathModel, carried: Delta, *, shut: bool
) -> tuple[PathEstimate, ...]:
    paths = model.paths
    fixed = np.array([p.fixed or 0.0 for p in paths])
    which = np.array(S.parameter)
    at = {name: k for k, name in enumerate(S.names)}

    def plain(t: Array) -> Array:
        values = np.where(which >= 0, t[which], fixed)
        return np.append(values, _defined(model, values))

    def standard(t: Array) -> Array:
        C, P = np.diag(S.total(t)), np.diag(S.matrices(t)[1])
        values = plain(t)[: len(paths)]
        scaled = np.array([_standard(p, v, C, P, at) for p, v in zip(paths, values, strict=True)])
        return np.append(scaled, _defined(model, scaled))

    values, std = plain(theta), standard(theta)
    errors, noise = _errors(carried, jacobian(plain, theta))
    std_errors, _ = _errors(carried, jacobian(standard, theta))
    if shut:
        errors, noise, std_errors = (
            np.full_like(each, np.nan) for each in (errors, noise, std_errors)
        )
    named = [
        *((p.left, p.op, p.right, p.label) for p in paths),
        *((name, DEFINED, "", name) for name in model.defined),
    ]
    columns = zip(values, errors, noise, std, std_errors, strict=True)
    return tuple(
        PathEstimate(*names, *map(float, row)) for names, row in zip(named, columns, strict=True)
    )


def _errors(carried: Delta, L: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard errors of Lθ: all, and of the noise."""
    noise = np.diag(L @ carried.privacy @ L.T)
    total = noise + np.diag(L @ carried.sampling @ L.T) + carried.leaning.squares(L)
    return np.sqrt(np.maximum(total, 0.0)), np.sqrt(np.maximum(noise, 0.0))


def _defined(model: PathModel, values: Array) -> list[Any]:
    known = {p.label: v for p, v in zip(model.paths, values, strict=True) if p.label}
    found = []
    for name, function in model.defined.items():
        known[name] = function(known)
        found.append(known[name])
    return found


def _standard(path: Path, value: Any, C: Array, P: Array, at: Mapping[str, int]) -> Any:
    """By the deviations of both ends; a covariance by those of the residuals. C, P (v,): variances
    of all, and of what is not explained.
    """
    left, right = at[path.left], at[path.right]
    if path.op == LOADING:
        return value * np.sqrt(C[left] / C[right])
    if path.op == SLOPE:
        return value * np.sqrt(C[right] / C[left])
    if left == right:
        return value / C[left]
    return value / np.sqrt(P[left] * P[right])


def _fit_of(
    S: Structure,
    theta: FloatArray,
    model: PathModel,
    moments: Moments,
    places: Sequence[int],
    units: FloatArray,
    K: FloatArray,
) -> dict[str, float]:
    """Indices beside the model in which columns are unrelated, but those that nothing explains."""
    own, srmr = misfit(S, theta, moments, places, units)
    alone = _unrelated(model)
    B = structure(alone)
    base: Misfit = misfit(B, fitted(B, start(B, alone, K), K), moments, places, units)[0]
    return {"npar": float(len(theta)), **indices(own, base, srmr, moments.records)}


def _unrelated(model: PathModel) -> PathModel:
    outside = set(model.outside)
    pairs = [(c, c) for c in model.columns]
    pairs += [
        (p.left, p.right)
        for p in model.paths
        if p.op == COVARIANCE and p.left != p.right and {p.left, p.right} <= outside
    ]
    paths = tuple(Path(a, COVARIANCE, b) for a, b in pairs)
    return PathModel((), model.columns, paths, model.outside, {})
