# SPDX-License-Identifier: Apache-2.0
"""Binned residuals: where a fit is wrong, by how much, and how sure that is.

For each bin the mean of y − μ at the released coefficients, with Var = s_b²/N_b + η_b/N_b², η_b the
variance of the noise of S − mN (kinds.shared.groups), and the standard deviation of the residuals.
The interval is for the mean residual at *these* coefficients: that they have an error of their own
shows as residuals that differ from 0.

Privacy. The bins are public (given), or the first step's released quantiles of the linear predictor
(mechanisms.quantile_tree, 15 % of ρ); then one Gram sum for all bins (binned_residuals.fitted has
the proof). The two compose by zCDP. All else is post-processing.

Source: Gelman & Hill (2007), section 5.6, for binned residuals.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    Part,
    QuantileTree,
    Released,
    SumStep,
)
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Interval, Size
from reticent_server.fitting.trust import clear
from reticent_server.kinds.binned_residuals.fitted import (
    BinnedResidualMap,
    FittedModel,
    PredictorMap,
)
from reticent_server.kinds.binned_residuals.links import MEANS, Spread
from reticent_server.kinds.shared.groups import GroupMoments, mean_noise, moments, moments_ms
from reticent_server.kinds.shared.predictor import PREDICTOR_NANOSECONDS
from reticent_server.kinds.shared.ranges import REACH
from reticent_server.mechanisms import quantile_tree
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.grids import repeats

SHARE = 0.15  # of ρ, for the bins: with .05 a bin in five had few records at n = 2,000, ε = 1
PROBABILITIES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)  # three levels of a recursion
LEAST_BINS, MOST_BINS = 4, 20
# residual standard deviations over the noise of a bin's mean residual, of the least bin
PRECISION = 4.0
WEIGHT = 1.0  # a: residuals have a mean near the centre of their range


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedResidualsResult:
    """Residuals in B bins: edges (B + 1,) of the fitted values; numbers, noisy; fitted, the bins'
    middles; residuals, their means, with standard errors of sampling and noise, and of noise alone;
    standard_deviations of the residuals; clipped, to what each bin's were clipped."""

    edges: list[float]
    numbers: list[float]
    fitted: list[float]
    residuals: list[float]
    standard_errors: list[Size]
    privacy_standard_errors: list[Size]
    confidence_intervals: list[Interval]
    standard_deviations: list[Size]
    clipped: list[Interval]
    confidence_level: float
    n: int


