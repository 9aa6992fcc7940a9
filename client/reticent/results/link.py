# SPDX-License-Identifier: Apache-2.0
"""The inverse links of the families, with two derivatives: what the delta method needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from reticent._errors import InvalidQuery

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
_PROBIT = Link(ndtr, _density, lambda e: np.asarray(-e * _density(e)))
_CLOGLOG = Link(
    lambda e: np.asarray(-np.expm1(-np.exp(e))),
    lambda e: np.asarray(np.exp(e - np.exp(e))),
    lambda e: np.asarray(np.exp(e - np.exp(e)) * (1 - np.exp(e))),
)
_BY_NAME = {
    "identity": _IDENTITY,
    "logit": _LOGIT,
    "log": _LOG,
    "probit": _PROBIT,
    "cloglog": _CLOGLOG,
}


def link_of(result: Mapping[str, Any]) -> Link:
    """The link of a released fit; the identity for a linear model. Raises InvalidQuery for one that
    is not known.
    """
    name = link_name(result)
    if name not in _BY_NAME:
        raise InvalidQuery(
            f"This client does not know the link {name} of the release; a newer one may."
        )
    return _BY_NAME[name]


def link_name(result: Mapping[str, Any]) -> str:
    """Its name. Raises InvalidQuery where a family's release does not say it."""
    name = result.get("link") or ("identity" if result.get("family") is None else None)
    if name is None:
        raise InvalidQuery(
            "The release does not say the link of its family: a server of today does. Ask for "
            "the fit again."
        )
    return str(name)
