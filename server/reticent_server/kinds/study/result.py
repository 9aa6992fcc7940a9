# SPDX-License-Identifier: Apache-2.0
"""What a reply to a study holds."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from reticent_server.fitting.results import OpenInterval, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The moments' noise is CᵀEC: C = `root` (q, q), E symmetric and Gaussian, sd on the diagonal
    and sd/√2 off it.
    """

    sd: Annotated[float, Ge(0)]
    root: list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipped:
    """What the radius has left out.

    share: of the records' weight (with noise, so it may be negative), with its standard error.
    excess: mean (‖u‖² − R²)₊ as far as a released histogram shows it: the bias of a combination is
    ½·excess·(|a||b| + |aᵀb|) at most.
    """

    share: float
    standard_error: Annotated[float, Ge(0)]
    excess: Annotated[float, Ge(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """Moments at a narrower radius, as `moments` and `noise` are; about `ratio` times what lies
    between the two radii lies beyond the wider one. typical: what clipping moves a coefficient by
    on real tables with such tails, root mean square, in sampling errors.
    """

    moments: list[list[float]]
    noise: Noise
    ratio: Annotated[float, Ge(0)]
    typical: Annotated[float, Ge(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MainFit:
    """Least squares of the declared formula, p terms, in the units of the data; errors robust to
    heteroscedasticity.

    standard_errors count sampling, noise and what clipping may have moved; privacy_standard_errors
    the noise alone. gate: the noise's size relative to the data's information about the combination
    that it hides most; above 1/3 there are no intervals. classical_standard_errors: for errors of
    one variance (of persons with several rows: of rows that have nothing in common). clusters,
    effective_clusters, degrees_of_freedom, clipped_share: of errors by person, as in a regression's
    reply.
    """

    formula: str
    terms: list[str]
    coefficients: list[float]
    standard_errors: list[float]
    covariance: list[list[float]]
    confidence_level: Annotated[float, Ge(0), Le(1)]
    confidence_intervals: list[OpenInterval]
    p_values: list[Share | None]
    privacy_standard_errors: list[float]
    classical_standard_errors: list[float]
    estimable: list[bool]
    scale: float
    gate: float | None
    estimand: str
    n: int
    warnings: list[str]
    clusters: float | None = None
    effective_clusters: float | None = None
    degrees_of_freedom: list[Annotated[float, Gt(0)]] | None = None
    clipped_share: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The study of one group of records. moments: (q, q), Σω zzᵀ/n in the terms' units, n the
    records of the whole table.

    radius: R² of the coordinates u = C⁻ᵀz, C the noise's root. narrow: what clipping may have moved
    is judged by it. lost: (q,) of each column the share of its mean square that lies in a doubling
    of the radius, 0 where its declared bounds are within reach; a formula with one above .10 has no
    intervals. main: with a declared formula.
    """

    moments: list[list[float]]
    noise: Noise
    narrow: Narrow
    clipped: Clipped
    radius: float
    lost: list[float]
    main: MainFit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """Noisy second moments of q columns, the intercept first; all linear analyses of them are free.

    variables: the columns of each text that was asked for. centres, scales: (q,) public, of the
    terms. moments, noise, narrow, clipped, radius, lost, main: as in a group, of all records in
    use; with `by` they are in `groups`, by level. dummies: which columns hold 0 and 1 only. Where
    persons have several rows: n counts persons, persons is the noisy number of those with a row in
    use, with the standard error of its noise, and design_effect is by what the sampling covariances
    of formulas that were not declared are multiplied. effects: "person" where all columns are
    deviations from a person's means; the intercept then counts rows, and stretch is by what mean
    squares of residuals are multiplied to be those of errors."""

    terms: list[str]
    variables: dict[str, list[str]]
    centres: list[float]
    scales: list[float]
    dummies: list[bool]
    n: int
    shares: dict[str, float]
    warnings: list[str]
    moments: list[list[float]] | None = None
    noise: Noise | None = None
    narrow: Narrow | None = None
    clipped: Clipped | None = None
    radius: float | None = None
    lost: list[float] | None = None
    main: MainFit | None = None
    groups: dict[str, GroupResult] | None = None
    persons: float | None = None
    design_effect: Annotated[float, Ge(1)] | None = None
    effects: Literal["person"] | None = None
    stretch: Annotated[float, Ge(1)] | None = None
    persons_standard_error: Annotated[float, Ge(0)] | None = None