@dataclass(frozen=True, slots=True)
class BinnedResidualsPlan(Planned):
    """Planned residuals. edges: of the fitted values, where they are given; pilot: the quantiles of
    η, where not."""

    deadline_shares: ClassVar = (0.06, 0.1)

    model: FittedModel
    spread: Spread
    edges: tuple[float, ...] | None
    pilot: QuantileTree | None
    share: int
    unit_rows: int
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.model.design.columns,
            rho=sum(part.rho for part in self._parts),
            mechanism="discrete Gaussian sums by bin",
            reference="Canonne, Kamath & Steinke (2020); Kaplan, Schnapp & Stemmer (2022)",
            parts=self._parts,
            passes=self._passes,
            column_ms=self._column_ms,
            gaussian_counts=(),
            selections=() if self.pilot is None else (self.pilot,),
        )

    @property
    def bins(self) -> int:
        """B, or the most of them."""
        return number_of_bins(self) if self.edges is None else len(self.edges) - 1

    @property
    def part(self) -> GramSum:
        """The sums by bin that are released."""
        return self._part(self.bins)

    @property
    def _parts(self) -> tuple[Part, ...]:
        return (self.part,) if self.pilot is None else (self.pilot, self.part)

    @property
    def _passes(self) -> int:
        return len(self._parts)

    @property
    def _column_ms(self) -> int:
        terms = len(self.model.coefficients) * self.n * PREDICTOR_NANOSECONDS // 10**6
        return moments_ms(self.n, self.bins) + self._passes * terms

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The expected noise of one of even bins, relative to the largest residual that is not
        clipped."""
        noise = mean_noise(self.part, WEIGHT, 0.0) * self.bins / self.n
        return {"privacy_standard_error": noise}

    def run(self) -> Recipe:
        """1. Bins, where none are given. 2. Sums by bin. 3. Means with intervals."""
        edges = self.edges
        if self.pilot is not None:
            cells = PredictorMap(self.model, self.pilot.candidates)
            (quantiles,) = yield SumStep("fitted values", (self.pilot,), cells)
            edges = self._edges(quantiles.values)
        if edges is None:
            raise RuntimeError("bins are given or released")
        ranges = [self._range(*ends) for ends in pairwise(edges)]
        centres = tuple((low + high) / 2 for low, high in ranges)
        halves = tuple((high - low) / 2 for low, high in ranges)
        sums = BinnedResidualMap(self.model, edges, centres, halves, WEIGHT)
        (released,) = yield SumStep("residuals", (self._part(len(ranges)),), sums)
        return self._result(sums, ranges, released)

    def _part(self, bins: int) -> GramSum:
        clip = sqrt(WEIGHT**2 + 1)
        return exactly(GramSum(2 * bins, clip, self.share, self.unit_rows, groups=bins), WEIGHT)

    def _edges(self, quantiles: FloatArray) -> tuple[float, ...]:
        """(B + 1,) of fitted values, between the released quantiles of η; even ones where these
        coincide."""
        p = np.linspace(PROBABILITIES[0], PROBABILITIES[-1], self.bins + 1)
        eta = np.interp(p, PROBABILITIES, quantiles)
        found = np.unique(MEANS[self.model.link].mean(eta))
        return tuple((found if len(found) >= 3 else _even_edges(self.model, self.bins)).tolist())

    def _range(self, low: float, high: float) -> Interval:
        """The range of a bin's residuals: the link's, cut to what the response's bounds allow; of
        width 2 where that is a point."""
        response = self.model.response
        lower, upper = MEANS[self.model.link].range(low, high, self.spread)
        lower, upper = max(lower, response.lower - high), min(upper, response.upper - low)
        return (lower, upper) if lower < upper else (lower - 1.0, lower + 1.0)

    def _result(
        self, sums: BinnedResidualMap, ranges: list[Interval], released: Released
    ) -> BinnedResidualsResult:
        found = moments(released, len(ranges), WEIGHT)
        c, h = np.array(sums.centres), np.array(sums.halves)
        values = c + h * found.means
        s2 = np.clip(found.variances(), 0.0, 1.0)
        privacy = np.sqrt(found.centred_noise(found.means)) / found.at_least_one
        sampling = (s2 + np.sqrt(found.variance_noise())) / found.at_least_one
        errors = h * np.sqrt(sampling + privacy**2)
        sure = _sure(found)
        edges = np.array(sums.edges)
        return BinnedResidualsResult(
            edges=edges.tolist(),
            numbers=found.N.tolist(),
            fitted=((edges[1:] + edges[:-1]) / 2).tolist(),
            residuals=values.tolist(),
            standard_errors=np.where(sure, errors, np.maximum(errors, h)).tolist(),
            privacy_standard_errors=(h * privacy).tolist(),
            confidence_intervals=[
                normal_interval(value, error, *ends) if known else ends
                for value, error, known, ends in zip(
                    values.tolist(), errors.tolist(), sure.tolist(), ranges, strict=True
                )
            ],
            standard_deviations=(h * np.sqrt(s2)).tolist(),
            clipped=ranges,
            confidence_level=CONFIDENCE,
            n=self.n,
        )


def _sure(found: GroupMoments) -> FloatArray:
    """(B,) whether a bin's number is above its noise (fitting.trust.clear)."""
    return np.asarray(clear(found.N, found.s / found.a**2))


def number_of_bins(planned: BinnedResidualsPlan) -> int:
    """So many that the noise of an even bin's mean is 1/PRECISION of a normal residual's standard
    deviation."""
    m, rho = planned.unit_rows, planned.share / RHO_UNITS
    least = PRECISION * 2 * REACH * m / sqrt(2 * rho)
    return int(np.clip(planned.n / least, LEAST_BINS, MOST_BINS))


def plan_binned_residuals(
    facts: DatasetFacts,
    model: FittedModel,
    spread: Spread,
    edges: tuple[float, ...] | None,
    rho: int,
) -> BinnedResidualsPlan:
    """Residuals at `rho` (RHO_UNITS). Raises InvalidQuery, InvalidPrivacy."""
    m = facts.schema.unit.max_rows
    pilot = None if edges else _pilot(model, int(SHARE * rho), m)
    share = rho - (pilot.rho if pilot else 0)
    return BinnedResidualsPlan(model, spread, edges, pilot, share, m, facts.n)


def _even_edges(model: FittedModel, bins: int) -> FloatArray:
    """(bins + 1,) of even fitted values between those of the least and the largest η; fewer where
    floats between them are."""
    low, high = MEANS[model.link].mean(np.array(model.limits)).tolist()
    return np.unique(np.linspace(low, high, bins + 1))


def _pilot(model: FittedModel, rho: int, unit_rows: int) -> QuantileTree:
    low, high = model.limits
    if not low < high or len(_even_edges(model, MOST_BINS)) <= MOST_BINS:
        raise InvalidQuery("By the declared bounds all fitted values are alike; give bins.")
    grid = Grid(low, high)
    part = QuantileTree(grid, PROBABILITIES, rho, unit_rows, repeats(grid))
    if not quantile_tree.ladder(part).steps:
        raise InvalidPrivacy("epsilon is too small to find bins; raise it, or give bins.")
    return part
