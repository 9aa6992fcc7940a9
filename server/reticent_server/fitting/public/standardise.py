# SPDX-License-Identifier: Apache-2.0
"""Centres and scales from public facts: a column or a derived term is standardised without a cell.

A column's centre is its released median, its scale the released IQR/1.349; where the IQR is below
1 % of the released 5–95 % range, that range/3.29; where that is 0 too, (upper − lower)/√12. A
derived term has no released quantiles of its own: its factors' quantiles are taken as equally
weighted atoms, pushed through the functions, and multiplied as if the factors were independent.
Whatever comes out is a function of public values, so it costs accuracy at worst and never privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from reticent_server.domain.design import (
    Apply,
    Coded,
    ColumnValue,
    EventTime,
    Expression,
    Filled,
    Indicator,
    Missing,
    PersonMean,
    Term,
)
from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.evaluate import apply_function

NORMAL_IQR = 1.3489795003921634  # 2Φ⁻¹(3/4): interquartile range of the standard normal law
NORMAL_90_RANGE = 3.2897072539029444  # 2Φ⁻¹(.95): 5–95 % range of the standard normal law
# what a location is made of: the median, the quartiles, and the range that stands in where
# quartiles tie
SUMMARY_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
# midpoints of 60 equal parts: a product of two laws has at most 60² atoms; public work, accuracy
# only
_LEVELS = (np.arange(60) + 0.5) / 60


@dataclass(frozen=True, slots=True)
class Location:
    """A public centre and a positive scale, in the units of the column or term."""

    centre: float
    scale: float


@dataclass(frozen=True, slots=True)
class Atoms:
    """A public approximation of a distribution: values (k,) increasing, weights (k,) of sum 1."""

    values: FloatArray
    weights: FloatArray

    def quantiles(self, probabilities: Sequence[float]) -> list[float]:
        """The values at which the interpolated distribution function passes the probabilities."""
        middles = np.cumsum(self.weights) - self.weights / 2
        return [float(v) for v in np.interp(probabilities, middles, self.values)]


def term_location(term: Term, profile: Profile) -> Location | None:
    """The centre and scale of a term, or None where the profile lacks one of its columns."""
    atoms = term_atoms(term, profile)
    if atoms is None:
        return None
    return location(atoms.quantiles(SUMMARY_PROBABILITIES), term.lower, term.upper)


def location(quantiles: Sequence[float], lower: float, upper: float) -> Location:
    """From quantiles at SUMMARY_PROBABILITIES and bounds; see the module's rule."""
    low, first, centre, third, high = quantiles
    narrow = third - first < 0.01 * (high - low)
    candidates = (0.0 if narrow else (third - first) / NORMAL_IQR, (high - low) / NORMAL_90_RANGE)
    return Location(centre, usable_scale(candidates, lower, upper))


def usable_scale(candidates: Sequence[float], lower: float, upper: float) -> float:
    """The first positive finite candidate; else (upper − lower)/√12; else 1."""
    for scale in (*candidates, (upper - lower) / sqrt(12)):
        if isfinite(scale) and scale > 0:
            return scale
    return 1.0


def term_atoms(term: Term, profile: Profile) -> Atoms | None:
    """The term's approximate distribution, from the profiles of its columns."""
    product: Atoms | None = None
    for factor in term.factors:
        atoms = _expression_atoms(factor, profile)
        if atoms is None:
            return None
        product = atoms if product is None else _multiply(product, atoms)
    return product


def _expression_atoms(  # noqa: PLR0911 - one for each sort of expression
    expression: Expression, profile: Profile
) -> Atoms | None:
    match expression:
        case ColumnValue(column) | Filled(column, _):
            return _column_atoms(profile.columns.get(column))
        case Missing():
            return _atoms(np.array([0.0, 1.0]), np.ones(2))
        case Indicator(column, code):
            codes = _column_atoms(profile.columns.get(column))
            if codes is None:
                return None
            share = float(codes.weights[codes.values == code].sum())
            return _atoms(np.array([0.0, 1.0]), np.array([1 - share, share]))
        case Coded(column, known, numbers, function):
            codes = _column_atoms(profile.columns.get(column))
            if codes is None:
                return None
            of = dict(zip(known, numbers, strict=True))
            cells = codes.values if function is None else apply_function(function, codes.values)
            return _atoms(np.array([of.get(float(v), 0.0) for v in cells]), codes.weights)
        case Apply(function, argument, parameter, basis):
            inner = _expression_atoms(argument, profile)
            if inner is None:
                return None
            values = apply_function(function, inner.values, parameter, basis)
            return _atoms(values, inner.weights)
        case EventTime() | PersonMean():
            return None


def _column_atoms(column: ColumnProfile | None) -> Atoms | None:
    """Interpolated released quantiles as equal atoms, or released counts as atoms at 0, 1, …"""
    if column is not None and column.quantiles is not None and column.counts is None:
        values = np.interp(_LEVELS, column.probabilities[: len(column.quantiles)], column.quantiles)
        return _atoms(values, np.ones(len(values)))
    if column is not None and column.counts is not None:
        counts = np.maximum(np.asarray(column.counts, dtype=np.float64), 0.0)
        return _atoms(column.first + np.arange(len(counts), dtype=np.float64), counts + 1e-9)
    return None


def _atoms(values: FloatArray, weights: FloatArray) -> Atoms | None:
    """Sorted, finite and normalised; None where nothing finite is left."""
    finite = np.isfinite(values)
    if not finite.any():
        return None
    order = np.argsort(values[finite], kind="stable")
    kept = weights[finite][order]
    return Atoms(values[finite][order], kept / kept.sum())


def _multiply(a: Atoms, b: Atoms) -> Atoms:
    """The product of independent factors, thinned to equal atoms."""
    values, weights = np.outer(a.values, b.values).ravel(), np.outer(a.weights, b.weights).ravel()
    order = np.argsort(values, kind="stable")
    product = Atoms(values[order], weights[order])
    if len(values) <= len(_LEVELS):
        return product
    thinned = np.interp(_LEVELS, np.cumsum(product.weights), product.values)
    return Atoms(thinned, np.full(len(_LEVELS), 1 / len(_LEVELS)))
