# SPDX-License-Identifier: Apache-2.0
"""Least squares and logits over a noisy table of cells, with intervals that count its noise.

A cell k has covariates x_k, a response y_k and an unbiased count c_k. θ̂ solves Σ_k c_k ψ_k(θ) = 0,
ψ = (y − μ(xᵀθ))x: the estimating equations of all records, whose bins' middles stand for numbers.
As they are linear in the counts, noise leaves them unbiased, negative counts included. To first
order

    Var θ̂ = J⁻¹(Σ_k c_k ψ_kψ_kᵀ + σ²(ΨᵀΨ − [total public] (Ψᵀ1)(Ψᵀ1)ᵀ/K))J⁻¹,
    J = Σ_k c_k μ′_k x_kx_kᵀ:

sampling with errors of any variance (sandwich), and the noise of each cell. Where the noise of J in
a direction is above 1/CLEAR of J itself the expansion does not hold, and there are no intervals.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from reticent._errors import InvalidFormula
from reticent._vector import FloatArray
from reticent.results.cell_table import CLEAR, CellTable

LEVEL = 0.95  # of intervals: the field's convention
_STEPS = 50  # of Newton: it needs under 10 where the noise is small
_SMALL = 1e-9  # of a step, in standardised coefficients
_TERM = re.compile(r"(?:C\((`[^`]+`|[\w.]+)\)|(`[^`]+`|[\w.]+))$")
_HIDDEN = (
    "No intervals: the noise is too large beside the table's information about the coefficients. "
    "Take fewer terms or fewer bins, a clique of fewer cells, or a larger epsilon."
)


@dataclass(frozen=True, slots=True)
class CellColumn:
    """A column's cells: names, and numbers where it has some."""

    levels: tuple[str, ...]
    numbers: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class CellDesign:
    """Over a table's cells in order: y (cells,), X (cells, p) and the terms' names."""

    y: FloatArray
    X: FloatArray
    names: tuple[str, ...]


def parse(formula: str) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """The response, and each term's column with whether it is taken by level. Raises
    InvalidFormula.
    """
    left, tilde, right = formula.partition("~")
    found = [_TERM.match(text.strip()) for text in (left, *right.split("+"))]
    if not tilde or any(each is None for each in found) or (found[0] and found[0][1]):
        raise InvalidFormula(
            "Write a column, '~' and columns with '+' between them, such as 'y ~ age + C(region)'."
        )
    names = [((m[1] or m[2]).strip("`"), m[1] is not None) for m in found if m]
    if len({name for name, _ in names}) < len(names):
        raise InvalidFormula("A column stands in the formula twice.")
    return names[0][0], tuple(names[1:])


def cell_design(
    table: CellTable,
    columns: Mapping[str, CellColumn],
    response: str,
    terms: Sequence[tuple[str, bool]],
) -> CellDesign:
    """Of a table whose columns are those of the formula. A response of two levels is 1 at the
    second. Raises InvalidFormula.
    """
    places = dict(zip(table.columns, np.indices(table.counts.shape), strict=True))
    of = columns[response]
    if of.numbers is None and len(of.levels) != 2:
        raise InvalidFormula("The response must be a column of numbers, or of two levels.")
    y = np.asarray(of.numbers or (0.0, 1.0), dtype=np.float64)[places[response].ravel()]
    names, X = ["Intercept"], [np.ones(y.size)]
    for name, by_level in terms:
        cells, column = places[name].ravel(), columns[name]
        if column.numbers is not None and not by_level:
            names.append(name)
            X.append(np.asarray(column.numbers)[cells])
            continue
        names += [f"C({name})[{level}]" for level in column.levels[1:]]
        X += [(cells == k).astype(np.float64) for k in range(1, len(column.levels))]
    return CellDesign(y, np.column_stack(X), tuple(names))


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """μ(η) and its slope μ′ as a function of μ."""

    mean: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]


IDENTITY = MeanCurve(np.asarray, np.ones_like)
LOGIT = MeanCurve(lambda eta: np.asarray(expit(eta)), lambda mu: np.asarray(mu * (1 - mu)))


def fit_result(
    table: CellTable, design: CellDesign, link: MeanCurve, estimand: str, n: int
) -> dict[str, Any]:
    """What a fit says, in a released regression's form."""
    scale = _above_zero(np.sqrt((design.X**2).mean(axis=0)))
    X, c = design.X / scale, table.counts.ravel()
    theta, is_open = _solved(X, design.y, c, link)
    mu = link.mean(X @ theta)
    J = (X.T * (c * link.slope(mu))) @ X
    is_open = is_open and _clear(table, X, link.slope(mu), J)
    psi = X * (design.y - mu)[:, None]
    inverse = np.linalg.pinv(J)
    noise = inverse @ table.noise(psi.T) @ inverse
    sampling = _semidefinite(inverse @ ((psi.T * c) @ psi) @ inverse)
    L = np.diag(1 / scale)
    covariance = L @ (sampling + noise) @ L
    beta, errors = theta / scale, _roots(covariance)
    half = float(ndtri((1 + LEVEL) / 2)) * errors
    with np.errstate(over="ignore"):  # an exact fit
        p = 2 * ndtr(-np.abs(beta) / np.maximum(errors, np.finfo(float).tiny))
    ends = np.column_stack([beta - half, beta + half]).tolist()
    return {
        "terms": list(design.names),
        "coefficients": beta.tolist(),
        "standard_errors": errors.tolist(),
        "covariance": covariance.tolist(),
        "confidence_level": LEVEL,
        "confidence_intervals": ends if is_open else [[None, None]] * len(beta),
        "p_values": p.tolist() if is_open else [None] * len(beta),
        "privacy_standard_errors": _roots(L @ noise @ L).tolist(),
        "estimable": [is_open] * len(beta),
        "scale": None,
        "tuning": None,
        "estimand": estimand,
        "n": n,
        "warnings": [] if is_open else [_HIDDEN],
    }


def _solved(
    X: FloatArray, y: FloatArray, c: FloatArray, link: MeanCurve
) -> tuple[FloatArray, bool]:
    """θ̂ by Newton's steps from 0, and whether they came to rest."""
    theta = np.zeros(X.shape[1])
    for _ in range(_STEPS):
        mu = link.mean(X @ theta)
        J = (X.T * (c * link.slope(mu))) @ X
        step = np.linalg.pinv(J) @ (X.T @ (c * (y - mu)))
        theta = theta + step
        if np.abs(step).max() <= _SMALL * max(1.0, np.abs(theta).max()):
            return theta, True
    return np.where(np.isfinite(theta), theta, 0.0), False


def _clear(table: CellTable, X: FloatArray, slope: FloatArray, J: FloatArray) -> bool:
    """Whether J is above its noise in every direction: J's eigenvectors, in units of its diagonal's
    noise.
    """
    w = np.maximum(slope, np.finfo(float).tiny)[:, None]
    unit = _above_zero(_roots((w * X**2).T @ (w * X**2)) ** 0.5)
    values, vectors = np.linalg.eigh(J / np.outer(unit, unit))
    along = (X / unit) @ vectors
    noise = _roots(table.noise((w * along**2).T))
    return bool(np.all(values > CLEAR * noise))


def _semidefinite(V: FloatArray) -> FloatArray:
    """The nearest positive semi-definite matrix: noise can make a variance negative."""
    values, vectors = np.linalg.eigh((V + V.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _above_zero(lengths: FloatArray) -> FloatArray:
    """Lengths to divide by: 1 of a column that is 0 throughout."""
    return np.where(lengths > 0, lengths, 1.0)


def _roots(V: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(np.diag(V), 0.0)))
