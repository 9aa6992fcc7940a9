# SPDX-License-Identifier: Apache-2.0
"""The inverse links of the families, with two derivatives: what the delta method needs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

FloatArray = NDArray[np.float64]
_Curve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Link:
    """μ(η) and its derivatives, all (n,) to (n,). linear: whether μ is η."""

    mean: _Curve
    slope: _Curve
    bend: _Curve
    linear: bool = False


def _bent(eta: FloatArray) -> FloatArray:
    p = expit(eta)
    return np.asarray(p * (1 - p) * (1 - 2 * p))


_IDENTITY = Link(lambda e: e, np.ones_like, np.zeros_like, linear=True)
_LOGIT = Link(expit, lambda e: np.asarray(expit(e) * expit(-e)), _bent)
_LOG = Link(np.exp, np.exp, np.exp)
_BY_FAMILY = {
    "binomial": _LOGIT,
    "poisson": _LOG,
    "negative_binomial": _LOG,
    "gamma": _LOG,
    "gaussian": _IDENTITY,
}


def link_of(family: str | None) -> Link:
    """The link of a released family; the identity for a linear model."""
    return _IDENTITY if family is None else _BY_FAMILY[family]
