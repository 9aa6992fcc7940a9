# SPDX-License-Identifier: Apache-2.0
"""What replies of several kinds hold: the schema of releases is made from these classes.

A field whose default is None is left out of a reply where it is None.
"""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

Interval = tuple[float, float]
OpenInterval = tuple[float | None, float | None]
"""(lower, upper); (None, None) where there is none."""
Share = Annotated[float, Ge(0), Le(1)]
Size = Annotated[float, Ge(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its standard error and interval, in the units of the data.

    privacy_standard_error: the part of the standard error that is the privacy noise.
    """

    value: float
    standard_error: Size
    confidence_level: Share
    confidence_interval: Interval
    n: int
    privacy_standard_error: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number without a standard error, in the units of the data.

    confidence_interval: counts sampling and noise, where it was asked for. bin: the bin of the test
    of safety that the value is in. quartiles: that a range is the difference of. tuning: c of an
    M-estimate.
    """

    value: float
    n: int
    bin: Interval | None = None
    quartiles: Interval | None = None
    tuning: float | None = None
    confidence_level: Share | None = None
    confidence_interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction (p,) in the units of the coefficients, and whether the releases tell it from
    noise.

    A combination c is estimable unless more than .3 of the sum of (c·vector)² comes from directions
    that are not resolved. There is one for each coefficient that is not null, or none where all are
    resolved. A combination with a coefficient that is null is never estimable.
    """

    vector: list[float]
    resolved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """A record with the row x of the design, in the units of the data, has the weight min(1,
    radius_squared/|matrix x|²). No matrix: every record weighs 1. Columns of terms that are left
    out are 0.
    """

    matrix: list[list[float]]
    radius_squared: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The cut of a fit whose records' scores are cut as a whole at a rank from the top.
    records_beyond: how many the cut is expected to reach. tail_index: at the cut, a cautious one;
    small where few records weigh much. allowances: (p,) the part of the standard errors that allows
    for what the cut takes."""

    records_beyond: Size
    allowances: list[Size | None]
    tail_index: Annotated[float, Gt(0)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FitStatistics:
    """How well a fit describes its records. rsquared: 1 − the residuals' squares over the
    response's about its mean, of 0/1 responses Efron's. rsquared_interval: sampling and noise, of a
    linear model; rsquared_privacy_standard_error: the noise alone. residual_standard_deviation: in
    the units of the response, with a divisor less the coefficients. What is left out is below its
    noise.
    """

    rsquared: Share | None = None
    rsquared_adjusted: Annotated[float, Le(1)] | None = None
    rsquared_privacy_standard_error: Size | None = None
    rsquared_interval: Interval | None = None
    confidence_level: Share | None = None
    residual_standard_deviation: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionResult:
    """A fit of p terms: vectors (p,), covariance (p, p), in the units of the data. null: not
    identifiable; where the coefficient is null, too, the term is left out, as a level may have no
    record (warnings say which).

    standard_errors count sampling and privacy noise; privacy_standard_errors the noise alone.
    scale: of the residuals. clusters: noisy number of persons with a row in use, where a person's
    rows are summed first; effective_clusters: how many equal ones would have scores that vary as
    theirs; degrees_of_freedom: (p,) of the t laws of intervals and p-values; clipped_share: of the
    persons, those whose sum of scores is clipped. cluster: the column whose levels are the
    clusters, where the question names one; clusters and effective_clusters are then the levels with
    records and how many equal ones are worth as much; design_effects: (p,) by how much clusters
    multiply the sampling variances. tuning: where they are cut, null for no cut. estimand: what is
    estimated, in words. shares: what part of the budget went where. link: of a generalised linear
    model; variance_power: k where its variance grows with the mean's power k. dispersion: of a
    negative binomial, given or estimated; with its errors and interval where it is estimated and
    its information above the noise. records_in_use: noisy, of a design with a condition or missing
    cells; sum_of_weights: the same of a weighted one. calibration, least_curvature, noisy_p_values,
    noisy_p_intervals: of the influence mechanism. effects: "person" where terms and response are
    deviations from a person's means. statistics: where the question asks for them. baselines: by
    column of a factor, the level that has no term."""

    terms: list[str]
    coefficients: list[float | None]
    standard_errors: list[float | None]
    covariance: list[list[float | None]]
    confidence_level: Share
    confidence_intervals: list[OpenInterval]
    p_values: list[Share | None]
    privacy_standard_errors: list[float | None]
    estimable: list[bool]
    directions: list[Direction]
    weighting: Weighting
    scale: float | None
    tuning: float | None
    steps: int
    shares: dict[str, float]
    estimand: str
    n: int
    warnings: list[str]
    family: str | None = None
    link: str | None = None
    variance_power: float | None = None
    dispersion: float | None = None
    dispersion_standard_error: Size | None = None
    dispersion_privacy_standard_error: Size | None = None
    dispersion_interval: Interval | None = None
    records_in_use: float | None = None
    sum_of_weights: float | None = None
    clusters: float | None = None
    effective_clusters: float | None = None
    degrees_of_freedom: list[Annotated[float, Gt(0)] | None] | None = None
    clipped_share: Share | None = None
    cluster: str | None = None
    design_effects: list[Annotated[float, Ge(1)] | None] | None = None
    calibration: str | None = None
    least_curvature: float | None = None
    noisy_p_values: list[float] | None = None
    noisy_p_intervals: list[Interval] | None = None
    effects: str | None = None
    statistics: FitStatistics | None = None
    cut: Cut | None = None
    baselines: dict[str, str] | None = None
