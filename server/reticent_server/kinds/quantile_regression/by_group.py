# SPDX-License-Identifier: Apache-2.0
"""Quantile regressions of each group, at one or several τ: for each τ the fits of all groups (fitting.group_fits).

Privacy (unconditional): fitting.group_fits, for each τ; the τ compose, so ρ is their sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedInTurn
from reticent_server.fitting.group_fits import Fitted, GroupFitsPlan, Strata, plan_group_fits
from reticent_server.kinds.quantile_regression.model import QuantileModel
from reticent_server.kinds.quantile_regression.plan import (
    CROSSING,
    QuantileFit,
    QuantileFits,
    crosses,
    ordered_taus,
)
from reticent_server.kinds.shared.linear.response import PublicResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantileFit(QuantileFits):
    """The fits of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantileFits:
    """Fits by τ for each level of the column `by`, in the order of its declared levels. The errors of two groups are
    independent."""

    by: str
    groups: list[GroupQuantileFit]
    n: int


@dataclass(frozen=True, slots=True)
class GroupQuantileFitsPlan(PlannedInTurn):
    """Planned fits of all groups, one plan for each τ."""

    by_tau: tuple[GroupFitsPlan[PublicResponse], ...]
    taus: tuple[float, ...]
    taken: ClassVar = (0.16, 0.2)

    @property
    def each(self) -> Sequence[Planned]:
        """One for each τ."""
        return self.by_tau

    @property
    def first(self) -> GroupFitsPlan[PublicResponse]:
        """What all have in common stands in each."""
        return self.by_tau[0]

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of a regression by groups, of the first τ."""
        return {**self.first.forecast, "taus": list(self.taus)}

    def run(self) -> Recipe:
        """τ after τ; always a reply."""
        fitted: dict[float, list[Fitted[PublicResponse]]] = {}
        for tau, plan in zip(self.taus, self.by_tau, strict=True):
            fitted[tau] = yield from plan.fitted()
        strata = self.first.strata
        groups = [
            self._group(g, level, [found[g] for found in fitted.values()])
            for g, level in enumerate(strata.levels)
        ]
        return GroupQuantileFits(by=strata.column, groups=groups, n=self.first.first.facts.n)

    def _group(self, g: int, level: str, found: list[Fitted[PublicResponse]]) -> GroupQuantileFit:
        fits = tuple(
            QuantileFit(**plan.result(g, *each))
            for plan, each in zip(self.by_tau, found, strict=True)
        )
        lines = np.array([fit.theta for _, fit in found])
        crossing = crosses(lines, intercept=self.first.first.design.intercept)
        return GroupQuantileFit(
            fits=fits,
            crossing=crossing,
            warnings=[CROSSING] if crossing else [],
            n=self.first.first.facts.n,
            level=level,
        )


def plan_group_quantiles(
    facts: DatasetFacts,
    design: Design,
    strata: Strata,
    taus: tuple[float, ...],
    level: float,
    rho: int,
) -> GroupQuantileFitsPlan:
    """Plans at `rho` (RHO_UNITS) together. Raises InvalidQuery."""
    ordered, each = ordered_taus(taus), rho // len(taus)
    plans = (
        plan_group_fits(facts, design, strata, QuantileModel(tau), level, each) for tau in ordered
    )
    return GroupQuantileFitsPlan(tuple(plans), ordered)
