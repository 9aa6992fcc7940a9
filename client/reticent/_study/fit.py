# SPDX-License-Identifier: Apache-2.0
"""A fit that is made of a study's moments: the same object as a released regression's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent._study.model import StudyModel
from reticent._study.moments import FloatArray, LeastSquares, lengthened
from reticent._text import paragraph
from reticent.results.regression import RegressionResults

LEVEL = 0.95
"""Of intervals: the field's convention; conf_int gives others."""
_LOUD = 3.0
"""Noise over sampling standard error above which a reader is warned, as the server does."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StudyFit(RegressionResults):
    """Least squares over a study's columns, in the units of the data. It has cost nothing beyond
    the study.

    The estimand is least squares' own, of the records as the study has weighted them. Standard
    errors count the noise, what clipping may have moved, and sampling for errors of one variance;
    for others declare the formula as the study's `main`.
    """

    @property
    def gate(self) -> float:
        """The noise relative to what the moments say of the combination that it hides most; above
        1/3 there are no intervals.
        """
        found = self.result["gate"]
        return float("inf") if found is None else float(found)

    def _footer(self) -> list[str]:
        return [
            *paragraph("Free: made from the study's release, which has been charged already."),
            *RegressionResults._footer(self),  # noqa: SLF001 - super() fails in classes with slots
        ]


def document(
    release: Mapping[str, Any], query: Mapping[str, Any], result: Mapping[str, Any]
) -> dict[str, Any]:
    """A release's document with a query and a result that were made of it."""
    kept = {k: v for k, v in release["query"].items() if k in {"where", "by"}}
    return {**release, "query": {"kind": "study", **kept, **query}, "result": dict(result)}


def fit_result(
    model: StudyModel,
    fit: LeastSquares,
    n: int,
    *,
    estimand: str,
    warnings: Sequence[str] = (),
    factor: float = 1.0,
    bared: Sequence[str] = (),
) -> dict[str, Any]:
    """What a fit says. factor: by which intervals are wider than nominal ones. bared: columns that
    leave it without.
    """
    L = model.matrix
    beta = L @ fit.theta + model.offset
    privacy, sampling = L @ fit.privacy @ L.T, L @ fit.sampling @ L.T
    leaning = fit.leaning.squares(L)
    covariance = lengthened(privacy + sampling, leaning)
    errors, noise = roots(covariance), roots(privacy)
    is_open = fit.open and not bared
    said = [*([] if fit.open else [_closed(model, fit)]), *([_bare(bared)] if bared else [])]
    loud = is_open & (noise > _LOUD * roots(sampling))
    if np.any(loud):
        which = [name for name, x in zip(model.names, loud, strict=True) if x]
        said.append(f"Privacy noise dominates the standard errors of {', '.join(which)}.")
    moved = is_open & (2 * leaning > np.diag(covariance))
    if np.any(moved):
        said.append(_leans([name for name, x in zip(model.names, moved, strict=True) if x]))
    half = float(ndtri((1 + LEVEL) / 2)) * factor * errors
    p = 2 * ndtr(-np.abs(beta) / np.maximum(errors, np.finfo(float).tiny))
    return {
        "terms": list(model.names),
        "coefficients": beta.tolist(),
        "standard_errors": errors.tolist(),
        "covariance": covariance.tolist(),
        "confidence_level": LEVEL,
        "confidence_intervals": _shown(np.column_stack([beta - half, beta + half]), is_open),
        "p_values": p.tolist() if is_open else [None] * len(beta),
        "privacy_standard_errors": noise.tolist(),
        "estimable": [is_open] * len(beta),
        "scale": sqrt(fit.stretch * fit.variance) * model.unit,
        "tuning": None,
        "gate": fit.gate if np.isfinite(fit.gate) else None,
        "estimand": estimand,
        "n": n,
        "warnings": [*said, *warnings],
    }


def roots(covariance: FloatArray) -> FloatArray:
    """(p,) square roots of the diagonal."""
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))


def _shown(ends: FloatArray, is_open: bool) -> list[list[float | None]]:
    return [[float(a), float(b)] if is_open else [None, None] for a, b in ends]


def _bare(names: Sequence[str]) -> str:
    return (
        f"No intervals: much of {', '.join(names)} lies in few records, or may behind the noise. "
        "The radius downweights these, and coefficients of all "
        "records may lie outside of any interval that could be given. Take a logarithm (as a "
        "variable of the study), or "
        "a regression, which is about typical records."
    )


def _leans(names: Sequence[str]) -> str:
    return (
        f"Few records with large values bear on {', '.join(names)}: the radius downweights them, "
        "and intervals are wider for "
        "it. A logarithm, or an indicator of the few, is about all records."
    )


def _closed(model: StudyModel, fit: LeastSquares) -> str:
    weights = np.abs(fit.weakest)
    heavy = [
        name
        for name, w in zip(model.names, weights, strict=True)
        if w > weights.max() / 2 and name != "Intercept"
    ]
    return (
        "No intervals: the noise is too large beside the data's information about the "
        "combination of "
        f"{', '.join(heavy) or 'the terms'}. Leave one of them out, or ask for a study with a "
        "larger epsilon."
    )
