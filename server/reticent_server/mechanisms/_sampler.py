# SPDX-License-Identifier: Apache-2.0
"""The only source of noise: OpenDP's exact samplers, and uniform bits, on the system's CSPRNG; no
seed.

OpenDP does not check that an argument is in its domain, accepts a scale of 0, and quotes private
sums in its overflow errors: arguments are checked here before every call, and its errors are
replaced by a constant one. What a draw costs is what `measurement.map` says.

Uniform numbers are whole numbers: what is made of them is exact, or is refined until it is decided
(mechanisms.selection, mechanisms.depth_proposals). A uniform float has a support that depends on
how it is scaled, and with it the support of a release depends on the data (Mironov 2012).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, sqrt
from os import urandom
from secrets import randbelow
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

enable_features("contrib")  # not opendp.prelude: it imports pandas and scikit-learn where they are

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_LIMIT = 2**61  # i64 saturates at 2^63: a sum this large would lose its noise


class SamplerError(RuntimeError):
    """A draw failed; the text is constant."""

    def __init__(self) -> None:
        super().__init__("noise could not be drawn")


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise of a scale σ > 0 on integer vectors."""

    scale: float

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def rho(self, sensitivity: float) -> float:
        """zCDP of one draw for a vector of this L2 sensitivity: Δ²/(2σ²), rounded up."""
        return float(_gaussian(self.scale).map(sensitivity))

    def add(self, values: IntArray) -> IntArray:
        """values + N_Z(0, σ² I), entry by entry. values: (size,) int64."""
        _check_values(values)
        return np.asarray(_draw(_gaussian(self.scale), values.tolist()), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Laplace:
    """Discrete Laplace noise of a scale b > 0: P(z) = tanh(1/(2b)) exp(−|z|/b) for whole numbers
    z."""

    scale: float

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def epsilon(self, sensitivity: int) -> float:
        """ε of one draw for a vector of this L1 sensitivity: Δ/b, rounded up."""
        return float(_laplace(self.scale).map(sensitivity))

    def add(self, values: IntArray) -> IntArray:
        """values + independent noise, entry by entry. values: (size,) int64."""
        _check_values(values)
        return np.asarray(_draw(_laplace(self.scale), values.tolist()), dtype=np.int64)


def words(count: int) -> NDArray[np.uint64]:
    """(count,) independent uniform whole numbers of 64 bits."""
    return np.frombuffer(urandom(8 * count), dtype=np.uint64)


def below(limit: int) -> int:
    """A uniform whole number in [0, limit), limit ≥ 1."""
    return randbelow(limit)


def smallest_laplace_scale(sensitivity: int, epsilon: float) -> float:
    """The smallest scale (up to 10⁻⁹ relative) at which a draw bills at most `epsilon`."""
    scale = sensitivity / epsilon
    for _ in range(60):
        if Laplace(scale).epsilon(sensitivity) <= epsilon:
            return scale
        scale *= 1 + 1e-9
    raise SamplerError


def _check_scale(scale: float) -> None:
    if not (isfinite(scale) and 0 < scale < _LIMIT):
        raise SamplerError


def _check_values(values: IntArray) -> None:
    """Both signs are compared: the size of the least int64 is negative."""
    if values.dtype != np.int64 or values.ndim != 1:
        raise SamplerError
    if np.any(values > _LIMIT) or np.any(values < -_LIMIT):
        raise SamplerError


def _draw(measurement: Any, argument: list[int]) -> Any:
    try:
        return measurement(argument)
    except Exception:  # noqa: BLE001 - the library's text may quote the sum
        raise SamplerError from None


@lru_cache(maxsize=1024)
def _gaussian(scale: float) -> Any:
    domain = vector_domain(atom_domain(T="i64"))
    return make_gaussian(domain, l2_distance(T="f64"), scale)


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    domain = vector_domain(atom_domain(T="i64"))
    return make_laplace(domain, l1_distance(T="i64"), scale)


@lru_cache(maxsize=1024)
def smallest_scale(sensitivity: float, rho: float) -> float:
    """The smallest scale (up to 10⁻⁹ relative) of a Gaussian whose billed zCDP is at most `rho`.

    sensitivity: L2. rho: not in units.
    """
    scale = float(sensitivity / sqrt(2 * rho))
    for _ in range(60):
        if DiscreteGaussian(scale).rho(sensitivity) <= rho:
            return scale
        scale *= 1 + 1e-9
    raise SamplerError
