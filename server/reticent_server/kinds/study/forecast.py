# SPDX-License-Identifier: Apache-2.0
"""A forecast of a study from public facts: of a regression of its first variable on the others, and
of any correlation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.own_profile import NO_PROFILE
from reticent_server.kinds.study.ground import StudyGround, StudyQuestion
from reticent_server.kinds.study.moments import Moments
from reticent_server.kinds.study.radius import choose_radius, counted, widest_radius
from reticent_server.kinds.study.recipe import Sampling
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.person_grams import gram_lengths


@dataclass(frozen=True, slots=True, eq=False)
class StudyForecast:
    """records: the public number of units; known: whether a profile covers the columns."""

    question: StudyQuestion
    ground: StudyGround
    sampling: Sampling
    records: int
    known: bool

    def shown(self, shares: Mapping[str, float]) -> Mapping[str, Any]:
        """The forecast regression of the first variable on the others: privacy over sampling
        standard error by term, null where the noise is expected to leave no interval; of any
        correlation: half of its 95 % interval near 0. Without a profile tails are taken to be
        heavy. shares: of ρ."""
        sampling = self.sampling
        q, n = self._size, sampling.n * self.ground.share / self.question.groups.count
        unit, length, m = sampling.unit_noise, sampling.length, sampling.person_rows
        bins = self._expected_lengths(length)
        sd = planned_sd(replace(sampling.by_length, bins=len(bins)))
        squared = (
            choose_radius(bins, sd, q, n, unit, length, sampling.trace).squared
            if self.known
            else widest_radius(q, n, unit, length)
        )
        noise = squared * unit
        half = float(ndtri(0.975)) * sqrt(m / n + noise**2 / (2 * n**2))
        ratios = self._ratios(noise, n, squared)
        heavy = self.ground.heavy(squared)
        names, head = self.question.design.names, int(not self.question.design.deviations)
        return {
            "response": names[1] if q > 1 else names[0],
            "terms": [*names[:head], *names[2:]],
            "privacy_to_sampling": ratios,
            "correlation_half_width": min(half, 1.0),
            "shares": shares,
            "notes": [*self._notes(ratios), *heavy],
        }

    @property
    def _size(self) -> int:
        return self.ground.coding.size

    def _expected_lengths(self, length: float) -> FloatArray:
        """Numbers by length, of public rows, whose columns are independent; persons are made of m
        of them.
        """
        U, m = self.ground.coordinates.rows, self.sampling.person_rows
        U = U[: len(U) // m * m] if len(U) >= m else np.resize(U, (m, U.shape[1]))
        lengths = gram_lengths(np.ascontiguousarray(U.T), m) if m > 1 else np.sum(U**2, axis=1)
        share = 1.0 if m > 1 else self.ground.share
        return counted(lengths, length) * (
            self.records * share / self.question.groups.count / len(lengths)
        )

    def _ratios(self, noise: float, n: float, squared: float) -> list[float | None]:
        """(q − 1,) from public rows, whose columns are independent; the rows of a person count as a
        study's formulas count them, so that m rows may have nothing of their own.
        """
        q, frame = self._size, self.ground.coordinates
        U = frame.rows
        w = mallows_weights(np.sum(U**2, axis=1), squared)
        inverse: FloatArray = np.asarray(
            np.linalg.inv(invertible_on_lattice(frame.transform)), np.float64
        )
        expected = inverse @ ((U * w[:, None]).T @ U) @ inverse.T * (n / len(U))
        rows = np.eye(q)
        X = np.delete(rows, 1, axis=0) if q > 1 else rows
        X = X[1:] if self.question.design.deviations else X
        fit = Moments(expected, inverse.T, noise).least_squares(rows[min(1, q - 1)], X)
        if not fit.open:
            return [None] * len(X)
        sampling = np.maximum(
            self.sampling.person_rows * np.diag(fit.sampling), np.finfo(float).tiny
        )
        return [float(x) for x in np.sqrt(np.diag(fit.privacy) / sampling)]

    def _notes(self, ratios: list[float | None]) -> list[str]:
        notes = [] if self.known else [NO_PROFILE]
        if None in ratios:
            notes.append(
                "A regression of the first variable on all others is forecast to have no "
                "intervals at this "
                "epsilon; formulas over fewer of the columns may. Fewer variables leave more for "
                "each."
            )
        return notes
