# SPDX-License-Identifier: Apache-2.0
"""Kendall's τ_b from noisy counts of pairs of public bins.

Privacy: one CountSum over the B × B cells, Δ = √2. Proof: mechanisms.noisy_sum.

With P = T/t the released shares, S_ik = sign(i − k), and r, r′ the margins' centred ridits,
concordance less discordance of pairs of bins is c = ⟨P, SPSᵀ⟩. Under independence c's projection is
2·(2r_i)(2r′_j), so Var c = 4vv′/t + 64σ²‖r‖²‖r′‖²/t² + 2σ⁴‖S‖⁴/t⁴, v = Σp_i(2r_i)²: sampling,
noise, and noise times noise. That is the test's.

*The bins' bias.* c takes pairs within a bin as ties, which values are not. Bins of width h leave
out pairs of a share ~h, whose concordance is ~h where the law is smooth: c lacks ~h². With d the
same of bins that are merged by two, c* = c + (c − d)/3 has none of it to this order (Richardson
1911); an axis on which every bin is one value is not merged. τ_b = c*/√((1 − Σw_ip_i²)(1 −
Σw′_jp′_j²)) with w_i the chance that two values of a bin are equal: 1 of a bin of one value, 1/k of
k whole numbers, else
0. Where columns are nearly functions of each other, c lacks ~h
and 2c − d has none of it: the interval reaches as much farther from 0. The rest of the interval
takes the gradient of τ_b in the cells' shares for sampling and noise, less the part that
the noise in the gradient adds.

Everything but the counts is post-processing. Sources: Kendall (1945); Agresti (2010), § 7;
Richardson (1911), Phil. Trans. A 210.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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

LEAST_BINS, MOST_BINS = 4, 16  # a column: 4 keep (1 − 1/16)² of the information; 16 are 256 cells
# of √(n/σ²): the noise of τ_b, about Bσ/n, is then three quarters of its sampling error, 2/(3√n)
BINS_OF_NOISE = 0.5


@dataclass(frozen=True, slots=True)
class Tau:
    """τ_b with its standard error and the part of that from noise; z: of independence; lacking:
    what the bins may still take, of the sign of the correlation.
    """

    value: float
    z: float
    standard_error: float
    noise: float
    lacking: float


@dataclass(frozen=True, slots=True, eq=False)
class PairSigns:
    """The signs (B, B), (B′, B′) of pairs of bins, and their share in c*."""

    first: FloatArray
    second: FloatArray
    share: float

    def of(self, P: FloatArray) -> FloatArray:
        """(B, B′) SPSᵀ."""
        return self.first @ P @ self.second.T

    def product(self, other: "PairSigns") -> float:
        """⟨S ⊗ S′, those of the other⟩, with the shares."""
        inner = float((self.first * other.first).sum() * (self.second * other.second).sum())
        return self.share * other.share * inner


def tau_b(T: FloatArray, sigma: float, ties: tuple[FloatArray, FloatArray]) -> Tau:
    """τ_b of released counts (B, B′) with noise of sd σ; ties: w (B,), w′ (B′,)."""
    t = max(float(T.sum()), 1.0)
    P = T / t
    signs = _signs(ties)
    margins = (shares(T.sum(axis=1)), shares(T.sum(axis=0)))
    tied = [weight * p for weight, p in zip(ties, margins, strict=True)]
    untied = [max(1 - float(x @ p), 1 / t) for x, p in zip(tied, margins, strict=True)]
    root = sqrt(untied[0] * untied[1])
    S = sum(each.share * each.of(P) for each in signs)
    c = float((P * signs[0].of(P)).sum())
    whole = float((P * S).sum())
    value = float(np.clip(whole / root, -1.0, 1.0))
    gradient = 2 * S / root + value * np.add.outer(tied[0] / untied[0], tied[1] / untied[1])
    own = shares(T.ravel()).reshape(T.shape)
    centre = float((own * gradient).sum())
    sampling = float((own * (gradient - centre) ** 2).sum()) / t
    second = 2 * sigma**4 * sum(a.product(b) for a in signs for b in signs) / t**4
    noise = sigma**2 / t**2 * float(((gradient - centre) ** 2).sum()) - second / root**2
    noise = max(noise, second / root**2)
    null = 2 * sigma**4 * signs[0].product(signs[0]) / signs[0].share ** 2 / t**4
    return Tau(
        value=value,
        z=c / _null_sd(t, margins, sigma, null),
        standard_error=sqrt(sampling + noise),
        noise=sqrt(noise),
        lacking=2 * (whole - c) / root,
    )


def _signs(ties: tuple[FloatArray, FloatArray]) -> tuple[PairSigns, ...]:
    """Those of c with 4/3 and, where bins can be merged, of d with −1/3."""
    places = [np.arange(len(w)) for w in ties]
    x, y = (_sign(place) for place in places)
    if all(np.all(w == 1) for w in ties):
        return (PairSigns(x, y, 1.0),)
    halves = (k // (1 if np.all(w == 1) else 2) for k, w in zip(places, ties, strict=True))
    x2, y2 = (_sign(place) for place in halves)
    return PairSigns(x, y, 4 / 3), PairSigns(x2, y2, -1 / 3)


def _sign(place: NDArray[np.int64]) -> FloatArray:
    return np.sign(np.subtract.outer(place, place)).astype(np.float64)


def tied_within(column: Column, edges: tuple[float, ...]) -> FloatArray:
    """(bins,) the chance that two values of a bin are equal: public, from its width."""
    ends = np.array([column.lower, *edges, np.nextafter(column.upper, np.inf)])
    if column.kind.is_whole:
        first, after = np.ceil(ends[:-1]), np.ceil(ends[1:])
        return np.asarray(1 / np.maximum(after - first, 1.0))
    single = np.nextafter(ends[:-1], np.inf) >= ends[1:]
    return np.asarray(single, dtype=np.float64)


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
    """A planned rank correlation by counts of pairs of bins. ties: of `tau_b`."""

    deadline_shares: ClassVar = (0.04, 0.08)

    cells: PairBinsMap
    part: CountSum
    ties: tuple[FloatArray, FloatArray]
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
        tau = tau_b(T, released.sd, self.ties)
        level = self.asked.confidence_level
        half = half_width(tau.standard_error, level)
        sure = bool(clear(float(T.sum()), released.sd * sqrt(T.size)))
        low = tau.value - half + min(tau.lacking, 0.0)
        high = tau.value + half + max(tau.lacking, 0.0)
        interval = (max(-1.0, low), min(1.0, high))
        return CorrelationResult(
            statistic=tau.z,
            p_value=normal_p_value(tau.z, self.asked.alternative),
            effect=tau.value,
            effect_interval=interval if sure else (-1.0, 1.0),
            confidence_level=level,
            estimand="Kendall's tau-b",
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
    wanted = max((2 / noise) ** 0.25, BINS_OF_NOISE / noise**0.5)
    bins = 2 * int(np.clip(wanted // 2, LEAST_BINS // 2, MOST_BINS // 2))  # are merged by two
    edges = (public_edges(facts, columns[0], bins), public_edges(facts, columns[1], bins))
    if not all(edges):
        raise InvalidQuery(
            "A column with a single value has no correlation; choose another column."
        )
    cells = PairBinsMap(design, (columns[0].name, columns[1].name), edges)
    part = CountSum(cells.shape[0] * cells.shape[1], rho, m)
    ties = (tied_within(columns[0], edges[0]), tied_within(columns[1], edges[1]))
    return KendallPlan(cells, part, ties, asked, facts.n)
