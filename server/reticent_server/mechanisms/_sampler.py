"""The only source of noise: OpenDP's exact samplers, and uniforms, on the system's CSPRNG; no seed.

OpenDP does not check that an argument is in its domain, accepts a scale of 0, and quotes private sums
in its overflow errors: arguments are checked here before every call, and its errors are replaced by a
constant one. What a draw costs is what `measurement.map` says.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, sqrt
from os import urandom
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
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
class Gaussian:
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
class NoisyMax:
    """Report-noisy-max with Gumbel noise of a scale > 0: an exact exponential mechanism."""

    scale: float

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def rho(self, sensitivity: float) -> float:
        """zCDP of one selection for scores of this L∞ sensitivity: Δ²/(2·scale²), rounded up."""
        return float(_noisy_max(self.scale).map(int(sensitivity)))

    def select(self, scores: IntArray) -> int:
        """The selected index. scores: (size,) int64, not empty."""
        _check_values(scores)
        if scores.size == 0:
            raise SamplerError
        return int(_draw(_noisy_max(self.scale), scores.tolist()))


@dataclass(frozen=True, slots=True)
class Laplace:
    """Discrete Laplace noise of a scale b > 0: P(z) = tanh(1/(2b)) exp(−|z|/b) for whole numbers z."""

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


def uniforms(size: int) -> FloatArray:
    """(size,) independent uniform numbers in (0, 1), each from 104 random bits.

    A number is (i + u)/2⁵² with i of 52 bits and u in (0, 1): near 0 it keeps its full relative
    precision, down to 2⁻¹⁰⁵.
    """
    bits = np.frombuffer(urandom(16 * size), dtype=np.uint64).reshape(2, size) >> np.uint64(12)
    high, low = bits.astype(np.float64)
    return np.asarray(np.minimum((high + (low + 0.5) * 2.0**-52) * 2.0**-52, 1 - 2.0**-53))


def exponentials(size: int) -> FloatArray:
    """(size,) independent standard exponential numbers, up to 72."""
    return np.asarray(-np.log(uniforms(size)))


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
    if values.dtype != np.int64 or values.ndim != 1 or np.any(np.abs(values) > _LIMIT):
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
def _noisy_max(scale: float) -> Any:
    domain, metric = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return make_noisy_max(domain, metric, zero_concentrated_divergence(), scale)


@lru_cache(maxsize=1024)
def smallest_scale(noise: type[Gaussian] | type[NoisyMax], sensitivity: float, rho: float) -> float:
    """The smallest scale (up to 10⁻⁹ relative) whose billed zCDP is at most `rho` (not in units).

    sensitivity: L2 for Gaussian, L∞ (an integer) for NoisyMax.
    """
    scale = float(sensitivity / sqrt(2 * rho))
    for _ in range(60):
        if noise(scale).rho(sensitivity) <= rho:
            return scale
        scale *= 1 + 1e-9
    raise SamplerError
