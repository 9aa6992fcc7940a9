# SPDX-License-Identifier: Apache-2.0
"""From the last step of a hazard regression to the units of the data: slopes, hazard ratios'
logarithms, the baseline.

u = W x̃ with W = (w₀, W₁) and x̃_j = (x_j − a_j)/b_j gives β_j = (W₁ᵀβ_u)_j/b_j, and u = 0 at the
reference x = a + b·(−W₁⁻¹w₀): the hazard at x is λ_j exp((x − x_ref)ᵀβ).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reticent_server.fitting import trust
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.own_profile import spread_verdict
from reticent_server.fitting.report import (
    Reported,
    intervals,
    p_values,
    roots,
    warnings,
)
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.special_columns import special
from reticent_server.kinds.hazard_regression.maps import Point
from reticent_server.kinds.hazard_regression.newton import LastStep
from reticent_server.kinds.hazard_regression.proportionality import Proportionality

if TYPE_CHECKING:
    from reticent_server.kinds.hazard_regression.plan import HazardPlan


OFFSET_LEANS = (
    "A slope of a term that goes with the offset may be too near to 0, by .4 standard errors "
    "where half of the offset's variance "
    "goes with it: its interval of 95 % then covers .88."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The hazard in each of J intervals (events per unit of time) at the `reference` values of the
    k terms, where the offset is 0.

    log_standard_errors: (J,) of its logarithm. covariance: (J + k, J + k) of ln hazards and
    coefficients together.
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


def hazard_fit(
    plan: "HazardPlan",
    coding: TermCoding,
    point: Point,
    step: LastStep,
    noted: list[str],
    in_use: float | None,
) -> HazardFit:
    """The result. in_use: the noisy number of records in use, None where all are."""
    slopes_only = replace(coding, design=replace(coding.design, intercept=False))
    W1, k = point.transform[:, 1:], len(point.beta)
    J = len(plan.asked.cuts)
    T = W1.T / slopes_only.scales[:, None]
    whole = np.zeros((J + k, J + k))
    whole[:J, :J], whole[J:, J:] = np.eye(J), T
    privacy, sampling = (whole @ C @ whole.T for C in (step.privacy, step.sampling))
    directions = step.directions.mapped(T)
    slopes = slice(J, None)
    found = Reported(
        coefficients=T @ (point.beta + step.slopes),
        covariance=(privacy + sampling)[slopes, slopes],
        privacy=privacy[slopes, slopes],
        sampling=sampling[slopes, slopes],
        directions=directions.shown,
        flags=trust.coefficients(
            directions.flags & spread_verdict(plan.own_profile).intervals,
            roots(privacy[slopes, slopes]),
            roots(sampling[slopes, slopes]),
        ),
    )
    beta, se, ok = found.coefficients, found.standard_errors, found.estimable
    names = list(slopes_only.design.names)
    reference = _reference(slopes_only, point)
    matrix = np.column_stack([np.zeros(k), T.T])
    matrix[:, 0] = -T.T @ reference
    return HazardFit(
        terms=names,
        coefficients=beta.tolist(),
        standard_errors=se.tolist(),
        covariance=found.covariance.tolist(),
        confidence_level=plan.level,
        confidence_intervals=intervals(beta, se, plan.level, ok),
        p_values=p_values(beta, se, ok),
        privacy_standard_errors=roots(found.privacy).tolist(),
        estimable=[bool(x) for x in ok],
        directions=found.directions,  # type: ignore[arg-type]
        weighting={"matrix": matrix.tolist(), "radius_squared": point.radius_squared},  # type: ignore[arg-type]
        scale=None,
        tuning=None,
        steps=2,
        shares=plan.shares,
        estimand=_estimand(point) + special(plan.asked.design),
        n=plan.facts.n,
        warnings=[*warnings(slopes_only, found), *noted, *_leaning(plan.asked.design.offset)],  # type: ignore[arg-type]
        records_in_use=in_use,
        cuts=plan.asked.cuts,
        stop=point.stop,
        baseline=Baseline(
            hazards=tuple((point.hazards * np.exp(step.log_hazards - point.middle)).tolist()),
            log_standard_errors=tuple(roots(privacy + sampling)[:J].tolist()),
            reference=dict(zip(names, reference.tolist(), strict=True)),
            covariance=(privacy + sampling).tolist(),
        ),
    )


def _reference(coding: TermCoding, point: Point) -> np.ndarray:
    """(k,) where u = 0, in the units of the terms."""
    middle = -np.linalg.solve(point.transform[:, 1:], point.transform[:, 0])
    return np.asarray(coding.centres + coding.scales * middle)


def _estimand(point: Point) -> str:
    return (
        "Logarithms of hazard ratios of proportional hazards, constant between the cuts, where "
        "follow-up stops at the "
        f"cumulative hazard {point.stop:g}; weights min(1, {point.radius_squared:g}/|A(1, x)|^2) "
        "with the matrix A of "
        "`weighting`"
    )


def _leaning(offset: object) -> list[str]:
    """Nothing released tells whether an offset goes with a term, so every fit with one says what
    that would do.
    """
    return [] if offset is None else [OFFSET_LEANS]
