# SPDX-License-Identifier: Apache-2.0
"""A ROC curve from two noisy histograms of one score on a public grid.

A record in use of either outcome adds 1 to one cell (outcome, bin); edges are public, the asked
thresholds among them. Privacy: kinds.shared.group_bins, one CountSum with Δ = √2 for both
histograms, a record whose outcome and score both change included. All else is post-processing.

At an edge t a record is positive where its score is at least t (or below t, where low scores are
the positive ones). With the counts of each outcome on both sides of t, which are disjoint sums of
cells with independent noise, sensitivity, specificity, predictive values and likelihood ratios have
the intervals of kinds.roc.accuracy.

The area under the curve is P(X > Y) + P(X = Y)/2 of bins, X of the outcome, Y not: the area under
straight lines between the points. Its variance is DeLong's and the noise's (kinds.shared.ranks);
the interval holds what is within z standard errors on the scale of the area or of its logit (near
1 the first has too few above, the second too few below). The area of a concave curve lies above its
chords; LEAST_BINS says by how much.

Sources: Bamber (1975); Hanley & McNeil (1982); DeLong, DeLong & Clarke-Pearson (1988); Pepe (2003),
The statistical evaluation of medical tests, section 4.2 and 5.2.5 (the logit scale).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import expit, logit

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.results import Interval, OpenInterval
from reticent_server.kinds.roc.accuracy import NoisyCount, likelihood_ratio, share
from reticent_server.kinds.roc.predictor import PredictorBinsMap, public_edges_of
from reticent_server.kinds.shared.bins_plan import BinsPlan
from reticent_server.kinds.shared.group_bins import (
    GroupBins,
    GroupBinsMap,
    bins_part,
    number_of_bins,
    public_edges,
)
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.predictor import Predictor
from reticent_server.kinds.shared.ranks import Superiority, superiority
from reticent_server.mechanisms import noisy_sum

LEAST_BINS = 12  # the area of a binormal curve of .8 is then .003 too small; of 5 bins, .017
_TYPICAL = 0.75  # of an area, in forecasts: between chance and a perfect score
_FINER = 3.5  # times the bins of a rank test: 24 at n = 20,000, ε = 1, .001 too small


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """What a score's edge is worth as a test, with intervals.

    Predictive values are at the table's own prevalence. A likelihood ratio is None where no
    negative record is clear of 0; so is an upper end that the data do not bound.
    """

    threshold: float
    sensitivity: float
    sensitivity_interval: Interval
    specificity: float
    specificity_interval: Interval
    positive_predictive_value: float
    positive_predictive_value_interval: Interval
    negative_predictive_value: float
    negative_predictive_value_interval: Interval
    positive_likelihood_ratio: float | None
    positive_likelihood_ratio_interval: OpenInterval
    negative_likelihood_ratio: float | None
    negative_likelihood_ratio_interval: OpenInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class RocResult:
    """The area under the ROC curve of a score in public bins, and its points.

    standard_error: of sampling and noise; privacy_standard_error: of the noise. levels: of the
    outcome, the one that is looked for first. numbers: released numbers of records of each.
    prevalence: of the first among both. cutoffs: one for each public edge, the asked thresholds
    among them.
    """

    auc: float
    auc_interval: Interval
    standard_error: float
    privacy_standard_error: float
    confidence_level: float
    levels: tuple[str, ...]
    numbers: tuple[float, ...]
    prevalence: float
    prevalence_interval: Interval
    cutoffs: tuple[Cutoff, ...]
    n: int


class RocQuestion(Protocol):
    """What a ROC curve asks beside its columns."""

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Scores at which sensitivity and specificity are asked for."""

    @property
    def confidence_level(self) -> float:
        """The level of the area's interval."""


@dataclass(frozen=True, slots=True)
class RocPlan(BinsPlan):
    """A planned ROC curve. low: whether low scores are positive; expected: numbers of records of
    both outcomes by public facts."""

    deadline_shares: ClassVar = (0.05, 0.07)

    low: bool = field(default=False)
    expected: tuple[float, float] = field(default=(1.0, 1.0))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one count, and of the area where all records are in use: centred ridits have
        the mean square 1/12."""
        bins, sigma = len(self.cells.edges) + 1, noisy_sum.noise_sd(self.part)
        return {
            "count_standard_error": sigma,
            "privacy_standard_error": sigma
            * sqrt(bins / 12)
            * hypot(*(1 / N for N in self.expected)),
            "bins": bins,
        }

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of an area of .75, by Hanley and McNeil."""
        noise, (m, k) = float(self.forecast["privacy_standard_error"]), self.expected
        theta = _TYPICAL
        pairs = (m - 1) * (theta / (2 - theta) - theta**2)
        pairs += (k - 1) * (2 * theta**2 / (1 + theta) - theta**2)
        return single("auc", noise, sqrt((theta * (1 - theta) + pairs) / (m * k)))

    def result(self, bins: GroupBins) -> RocResult:
        area = _turned(superiority(bins), self.low)
        with_it, without = (
            NoisyCount(float(row.sum()), bins.sigma**2 * len(row)) for row in bins.T
        )
        prevalence = share(with_it, without, self.confidence_level)
        return RocResult(
            auc=area.value,
            auc_interval=area_interval(area, bins, self.confidence_level),
            standard_error=area.standard_error,
            privacy_standard_error=area.noise,
            confidence_level=self.confidence_level,
            levels=self.groups.levels,
            numbers=(with_it.value, without.value),
            prevalence=prevalence.value,
            prevalence_interval=prevalence.interval,
            cutoffs=tuple(
                cutoff(bins, k + 1, edge, low=self.low, level=self.confidence_level)
                for k, edge in enumerate(self.cells.edges)
            ),
            n=self.n,
        )


