# SPDX-License-Identifier: Apache-2.0
"""Quantile regressions at one or several τ: one planned fit each, on equal parts of the charge.

Privacy (unconditional): fitting.fit_plan, for each fit, with |q| ≤ max(τ, 1 − τ) + .036 and 0 ≤ h ≤
.399/b (kinds.quantile_regression.score); a weight multiplies both by a share in [0, 1]; the fits
compose, so ρ is their sum. By group:
fitting.group_fits, for each τ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedInTurn
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.empty_levels import places_of
from reticent_server.fitting.fit_plan import FitPlan, plan_fit
from reticent_server.fitting.group_fits import Fitted, GroupFitsPlan, plan_group_fits
from reticent_server.fitting.results import RegressionResult
from reticent_server.kinds.quantile_regression.model import QuantileModel
from reticent_server.kinds.shared.by import ByPlan, by_plan, formula_by
from reticent_server.kinds.shared.linear.response import PublicResponse

CROSSING = (
    "At some places within one scale of the regressors' middle a lower quantile lies above a "
    "higher one: the fits' errors "
    "are larger than what lies between them."
)


MOST_COEFFICIENTS, MOST_FITS = 128, 64
"""Of all quantiles of a question together: what is planned in half a second, for free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileFit(RegressionResult):
    """The fit at `tau`; bandwidth: over how many residual scales the check loss was smoothed."""

    tau: float
    bandwidth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileFits:
    """One fit for each τ, in increasing order; crossing: whether quantiles cross near the middle of
    the regressors.
    """

    fits: tuple[QuantileFit, ...]
    crossing: bool
    warnings: list[str]
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantileFit(QuantileFits):
    """The fits of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantileFits:
    """Fits by τ for each level of the column `by`, in the order of its declared levels. The errors
    of two groups are independent.
    """

    by: str
    groups: list[GroupQuantileFit]
    n: int


@dataclass(frozen=True, slots=True)
class QuantileRegressionPlan(PlannedInTurn):
    """Planned fits of one design."""

    fits: tuple[FitPlan[PublicResponse], ...]
    taus: tuple[float, ...]

    @property
    def each(self) -> Sequence[Planned]:
        """One for each τ."""
        return self.fits

    @property
    def first(self) -> FitPlan[PublicResponse]:
        """What all fits have in common stands in each."""
        return self.fits[0]

    def expected_ms(self, n: int) -> float:
        return sum(fit.expected_ms(n) for fit in self.fits)

    @property
    def precision(self) -> ForecastPrecision:
        """Of the coefficients at the τ that is expected to be noisiest."""
        return self._noisiest.precision

    @property
    def _noisiest(self) -> FitPlan[PublicResponse]:
        """Of many columns the outermost τ stand for all: responses are rarest there, and a forecast
        takes long.
        """
        ends = (self.fits[0], self.fits[-1])
        return max(
            ends if self.first.is_wide else self.fits, key=lambda fit: fit.forecast_fit.worst
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of a regression, of the τ that is expected to be noisiest."""
        return {**self._noisiest.forecast, "taus": list(self.taus)}

    def run(self) -> Recipe:
        """Fit after fit; always a reply."""
        fits, lines = [], []
        for plan in self.fits:
            ground, fit = yield from plan.fitted()
            fits.append(QuantileFit(**plan.result(ground, fit)))
            lines.append(places_of(plan.design.names, ground.coding.design.names) @ fit.theta)
        return QuantileFits(**_members(fits, lines, self.first))


