# SPDX-License-Identifier: Apache-2.0
"""Kendall's τ_b from noisy counts of pairs of public bins.

Privacy: one CountSum over the B × B cells, Δ = √2. Proof: mechanisms.noisy_sum.

With P = T/t the released shares, S_ik = sign(i − k), and r, r′ the margins' centred ridits,
concordance less discordance is c = ⟨P, SPSᵀ⟩ and τ_b = c/√((1 − Σp_i²)(1 − Σp′_j²)). Under
independence c's projection is 2·(2r_i)(2r′_j), so Var c = 4vv′/t + 64σ²‖r‖²‖r′‖²/t² + 2σ⁴‖S‖⁴/t⁴,
v = Σp_i(2r_i)²: sampling, noise, and noise times noise. The interval takes the gradient of τ_b in
the cells' shares for both, less the part that the noise in the gradient adds.

Everything but the counts is post-processing. Sources: Kendall (1945); Agresti (2010), § 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import CountSum, FloatArray, Released, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.trust import clear
from reticent_server.kinds.correlation.result import CorrelationQuestion, CorrelationResult
from reticent_server.kinds.shared.group_bins import PairBinsMap, public_edges, shares
from reticent_server.kinds.shared.named_tests import normal_p_value
from reticent_server.kinds.shared.ranks import centred_ridits
from reticent_server.mechanisms import noisy_sum

LEAST_BINS, MOST_BINS = 4, 12  # a column: 4 keep (1 − 1/16)² of the information; 12 are 144 cells


@dataclass(frozen=True, slots=True)
class Tau:
    """τ_b with its standard error and the part of that from noise; z: of independence."""

    value: float
    z: float
    standard_error: float
    noise: float


def tau_b(T: FloatArray, sigma: float) -> Tau:
    """The rank correlation τ_b of released counts (B, B′) with noise of sd σ."""
    t, P, signs = _shares(T)
    margins = (shares(T.sum(axis=1)), shares(T.sum(axis=0)))
    c = float((P * (signs[0] @ P @ signs[1].T)).sum())
    untied = [max(1 - float(p @ p), 1 / t) for p in margins]
    root = sqrt(untied[0] * untied[1])
    value = float(np.clip(c / root, -1.0, 1.0))
    second = 2 * sigma**4 * float((signs[0] ** 2).sum() * (signs[1] ** 2).sum()) / t**4
    gradient = 2 * signs[0] @ P @ signs[1].T / root + value * np.add.outer(
        margins[0] / untied[0], margins[1] / untied[1]
    )
    own = shares(T.ravel()).reshape(T.shape)
    centre = float((own * gradient).sum())
    sampling = float((own * (gradient - centre) ** 2).sum()) / t
    noise = sigma**2 / t**2 * float(((gradient - centre) ** 2).sum()) - second / root**2
    noise = max(noise, second / root**2)
    return Tau(value, c / _null_sd(t, margins, sigma, second), sqrt(sampling + noise), sqrt(noise))


def _shares(T: FloatArray) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray]]:
    """t, P = T/t, and the signs of the two axes."""
    t = max(float(T.sum()), 1.0)
    axes = [np.arange(size) for size in T.shape]
    first, second = (np.sign(np.subtract.outer(a, a)).astype(np.float64) for a in axes)
    return t, T / t, (first, second)


def _null_sd(
    t: float, margins: tuple[FloatArray, FloatArray], sigma: float, second: float
) -> float:
    """The standard deviation of c under independence."""
    r = [centred_ridits(p) for p in margins]
    v = [float(p @ (2 * x) ** 2) for p, x in zip(margins, r, strict=True)]
    noise = 64 * sigma**2 * float(r[0] @ r[0]) * float(r[1] @ r[1]) / t**2
    return sqrt(4 * v[0] * v[1] / t + noise + second)


@dataclass(frozen=True, slots=True)
class KendallPlan(Planned):
    """A planned rank correlation by counts of pairs of bins."""

    deadline_shares: ClassVar = (0.04, 0.08)

    cells: PairBinsMap
    part: CountSum
    asked: CorrelationQuestion
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.cells.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian counts",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            parts=(self.part,),
            gaussian_counts=(self.part,),
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one count, and the number of cells."""
        return {"count_standard_error": noisy_sum.noise_sd(self.part), "cells": self.part.bins}

    def run(self) -> Recipe:
        """1. Counts of pairs of bins. 2. τ_b, its test and its interval."""
        (released,) = yield SumStep("counts of pairs of bins", (self.part,), self.cells)
        return self._result(released)

    def _result(self, released: Released) -> CorrelationResult:
        T = released.values.reshape(self.cells.shape)
        tau = tau_b(T, released.sd)
        level = self.asked.confidence_level
        half = half_width(tau.standard_error, level)
        sure = bool(clear(float(T.sum()), released.sd * sqrt(T.size)))
        interval = (max(-1.0, tau.value - half), min(1.0, tau.value + half))
        return CorrelationResult(
            statistic=tau.z,
            p_value=normal_p_value(tau.z, self.asked.alternative),
            effect=tau.value,
            effect_interval=interval if sure else (-1.0, 1.0),
            confidence_level=level,
            estimand="Kendall's tau-b of values in public bins",
            method="kendall",
            standard_error=tau.standard_error,
            privacy_standard_error=tau.noise,
            number=float(T.sum()),
            n=self.n,
        )


def plan_kendall(
    facts: DatasetFacts,
    design: Design,
    columns: tuple[Column, Column],
    asked: CorrelationQuestion,
    rho: int,
) -> KendallPlan:
    """τ_b at `rho` (RHO_UNITS); design: mask and columns only."""
    m = facts.schema.unit.max_rows
    noise = m * m * RHO_UNITS / rho / facts.n  # σ²/n
    bins = int(np.clip(np.rint((2 / noise) ** 0.25), LEAST_BINS, MOST_BINS))
    edges = (public_edges(facts, columns[0], bins), public_edges(facts, columns[1], bins))
    if not all(edges):
        raise InvalidQuery(
            "A column with a single value has no correlation; choose another column."
        )
    cells = PairBinsMap(design, (columns[0].name, columns[1].name), edges)
    part = CountSum(cells.shape[0] * cells.shape[1], rho, m)
    return KendallPlan(cells, part, asked, facts.n)
