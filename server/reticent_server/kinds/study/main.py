# SPDX-License-Identifier: Apache-2.0
"""A declared formula: least squares with standard errors that are robust to heteroscedasticity.

The score of a record is ωx(vᵀz̃), v the residual's coefficients. The scores' Gram matrix is
released for white columns x̃ = Bx, B = (S_XX/S₀₀)^(−1/2), and in units of σ:

    M = Σ ω²x̃x̃ᵀ(vᵀz̃)²/σ²,   contributions of norm ≤ C,   C² = 16p.

The sampling covariance S_XX⁻¹(Σω²xxᵀ(vᵀz̃)²)S_XX⁻¹ is then (σ²/S₀₀)·B(M/S₀₀)B (White 1980), and
B²σ²/S₀₀, the classical one, where M/S₀₀ is I. Eigenvalues of M/S₀₀ count at least the operator norm
of its noise, but no more than 1 for that: where noise hides M the errors are the classical ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from reticent_server.domain.design import Design, Term
from reticent_server.domain.steps import FloatArray, GramSum, Released
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.report import MOST_DEGREES, intervals, p_values, roots
from reticent_server.fitting.standard_fit import Freedom
from reticent_server.fitting.trust.thresholds import CLIPPING_SHARE
from reticent_server.kinds.study.leaning import Leaning, NarrowMoments, lengthened
from reticent_server.kinds.study.maps import BoolArray, StudyScores
from reticent_server.kinds.study.moments import LeastSquares, Moments
from reticent_server.kinds.study.result import MainFit
from reticent_server.numerics.matrices import floored, power

SCORE_LIMIT = (
    16.0  # C² for each coefficient: four times a white row's length at a residual of one σ
)


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """y and x as combinations of z̃: y (q,), X (p, q); β = Lθ + o in the units of the data, L
    (p, p), o (p,)."""

    text: str
    names: tuple[str, ...]
    y: FloatArray
    X: FloatArray
    matrix: FloatArray
    offset: FloatArray
    unit: float

    @property
    def limit(self) -> float:
        """C."""
        return sqrt(SCORE_LIMIT * len(self.X))

    def bared(self, names: Sequence[str], lost: FloatArray) -> tuple[str, ...]:
        """Those of its columns (names, tails lost (q,)) of which the radius takes too much for
        intervals."""
        used = np.any(np.vstack([self.y, self.X]) != 0, axis=0) & trust.bared(lost)
        return tuple(name for name, x in zip(names, used, strict=True) if x)

    def part(self, groups: int, rho: int, unit_rows: int) -> GramSum:
        """The meat's release: a Gram matrix of its scores for each of `groups`, cut at norm 1."""
        return GramSum(len(self.X) * groups, 1.0, rho, unit_rows)


@dataclass(frozen=True, slots=True, eq=False)
class GroupFit:
    """A group's least squares before its meat: B̄ = (S_XX/S₀₀)^(−1/2) (p, p), what the scores are
    made with, what clipping may have moved, and the columns that leave it without intervals; with
    errors by person what is known of them. stretch: by what mean squares of residuals are
    multiplied to be those of errors."""

    fit: LeastSquares
    leaning: Leaning
    root: FloatArray
    scores: StudyScores
    records: float
    bared: tuple[str, ...] = ()
    freedom: Freedom | None = None
    stretch: float = 1.0

    @property
    def open(self) -> bool:
        """Whether intervals may be given."""
        return self.fit.open and not self.bared and self.enough

    @property
    def enough(self) -> bool:
        """Whether errors by person are of enough persons."""
        return self.freedom is None or self.freedom.verdict.intervals


def formula_of(text: str, declared: Design, coding: TermCoding) -> Formula:
    """The declared formula over a study's columns. Raises InvalidQuery where it names others."""
    response = declared.response
    if response is None or not declared.names:
        raise InvalidQuery("main needs a response and at least one term.")
    places = [_place(term, coding) for term in declared.terms]
    y_place = _place(response, coding)
    head = int(declared.intercept and not coding.design.deviations)
    q, centres, scales = coding.size, coding.centres, coding.scales
    rows = np.eye(q)
    moved = rows * scales[:, None] + np.outer(centres, rows[0]) * (np.arange(q) > 0)[:, None]
    unit = float(scales[y_place])
    if head:
        X, y = rows[[0, *places]], rows[y_place]
        matrix = np.diag(unit / scales[[0, *places]])
        matrix[0, 1:] -= unit * centres[places] / scales[places]
        offset = np.append(centres[y_place], np.zeros(len(places)))
    else:
        X, y = moved[places] / scales[places][:, None], moved[y_place] / unit
        matrix, offset = np.diag(unit / scales[places]), np.zeros(len(places))
    names = tuple(term.name for term in declared.terms)
    return Formula(text, ("Intercept",) * head + names, y, X, matrix, offset, unit)


def _place(term: Term, coding: TermCoding) -> int:
    for k, known in enumerate(coding.design.stored.terms):
        if set(known.factors) == set(term.factors):
            return k + 1
    raise InvalidQuery(
        "main has a term that is not among the study's columns; add it to variables, and keep "
        "the intercept."
    )


