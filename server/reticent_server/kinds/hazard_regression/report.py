# SPDX-License-Identifier: Apache-2.0
"""The result of a hazard regression: slopes, which are logarithms of hazard ratios, and the
baseline.
"""

from dataclasses import dataclass

from reticent_server.fitting.results import RegressionResult
from reticent_server.kinds.hazard_regression.proportionality import Proportionality


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The hazard in each of J intervals (events per unit of time) at the `reference` values of the
    k terms, where the offset is 0.

    log_standard_errors: (J,) of its logarithm. covariance: (J, J + k) of ln hazards, with one
    another and with the coefficients, whose own covariance is the fit's.
    """

    hazards: tuple[float, ...]
    log_standard_errors: tuple[float, ...]
    reference: dict[str, float]
    covariance: list[list[float]]


@dataclass(frozen=True, slots=True)
class StrataBaselines:
    """The baselines of the levels of a column."""

    column: str
    levels: tuple[str, ...]
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardFit(RegressionResult):
    """Coefficients are logarithms of hazard ratios. cuts: the ends of the intervals; stop: the
    cumulative hazard at which a person's follow-up ends. The matrix of `weighting` is (k, k + 1):
    its rows begin with a constant. With strata `baseline` is that of the first level.
    proportionality: the test of proportional hazards, where it is asked.
    """

    cuts: tuple[float, ...]
    stop: float
    baseline: Baseline
    strata: StrataBaselines | None = None
    proportionality: Proportionality | None = None
