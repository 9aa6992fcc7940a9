# SPDX-License-Identifier: Apache-2.0
"""How long a score of least squares can be at a released place, by the declared bounds alone.

With r = (y − θᵀx̃)/s and u = Wx̃, for y and x̃ in the box of the declared bounds and any t > 0,

    ‖r u‖ = |r| ‖u‖ ≤ (t r² + ‖u‖²/t)/2

which is a sum of squares of affine functions, so convex, and largest at a corner of the box. The
least of these bounds over a grid of t is within 2 % of the longest score at a corner where one
corner has both ends (a response of 0 and 1 and few terms, as a rule), and above every score in any
case. A weight is at most 1. Post-processing: bounds are public, θ and W released before.
"""

from itertools import product

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import LARGEST, Coding
from reticent_server.fitting.public.standardise import Location

_MOST_TERMS = 10  # 2¹¹ corners; of more terms the box is far longer than any record
_STRETCHES = np.geomspace(1e-3, 1e3, 121)  # t: in steps of 12 %, which is 1 % of a bound


def longest_score(coding: Coding, theta: FloatArray, transform: FloatArray, scale: float) -> float:
    """No score is longer; infinite where terms are many. theta (q,), transform W (q, q): in x̃;
    scale: s > 0.
    """
    terms = coding.design.terms
    if len(terms) > _MOST_TERMS:
        return np.inf
    sides = [_ends(term, where) for term, where in zip(terms, coding.locations, strict=True)]
    head = [(1.0,)] * int(coding.design.intercept)
    X = np.array(list(product(*head, *sides)))
    low, high = _ends(coding.response, coding.response_location, most=np.inf)
    eta = X @ theta
    r2 = (np.maximum(np.abs(low - eta), np.abs(high - eta)) / scale) ** 2
    u2 = np.sum((X @ transform.T) ** 2, axis=1)
    bounds = (_STRETCHES[:, None] * r2 + u2 / _STRETCHES[:, None]).max(axis=1) / 2
    return float(bounds.min())


def _ends(term: Term, where: Location, most: float = LARGEST) -> tuple[float, float]:
    """Of a standardised term, as it is cut (fitting.maps)."""
    low, high = ((end - where.centre) / where.scale for end in (term.lower, term.upper))
    return max(low, -most), min(high, most)