def before_meat(formula: Formula, moments: Moments, narrow: NarrowMoments) -> GroupFit:
    """Least squares of a group, and what its scores are made with."""
    fit = moments.least_squares(formula.y, formula.X)
    records = max(float(moments.sums[0, 0]), 1.0)
    root = power(fit.inverse * records, 0.5)
    sigma = sqrt(max(fit.variance, np.finfo(float).tiny))
    leaning = narrow.leaning(moments.sums, fit.residual, formula.X, fit.inverse, fit.sampling)
    return GroupFit(
        fit, leaning, root, StudyScores(root @ formula.X, fit.residual / sigma), records
    )


def meat(
    formula: Formula, released: Released, g: int, fitted: GroupFit, limit_squared: float
) -> FloatArray:
    """(p, p) M/S₀₀, with eigenvalues that noise cannot hide. limit_squared: C²."""
    p = len(formula.X)
    own, size = slice(g * p, (g + 1) * p), limit_squared / fitted.records
    noise = released.sd * size * sqrt(2 * p)
    return floored(released.values[own, own] * size, min(1.0, noise))


def main_fit(
    fitted: GroupFit, formula: Formula, middle: FloatArray, level: float, n: int
) -> MainFit:
    """The report. middle: M/S₀₀ (p, p)."""
    fit, L = fitted.fit, formula.matrix
    sampling = fit.variance / fitted.records * fitted.root @ middle @ fitted.root
    beta = L @ fit.theta + formula.offset
    squares = fitted.leaning.squares(L)
    privacy = L @ fit.privacy @ L.T
    covariance = lengthened(L @ sampling @ L.T + privacy, squares)
    classical = lengthened(fitted.stretch * L @ fit.sampling @ L.T + privacy, squares)
    errors, ok = roots(covariance), np.full(len(beta), fitted.open)
    degrees = None
    if fitted.freedom is not None:
        own = np.diag(L @ sampling @ L.T)
        degrees = np.minimum(fitted.freedom.degrees(L, own, np.diag(covariance)), MOST_DEGREES)
    moved = squares > CLIPPING_SHARE.value * np.diag(covariance)
    said = [leans(formula.names, moved)] if fitted.open and moved.any() else []
    return MainFit(
        formula=formula.text,
        terms=list(formula.names),
        coefficients=beta.tolist(),
        standard_errors=errors.tolist(),
        covariance=covariance.tolist(),
        confidence_level=level,
        confidence_intervals=list(intervals(beta, errors, level, ok, degrees)),
        p_values=p_values(beta, errors, ok, degrees),
        privacy_standard_errors=roots(privacy).tolist(),
        classical_standard_errors=roots(classical).tolist(),
        estimable=[bool(x) for x in ok],
        scale=sqrt(fitted.stretch * fit.variance) * formula.unit,
        gate=fit.gate if np.isfinite(fit.gate) else None,
        estimand=ESTIMAND if fitted.freedom is None else OF_PERSONS,
        n=n,
        warnings=[
            *([] if fit.open else [closed(formula, fit)]),
            *([bare(fitted.bared)] if fitted.bared else []),
            *([] if fitted.enough else [FEW_PERSONS]),
            *said,
        ],
        **_clusters(fitted.freedom, degrees),
    )


def _clusters(freedom: Freedom | None, degrees: FloatArray | None) -> dict[str, Any]:
    """What a reply says of persons whose scores were added."""
    if freedom is None or degrees is None:
        return {}
    return {
        "clusters": freedom.clusters.persons,
        "effective_clusters": freedom.clusters.effective,
        "degrees_of_freedom": degrees.tolist(),
        "clipped_share": freedom.clusters.clipped,
    }


FEW_PERSONS = (
    "No intervals: too few persons vary the scores for errors by person. Fewer terms, or a table "
    "of more persons, would help."
)
OF_PERSONS = (
    "Least squares over all rows in use, with persons beyond the radius downweighted; standard "
    "errors are by person (cluster-robust)."
)


ESTIMAND = (
    "Least squares, with records beyond the radius downweighted; standard errors are robust to "
    "heteroscedasticity."
)


def leans(names: Sequence[str], moved: BoolArray) -> str:
    """What to say where what clipping may have moved is more than the other errors together."""
    which = ", ".join(name for name, x in zip(names, moved, strict=True) if x)
    return (
        f"Few records with large values bear on {which}: the radius downweights them, and "
        "intervals are wider for it. A "
        "logarithm, or an indicator of the few, is about all records."
    )


def bare(names: Sequence[str]) -> str:
    """What to say of columns of which the radius takes too much."""
    return (
        f"No intervals: much of {', '.join(names)} lies in few records, or may behind the noise. "
        "The radius downweights these, and coefficients of all "
        "records may lie outside of any interval that could be given. Take a logarithm (as a "
        "variable of the study), or "
        "a regression, which is about typical records."
    )


def closed(formula: Formula, fit: LeastSquares) -> str:
    """What to say where the gate is shut."""
    weights = np.abs(fit.weakest)
    heavy = [
        name
        for name, w in zip(formula.names, weights, strict=True)
        if w > weights.max() / 2 and name != "Intercept"
    ]
    return (
        "No intervals: the noise is too large beside the data's information about the "
        "combination of "
        f"{', '.join(heavy) or 'the terms'}. Leave one of them out, or use a larger epsilon."
    )
