# SPDX-License-Identifier: Apache-2.0
"""The released models that an effect is adjusted by: given by name, or fitted first.

A fitted one is a planned fit of its own (fitting.fit_plan has its proof): its steps come before the
effect's, and its ρ adds to the charge. A given one has been charged before.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.plan import Planned
from reticent_server.domain.steps import FloatArray, Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.empty_levels import places_of
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.report import reported

Releasing = Generator[Step, tuple[Released, ...], "Nuisance"]

_NOT_SQUARE = "A covariance must be symmetric, with one row for each coefficient."


@dataclass(frozen=True, slots=True, eq=False)
class Nuisance:
    """Released coefficients (q,), and R (q, q), RᵀR the covariance of what of them counts as error.
    told: whether all of them are identified above the noise.
    """

    coefficients: FloatArray
    root: FloatArray
    told: bool = True

    def rooted(self, vector: list[FloatArray]) -> list[FloatArray]:
        """R times q rows of records, added one by one."""
        return [
            sum((r * v for r, v in zip(row, vector, strict=True)), np.zeros_like(vector[0]))
            for row in self.root
        ]


class NuisanceSource(ABC):
    """Where a model comes from."""

    @property
    def plans(self) -> tuple[Planned, ...]:
        """What is charged for it."""
        return ()

    @abstractmethod
    def released(self) -> Releasing:
        """The steps that release it."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenModel(NuisanceSource):
    """A model that was released before."""

    nuisance: Nuisance

    def released(self) -> Releasing:
        yield from ()
        return self.nuisance


@dataclass(frozen=True, slots=True, eq=False)
class FittedFirst(NuisanceSource):
    """A model that is fitted first. noise_only: whether the covariance is that of the privacy noise
    alone, or of sampling as well.
    """

    plan: FitPlan[Any]
    noise_only: bool

    @property
    def plans(self) -> tuple[Planned, ...]:
        return (self.plan,)

    def released(self) -> Releasing:
        ground, fit = yield from self.plan.fitted()
        found = reported(ground.coding, fit)
        covariance = found.privacy if self.noise_only else found.covariance
        E = places_of(self.plan.design.names, ground.coding.design.names)
        covariance = E @ covariance @ E.T
        return Nuisance(E @ found.coefficients, root(covariance), bool(found.estimable.all()))


def given(
    coefficients: tuple[float, ...], covariance: tuple[tuple[float, ...], ...] | None
) -> GivenModel:
    """Raises InvalidQuery for a covariance that is none."""
    q = len(coefficients)
    V = np.zeros((q, q)) if covariance is None else _square(covariance, q)
    return GivenModel(Nuisance(np.array(coefficients), root(V)))


def _square(rows: tuple[tuple[float, ...], ...], q: int) -> FloatArray:
    if len(rows) != q or any(len(row) != q for row in rows):
        raise InvalidQuery(_NOT_SQUARE)
    V = np.array(rows)
    with np.errstate(all="ignore"):
        if not np.allclose(V, V.T, rtol=1e-6, atol=0.0) or not np.isfinite(V @ V).all():
            raise InvalidQuery(_NOT_SQUARE)
    return V


def root(covariance: FloatArray) -> FloatArray:
    """R (q, q) with RᵀR the nearest positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
