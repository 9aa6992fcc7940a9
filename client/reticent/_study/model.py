# SPDX-License-Identifier: Apache-2.0
"""A formula as combinations of standardised columns, and the way back to the units of the data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent._study.formula import Specification
from reticent._study.moments import FloatArray, Moments


@dataclass(frozen=True, slots=True, eq=False)
class StudyModel:
    """y (q,) and X (p, q) of z̃; β = Lθ + o in the units of the data, with L (p, p), o (p,); unit:
    of y.
    """

    names: tuple[str, ...]
    y: FloatArray
    X: FloatArray
    matrix: FloatArray
    offset: FloatArray
    unit: float


def model_of(moments: Moments, specification: Specification) -> StudyModel:
    """The model of a formula."""
    return model(moments, specification.response, specification.terms, specification.intercept)


def model(moments: Moments, response: int, terms: Sequence[int], intercept: bool) -> StudyModel:
    """y at one place on the columns at others. With an intercept columns are centred at public
    centres, without one they are not, as that would change the model. Deviations from a person's
    means have no intercept.
    """
    intercept = intercept and not moments.effects
    rows, places = np.eye(len(moments.names)), list(terms)
    centres, scales = moments.centres, moments.scales
    unit = float(scales[response])
    names = tuple(moments.names[k] for k in places)
    if intercept:
        used = [0, *places]
        matrix = np.diag(unit / scales[used])
        matrix[0, 1:] -= unit * centres[places] / scales[places]
        offset = np.append(centres[response], np.zeros(len(places)))
        return StudyModel(
            (moments.names[0], *names), rows[response], rows[used], matrix, offset, unit
        )
    X = rows[places] + np.outer(centres[places] / scales[places], rows[0])
    y = rows[response] + centres[response] / unit * rows[0]
    return StudyModel(names, y, X, np.diag(unit / scales[places]), np.zeros(len(places)), unit)
