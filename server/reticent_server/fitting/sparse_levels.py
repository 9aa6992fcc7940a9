# SPDX-License-Identifier: Apache-2.0
"""Levels of factors with too few events, from public rows and a released fit.

What a level tells of its coefficient is not the number of its records but the curvature of its
records' scores: p(1 − p) of a logit, so about the number of its events or of its other records, and
the mean count of a log link. A level of 700 records and three events has a coefficient of no normal
law, and early steps, which take its events as frequent as others', stop short of it. The number of
events at the estimate is itself as unsure as the level's predictor η, and too large where a step
has stopped short; so each row counts the curvature at that end of the 95 % interval of its η where
it is the least.

A level with fewer than LEAST_RECORDS of them has no interval for what is compared with it: its own
coefficient; where it is the reference level, all coefficients of its factor and the intercept. No
other coefficient leans on it. All of it is post-processing.
"""

import numpy as np

from reticent_server.domain.design import Design, Indicator
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.score import Score
from reticent_server.fitting.trust import BoolArray
from reticent_server.fitting.trust.thresholds import LEAST_RECORDS

LIKELY = 1.96  # standard errors of a predictor: the ends of its 95 % interval
_PRESENT = 0.5  # between a dummy's values


def sparse_coefficients(
    coding: TermCoding,
    coordinates: Coordinates,
    model: PublicModel,
    score: Score,
    theta: FloatArray,
    C: FloatArray,
    count: float,
) -> BoolArray:
    """(q,) whether each coefficient is compared with a level of too few events. coordinates: of the
    public rows before any release, from which `model` has the same rows. theta (q,), C (q, q): the
    estimate and its covariance, in u. count: records in use.
    """
    X = coordinates.rows[: len(model.whitening.rows)] @ np.linalg.inv(coordinates.transform).T
    present = X * coding.scales + coding.centres > _PRESENT
    events = count * least_curvatures(model, score, theta, C) / len(X)
    sparse = np.zeros(coding.size, dtype=bool)
    for columns in factors(coding.design):
        dummies = present[:, columns]
        few = [float(events[d].sum()) < LEAST_RECORDS.value for d in dummies.T]
        sparse[columns] |= few
        others = float(events[~dummies.any(axis=1)].sum())
        if coding.design.intercept and others < LEAST_RECORDS.value:
            sparse[[0, *columns]] = True
    return sparse


def factors(design: Design) -> list[list[int]]:
    """The places among the coefficients of each column's dummies, a factor's or one of its own;
    interactions aside.
    """
    found: dict[str, list[int]] = {}
    for place, term in enumerate(design.terms, start=int(design.intercept)):
        factor = term.factors[0]
        if len(term.factors) == 1 and (term.dummy or isinstance(factor, Indicator)):
            column = factor.column if isinstance(factor, Indicator) else term.name
            found.setdefault(column, []).append(place)
    return list(found.values())


def least_curvatures(
    model: PublicModel, score: Score, theta: FloatArray, C: FloatArray
) -> FloatArray:
    """(rows,) E h of each row, at the least of both ends of its predictor's interval and its
    middle.
    """
    eta = model.predictor(score, theta)
    off = LIKELY * np.sqrt(np.maximum(model.variance(C), 0.0))
    still, m = np.zeros(len(eta)), score.leverage(eta)
    ends = (np.clip(eta + way, *score.limits) for way in (-off, still, off))
    return np.asarray(m**2 * np.min([score.expected(end, still) for end in ends], axis=0))
