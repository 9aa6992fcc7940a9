# SPDX-License-Identifier: Apache-2.0
"""Terms of which a radius downweights much: judged by public rows, before anything is released."""

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.numerics.mallows import mallows_weights

_ENDS = (0.05, 0.25, 0.5, 0.75, 0.95)  # a profile's quantiles that its noise leaves in place
_ROUNDING = 1e-9  # of standardised columns


def lost_shares(
    coding: TermCoding, coordinates: Coordinates, radius_squared: float
) -> dict[str, float]:
    """By term, dummies left out: what share of its mean square the weights min(1, R²/‖u‖²) take.
    Columns of public rows are independent, so that tails that several columns share are not
    seen."""
    rows = coordinates.rows
    x = np.linalg.inv(coordinates.transform) @ rows.T
    cut = 1 - mallows_weights(np.sum(rows**2, axis=1), radius_squared)
    square = np.maximum(np.mean(x**2, axis=1), np.finfo(float).tiny)
    share: FloatArray = np.mean(cut * x**2, axis=1) / square
    terms = coding.design.terms
    pairs = zip(terms, share[len(share) - len(terms) :], strict=True)
    return {term.name: float(lost) for term, lost in pairs if not term.dummy}


def skewness(coordinates: Coordinates) -> FloatArray:
    """(q,) of each column, by public rows, as of skewness_of."""
    return skewness_of(np.linalg.inv(coordinates.transform) @ coordinates.rows.T)


def skewness_of(x: FloatArray) -> FloatArray:
    """(q,) of public rows x (q, rows) the distance of the 5 or 95 % quantile, the farther, from the
    median in interquartile ranges. 0 for a constant column; infinite where half of the records or
    more have one value, and others are far."""
    low, first, middle, third, high = np.quantile(x, _ENDS, axis=1)
    far, range_ = np.maximum(high - middle, middle - low), third - first
    found = np.where(far > _ROUNDING, np.inf, 0.0)
    return np.asarray(np.divide(far, range_, out=found, where=range_ > _ROUNDING))