def area_interval(area: Superiority, bins: GroupBins, level: float) -> Interval:
    """What is within z standard errors on the scale of the area or of its logit; [0, 1] where an
    outcome may have no records."""
    if not bins.sure:
        return 0.0, 1.0
    least = 0.5 / float(bins.numbers.min())  # half a record: an area of 1 has an interval, too
    theta = float(np.clip(area.value, least, 1 - least))
    half = half_width(area.standard_error / (theta * (1 - theta)), level)
    low, high = float(expit(logit(theta) - half)), float(expit(logit(theta) + half))
    plain = half_width(area.standard_error, level)
    return max(0.0, min(low, theta - plain)), min(1.0, max(high, theta + plain, area.value))


def cutoff(bins: GroupBins, place: int, threshold: float, *, low: bool, level: float) -> Cutoff:
    """The test "score ≥ threshold", the first bin of which is `place`; below it where `low`."""
    below, above = (
        [NoisyCount(float(row[side].sum()), bins.sigma**2 * len(row[side])) for row in bins.T]
        for side in (slice(None, place), slice(place, None))
    )
    (tp, fp), (fn, tn) = (below, above) if low else (above, below)
    sensitivity, specificity = share(tp, fn, level), share(tn, fp, level)
    positive, negative = share(tp, fp, level), share(tn, fn, level)
    upward = likelihood_ratio(sensitivity, share(fp, tn, level))
    downward = likelihood_ratio(share(fn, tp, level), specificity)
    return Cutoff(
        threshold=threshold,
        sensitivity=sensitivity.value,
        sensitivity_interval=sensitivity.interval,
        specificity=specificity.value,
        specificity_interval=specificity.interval,
        positive_predictive_value=positive.value,
        positive_predictive_value_interval=positive.interval,
        negative_predictive_value=negative.value,
        negative_predictive_value_interval=negative.interval,
        positive_likelihood_ratio=upward.value,
        positive_likelihood_ratio_interval=upward.interval,
        negative_likelihood_ratio=downward.value,
        negative_likelihood_ratio_interval=downward.interval,
    )


def _turned(area: Superiority, low: bool) -> Superiority:
    """The area where low scores are positive."""
    if not low:
        return area
    return Superiority(1.0 - area.value, area.standard_error, area.noise)


def plan_roc(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    score: Column,
    asked: RocQuestion,
    rho: int,
    *,
    low: bool,
) -> RocPlan:
    """A ROC curve at `rho` (RHO_UNITS); design: mask and columns only."""
    bins = number_of_bins(facts, groups.size, rho, finer=_FINER, least=LEAST_BINS)
    edges = tuple(sorted({*public_edges(facts, score, bins), *asked.thresholds}))
    cells = GroupBinsMap(design, groups, score.name, edges)
    return _planned(facts, cells, asked, rho, low=low)


def plan_roc_of(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    predictor: Predictor,
    asked: RocQuestion,
    rho: int,
    *,
    low: bool,
) -> RocPlan:
    """The curve of a released model's predictor; otherwise as plan_roc. Raises InvalidQuery."""
    bins = number_of_bins(facts, groups.size, rho, finer=_FINER, least=LEAST_BINS)
    edges = tuple(sorted({*public_edges_of(predictor, facts, bins), *asked.thresholds}))
    cells = PredictorBinsMap(design, groups, "", edges, predictor)
    return _planned(facts, cells, asked, rho, low=low)


def _planned(
    facts: DatasetFacts, cells: GroupBinsMap, asked: RocQuestion, rho: int, *, low: bool
) -> RocPlan:
    return RocPlan(
        cells,
        bins_part(facts, cells.groups, cells.edges, rho),
        asked.confidence_level,
        facts.n,
        low=low,
        expected=expected_numbers(facts, cells.groups),
    )


def expected_numbers(facts: DatasetFacts, groups: Groups) -> tuple[float, float]:
    """The numbers of records of both outcomes, at least 1: by the profile, or halves without it."""
    known = facts.profile.columns.get(groups.column or "") if facts.profile else None
    counts = known.counts if known else None
    if counts is None or len(counts) != groups.size:
        return facts.n / 2, facts.n / 2
    places = (int(code - min(groups.codes)) for code in groups.codes)
    first, second = (max(counts[place], 1.0) for place in places)
    return first, second