@dataclass(frozen=True, slots=True)
class GroupQuantileFitsPlan(PlannedInTurn):
    """Planned fits of all groups, one plan for each τ."""

    by_tau: tuple[GroupFitsPlan[PublicResponse], ...]
    taus: tuple[float, ...]
    deadline_shares: ClassVar = (0.16, 0.2)

    @property
    def each(self) -> Sequence[Planned]:
        """One for each τ."""
        return self.by_tau

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of a regression by groups, of the first τ."""
        return {**self.by_tau[0].forecast, "taus": list(self.taus)}

    def run(self) -> Recipe:
        """The members of each group's result, τ after τ; always a reply."""
        fitted: list[list[Fitted[PublicResponse]]] = []
        for plan in self.by_tau:
            of_tau = yield from plan.fitted()
            fitted.append(of_tau)
        return [self._group(g, found) for g, found in enumerate(zip(*fitted, strict=True))]

    def _group(self, g: int, found: Sequence[Fitted[PublicResponse]]) -> dict[str, Any]:
        fits = [
            QuantileFit(**plan.result(g, *each))
            for plan, each in zip(self.by_tau, found, strict=True)
        ]
        names = self.by_tau[0].first.design.names
        lines = [places_of(names, ground.coding.design.names) @ fit.theta for ground, fit in found]
        return _members(fits, lines, self.by_tau[0].first)


def _members(
    fits: list[QuantileFit], lines: list[FloatArray], first: FitPlan[PublicResponse]
) -> dict[str, Any]:
    """Of QuantileFits; lines: the coefficients (q,) of each, in standardised units."""
    crossing = crosses(np.array(lines), intercept=first.design.intercept)
    warnings = [CROSSING] if crossing else []
    n = first.facts.n
    return {"fits": tuple(fits), "crossing": crossing, "warnings": warnings, "n": n}


def crosses(theta: FloatArray, *, intercept: bool) -> bool:
    """Whether quantiles (T, q), in standardised units, cross at the middle or one scale off it
    along a regressor.
    """
    if len(theta) < 2 or not intercept:
        return False
    slopes = theta[:, 1:]
    at = np.column_stack([theta[:, :1], theta[:, :1] + slopes, theta[:, :1] - slopes])
    return bool((np.diff(at, axis=0) < 0).any())


def ordered_taus(taus: tuple[float, ...]) -> tuple[float, ...]:
    """In increasing order. Raises InvalidQuery where the same τ stands twice."""
    if not taus or len(set(taus)) < len(taus):
        raise InvalidQuery("tau must be one level, or several different ones.")
    return tuple(sorted(taus))


def _check_work(taus: tuple[float, ...], each: int, most: int, what: str) -> None:
    """Raises InvalidQuery where several levels, of `each` each, take too long to plan: a plan is
    free.
    """
    if len(taus) > 1 and len(taus) * each > most:
        raise InvalidQuery(
            f"{len(taus)} quantiles at once are {len(taus) * each:,} {what} here, more than "
            f"{most}: ask for fewer of them in one question."
        )


def plan_quantile_regression(
    facts: DatasetFacts, design: Design, taus: tuple[float, ...], level: float, rho: int
) -> QuantileRegressionPlan:
    """Plans at `rho` (RHO_UNITS) together. Raises InvalidQuery where the same τ stands twice."""
    _check_work(taus, len(design.names), MOST_COEFFICIENTS, "coefficients")
    ordered, each = ordered_taus(taus), rho // len(taus)
    models = [QuantileModel(tau, weighted=design.weight is not None) for tau in ordered]
    fits = tuple(plan_fit(facts, design, model, level, each) for model in models)
    return QuantileRegressionPlan(fits, ordered)


def plan_group_quantiles(
    facts: DatasetFacts,
    formula: str,
    where: str | None,
    by: str,
    taus: tuple[float, ...],
    level: float,
    rho: int,
) -> ByPlan:
    """Plans of all groups at `rho` (RHO_UNITS) together. Raises InvalidQuery."""
    design, strata = formula_by(facts, formula, where, by)
    _check_work(taus, len(strata.codes), MOST_FITS, "fits of groups")
    ordered, each = ordered_taus(taus), rho // len(taus)
    plans = (
        plan_group_fits(facts, design, strata, QuantileModel(tau), level, each) for tau in ordered
    )
    plan = GroupQuantileFitsPlan(tuple(plans), ordered)
    return by_plan(facts, plan, strata, GroupQuantileFit, GroupQuantileFits)
