# SPDX-License-Identifier: Apache-2.0
"""What a released regression tells for nothing: predictions, marginal effects, marginal means,
contrasts.

Everything is a smooth function of the coefficients with the delta method's covariance, which counts
the privacy noise. The new data are public: no record of the data set is read. Sources: statsmodels'
get_margeff; Searle, Speed & Milliken (1980) and emmeans for marginal means.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent._errors import InvalidFormula
from reticent.results.design import Design, Frame, columns_of
from reticent.results.effects import Effects, combined
from reticent.results.factor_levels import BASELINE, quoted, term_pieces
from reticent.results.link import Link
from reticent.results.prediction import Prediction

FloatArray = NDArray[np.float64]
_TIGHT = 1e-9
"""Relative difference of interval widths that is rounding."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit as its parts. params (p,), covariance (p, p); can_test: whether combinations (k, p) are
    estimable. baselines: of the factors, where the release says them. offsets: how many of the
    terms, at the end, are the question's offset and exposure, whose coefficients are 1.
    """

    terms: tuple[str, ...]
    params: FloatArray
    covariance: FloatArray
    can_test: Callable[[FloatArray], bool]
    link: Link
    scale: float | None
    widening: float
    baselines: Mapping[str, str] | None = None
    offsets: int = 0

    def with_offsets(self, query: Mapping[str, Any]) -> "Fitted":
        """The fit with the question's offset, and the logarithm of its exposure, as terms."""
        added = offset_terms(query)
        p, k = len(self.terms), len(added)
        return replace(
            self,
            terms=(*self.terms, *added),
            params=np.append(self.params, np.ones(k)),
            covariance=np.pad(self.covariance, (0, k)),
            can_test=lambda R: bool(not R[:, :p].any() or self.can_test(R[:, :p])),
            offsets=k,
        )

    @property
    def varied(self) -> tuple[str, ...]:
        """The numeric columns of the terms, without those of the offset and the exposure alone."""
        return Design(self.terms[: len(self.terms) - self.offsets]).numbers

    @property
    def design(self) -> Design:
        """Computes the terms of this fit for new data, as `predict` and `margins` need them."""
        return Design(self.terms, self.baselines)

    def linear(self, X: FloatArray) -> FloatArray:
        """(n,) linear predictors of rows (n, p)."""
        return np.asarray(X @ np.nan_to_num(self.params))

    def estimable(self, rows: FloatArray) -> list[bool]:
        """Whether each row (k, p) is a combination that the release tells from noise."""
        return [self._can_tell(row) for row in rows]

    def _can_tell(self, row: FloatArray) -> bool:
        used = np.flatnonzero(row)
        if not np.isfinite(row).all() or not used.size:
            return bool(np.isfinite(row).all())
        known = (
            np.isfinite(self.params[used]).all()
            and np.isfinite(self.covariance[np.ix_(used, used)]).all()
        )
        return bool(known and self.can_test(row[None]))


def offset_terms(query: Mapping[str, Any]) -> tuple[str, ...]:
    """The question's offset, and the logarithm of its exposure, as terms of a design."""
    given = [("{}", query.get("offset")), ("log({})", query.get("exposure"))]
    return tuple(term.format(quoted(name)) for term, name in given if name is not None)


def with_given(frame: Any, query: Mapping[str, Any], given: Mapping[str, Any]) -> Frame:
    """New data with the offset and the exposure that are given by themselves: a number, or one for
    each row. Raises InvalidFormula for what the fit has not, and where a value is given nowhere.
    """
    columns = {**columns_of(frame)}
    rows = max((len(np.atleast_1d(values)) for values in columns.values()), default=1)
    for field, values in given.items():
        name = query.get(field)
        if values is not None and name is None:
            raise InvalidFormula(f"This fit was asked for without {field}.")
        if values is not None:
            columns[name] = np.broadcast_to(values, rows) if np.ndim(values) == 0 else values
        if name is not None and name not in columns:
            raise InvalidFormula(
                f"The new data lack {name}, the {field} of this fit: give the column, or {field}=."
            )
    return columns


