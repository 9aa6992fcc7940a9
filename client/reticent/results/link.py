# SPDX-License-Identifier: Apache-2.0
"""The inverse links of the families, with two derivatives: what the delta method needs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

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


def _density(eta: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * eta * eta) / np.sqrt(2 * np.pi))


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


_PROBIT = Link(ndtr, _density, lambda e: np.asarray(-e * _density(e)))
_CLOGLOG = Link(
    lambda e: np.asarray(-np.expm1(-np.exp(e))),
    lambda e: np.asarray(np.exp(e - np.exp(e))),
    lambda e: np.asarray(np.exp(e - np.exp(e)) * (1 - np.exp(e))),
)
_BY_NAME = {"logit": _LOGIT, "log": _LOG, "probit": _PROBIT, "cloglog": _CLOGLOG}


def link_of(family: str | None, link: str | None = None) -> Link:
    """The link of a released family, None: its canonical one; the identity for a linear model."""
    if link is not None:
        return _BY_NAME[link]
    return _IDENTITY if family is None else _BY_FAMILY[family]
