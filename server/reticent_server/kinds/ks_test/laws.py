# SPDX-License-Identifier: Apache-2.0
"""Public laws that a column is compared with: each gives its distribution function and its
quantiles.

Raises InvalidQuery for parameters that are none of the law.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery


class Law(Protocol):
    """A continuous law."""

    def below(self, values: FloatArray) -> FloatArray:
        """The distribution function."""
        ...

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        """Its inverse on (0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class Normal(Law):
    """The normal law. mean, sd: in the units of the data, sd above 0."""

    mean: float
    sd: float

    def below(self, values: FloatArray) -> FloatArray:
        return np.asarray(ndtr((values - self.mean) / self.sd))

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        return np.asarray(self.mean + self.sd * ndtri(probabilities))


@dataclass(frozen=True, slots=True)
class Uniform(Law):
    """The law of equal density between two bounds, lower < upper."""

    lower: float
    upper: float

    def below(self, values: FloatArray) -> FloatArray:
        return np.clip((values - self.lower) / (self.upper - self.lower), 0.0, 1.0)

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        return np.asarray(self.lower + (self.upper - self.lower) * probabilities)


@dataclass(frozen=True, slots=True)
class Exponential(Law):
    """The exponential law on the numbers from 0. mean: 1 over its rate, above 0."""

    mean: float

    def below(self, values: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(-np.maximum(values, 0.0) / self.mean))

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        return np.asarray(-self.mean * np.log1p(-probabilities))


def _normal(parameters: tuple[float, ...]) -> Law:
    if len(parameters) != 2 or parameters[1] <= 0:
        raise InvalidQuery("A normal law has the parameters [mean, sd], sd above 0.")
    return Normal(*parameters)


def _uniform(parameters: tuple[float, ...]) -> Law:
    if len(parameters) != 2 or parameters[0] >= parameters[1]:
        raise InvalidQuery("A uniform law has the parameters [lower, upper], lower below upper.")
    return Uniform(*parameters)


def _exponential(parameters: tuple[float, ...]) -> Law:
    if len(parameters) != 1 or parameters[0] <= 0:
        raise InvalidQuery("An exponential law has the parameter [mean], above 0.")
    return Exponential(*parameters)


LAWS: Mapping[str, Callable[[tuple[float, ...]], Law]] = {
    "normal": _normal,
    "uniform": _uniform,
    "exponential": _exponential,
}