def widening(ends: FloatArray, params: FloatArray, bse: FloatArray, level: float) -> float:
    """By how much the released intervals (p, 2) are wider than normal ones: the largest ratio, at
    least 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (ends[:, 1] - ends[:, 0]) / (2 * float(ndtri((1 + level) / 2)) * bse)
    usable = ratios[np.isfinite(ratios) & np.isfinite(params)]
    largest = float(usable.max()) if usable.size else 1.0
    return largest if largest > 1 + _TIGHT else 1.0


def prediction(fit: Fitted, frame: Frame) -> Prediction:
    """Of each row of the frame."""
    X = fit.design.rows(frame)
    lost = ~np.array(fit.estimable(X), dtype=bool)
    G = np.nan_to_num(X)
    variance = np.einsum("ij,jk,ik->i", G, np.nan_to_num(fit.covariance), G)
    eta, se = fit.linear(G), np.sqrt(np.maximum(variance, 0.0))
    eta[lost] = se[lost] = np.nan
    return Prediction(eta, se, fit.link, fit.scale, fit.widening)


def margins(
    fit: Fitted, frame: Frame | None, weights: Sequence[float] | None, dummy: Sequence[str]
) -> Effects:
    """Average marginal effects over the rows of a public frame."""
    design = fit.design
    frame = design.completed(_constant(fit) if frame is None else frame)
    X = design.rows(frame)
    w = _weights(weights, len(X))
    numbers = [x for x in fit.varied if x not in dummy]
    effects = [
        *(_slope(fit, X, design.derivative(frame, x), w) for x in numbers),
        *(_change(fit, _set(frame, x, 0, design), _set(frame, x, 1, design), w) for x in dummy),
    ]
    names = [*numbers, *dummy]
    for factor in design.factors:
        first, *rest = _levels(design, factor)
        base = _set(frame, factor, first, design)
        for level in rest:
            names.append(f"{factor}[{level}]")
            effects.append(_change(fit, base, _set(frame, factor, level, design), w))
    values, rows = np.array([v for v, _ in effects]), np.array([g for _, g in effects])
    about = (
        "Average marginal effects (dy/dx; changes from the baseline for levels), in units of the "
        "response."
    )
    return _effects(fit, names, values, rows.reshape(len(effects), len(fit.terms)), about)


def marginal_means(
    fit: Fitted, factor: str, at: Mapping[str, float] | None, baseline: str | None
) -> Effects:
    """Linear predictors at the levels of a factor, averaged over a grid of the other factors'
    levels.
    """
    names, L = _grid_means(fit, factor, at or {}, baseline)
    about = f"Marginal means of {factor}, on the scale of the linear predictor."
    return _effects(fit, names, fit.linear(L), L, about)


def contrasts(
    fit: Fitted, factor: str, method: str, at: Mapping[str, float] | None, baseline: str | None
) -> Effects:
    """Differences of marginal means: "pairwise" (each level minus each later one) or
    "trt.vs.ctrl".
    """
    names, L = _grid_means(fit, factor, at or {}, baseline, differences=True)
    pairs = {
        "pairwise": list(combinations(range(len(names)), 2)),
        "trt.vs.ctrl": [(k, 0) for k in range(1, len(names))],
    }
    if method not in pairs:
        raise ValueError(f"method is one of {', '.join(pairs)}")
    D = np.array([L[i] - L[j] for i, j in pairs[method]]).reshape(-1, len(fit.terms))
    labels = [f"{names[i]} - {names[j]}" for i, j in pairs[method]]
    about = (
        f"Contrasts of {factor}, on the scale of the linear predictor; p-values are not adjusted."
    )
    return _effects(fit, labels, fit.linear(D), D, about)


def _effects(
    fit: Fitted, names: Sequence[str], values: FloatArray, rows: FloatArray, about: str
) -> Effects:
    flags = fit.estimable(rows)
    return combined(names, values, rows, fit.covariance, flags, fit.widening, about)


def _slope(fit: Fitted, X: FloatArray, D: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
    """Σ w μ′(η) Dβ and its gradient Σ w (μ′ D + μ″ Dβ X)."""
    eta, change = fit.linear(X), fit.linear(D)
    slope, bend = fit.link.slope(eta), fit.link.bend(eta)
    return float(w @ (slope * change)), (w * slope) @ D + (w * bend * change) @ X


def _change(
    fit: Fitted, low: FloatArray, high: FloatArray, w: FloatArray
) -> tuple[float, FloatArray]:
    """Σ w (μ(η₁) − μ(η₀)) and its gradient."""
    before, after = fit.linear(low), fit.linear(high)
    value = w @ (fit.link.mean(after) - fit.link.mean(before))
    return float(value), (w * fit.link.slope(after)) @ high - (w * fit.link.slope(before)) @ low


def _set(frame: Frame, name: str, value: Any, design: Design) -> FloatArray:
    """The design (n, p) with one column of the frame held at a value."""
    columns = {key: frame[key] for key in (*design.numbers, *design.factors)}
    rows = len(np.atleast_1d(columns[name]))
    return design.rows({**columns, name: [value] * rows})


def _weights(weights: Sequence[float] | None, n: int) -> FloatArray:
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not (np.all(w >= 0) and w.sum() > 0):
        raise ValueError("weights are one number of at least 0 for each row, not all 0")
    return np.asarray(w / w.sum())


def _constant(fit: Fitted) -> Frame:
    """A frame for effects that are the same everywhere. Raises InvalidFormula where they are
    not.
    """
    linear = fit.link.linear and all(
        term in (*fit.design.numbers, "Intercept") or "[" in term for term in fit.terms
    )
    if not linear or any(len(term_pieces(term)) > 1 for term in fit.terms):
        raise InvalidFormula(
            "The effects of this model depend on where they are evaluated: give margins() a public "
            "frame, such as one row of typical or released values."
        )
    design = fit.design
    return {x: [0.0] for x in design.numbers} | {x: [_levels(design, x)[0]] for x in design.factors}


def _grid_means(
    fit: Fitted,
    factor: str,
    at: Mapping[str, float],
    baseline: str | None,
    *,
    differences: bool = False,
) -> tuple[list[str], FloatArray]:
    """(levels, rows (k, p)): means of the design over a grid in which the other factors' levels
    weigh alike.
    """
    design = fit.design
    if factor not in design.factors:
        raise InvalidFormula(
            f"{factor} is not a factor of this fit; it has {', '.join(design.factors) or 'none'}."
        )
    grid = {name: _levels(design, name) for name in design.factors}
    others = [name for name in grid if name != factor]
    cells = list(product(*(grid[name] for name in others)))
    placed, rows = _placed(design, factor, at, differences), []
    for level in grid[factor]:
        frame: dict[str, Any] = {x: [value] * len(cells) for x, value in placed.items()}
        frame |= {name: [cell[k] for cell in cells] for k, name in enumerate(others)}
        rows.append(design.rows({**frame, factor: [level] * len(cells)}).mean(axis=0))
    known = (fit.baselines or {}).get(factor, BASELINE)
    names = [baseline or known if level == BASELINE else level for level in grid[factor]]
    return names, np.array(rows)


def _placed(design: Design, factor: str, at: Mapping[str, float], free: bool) -> dict[str, float]:
    """Values of the numeric columns; free: those that stand beside no level of the factor cancel,
    and may be left out.

    Raises InvalidFormula where one is needed and not given.
    """
    needed = design.beside(factor) if free else design.numbers
    absent = [name for name in needed if name not in at]
    if absent:
        said = ", ".join(f"{name!r}: …" for name in absent)
        raise InvalidFormula(
            f"Give a public or released value of {', '.join(absent)}: at={{{said}}}."
        )
    return {name: at.get(name, 1.0) for name in design.numbers}


def _levels(design: Design, factor: str) -> tuple[str, ...]:
    """A factor's levels, the baseline first."""
    levels = design.factors[factor]
    return (BASELINE, *levels) if design.has_baseline(factor) else levels
