"""A planned location–scale estimate: from public facts to steps, and from releases to the result.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows):

    score      ‖(ψ, aψ²/c − R)‖ ≤ R     VectorSum  Δ = 2R m
    Jacobian   ‖(1, u1/c, u²1/c²)‖ ≤ √3 VectorSum  Δ = 2√3 m
    meat       of the score             GramSum    Δ = √2 R² m
    count      one bin                  CountSum   Δ = m           (masked)
    quantiles  one cell                 QuantileTree               (no profile)

The primitives enforce the norms; ρ adds up under adaptive composition of zCDP. All else is
post-processing, the number of passes is fixed.

Source: Huber (1964); Avella-Medina (2021), Example 1; Avella-Medina, Bradshaw & Loh (2023).
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import LocationScale
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import QuantileTree, Released, Step
from reticent_server.estimators.location_scale.recipe import (
    LocationScaleFitted,
    LocationScaleSettings,
    fit,
    forecast,
    plan_settings,
)
from reticent_server.estimators.standardise import Location, term_location
from reticent_server.estimators.standardise_private import MiniProfile, plan_mini_profile
from reticent_server.mechanisms.quantile_tree import SELECTION_NANOSECONDS

NO_PROFILE = (
    "No profile covers this column: a share of the budget went to its quartiles. "
    "A profile by the curator would be paid once for all queries."
)


@dataclass(frozen=True, slots=True)
class LocationScalePlan:
    """A planned estimate of one column; satisfies EstimatorPlan.

    start: public with a profile; without one `quantiles` is released first.
    """

    facts: DatasetFacts
    design: Design
    column: Column
    settings: LocationScaleSettings
    start: Location | None
    quantiles: MiniProfile | None
    confidence_level: float
    mechanism: str = "noisy Newton (Huber's Proposal 2), discrete Gaussian sums"
    reference: str = "Huber (1964); Avella-Medina (2021), Example 1"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def rho(self) -> int:
        return self.settings.rho + (self.quantiles.rho if self.quantiles else 0)

    @property
    def passes(self) -> int:
        return self.settings.steps + (self.quantiles is not None)

    @property
    def column_ms(self) -> int:
        """Planned time of the draws of a mini-profile's quantiles."""
        trees = self.quantiles.step.parts if self.quantiles else ()
        draws = sum(t.sub_cells * 3 for t in trees if isinstance(t, QuantileTree))
        return draws * SELECTION_NANOSECONDS // 10**6

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Expected standard errors of the location, in scales, at the normal law."""
        s = self.settings
        sampling, privacy = forecast(s.n, s.unit_rows, s.rho, s.c)
        return {
            "steps": s.steps,
            "tuning": s.c,
            "notes": [NO_PROFILE] if self.quantiles else [],
            "sampling_standard_error": sampling,
            "privacy_standard_error": privacy,
        }

    def run(self) -> Recipe:
        """The recipe; its result lists location and scale, with standard errors and intervals."""
        fitted, warnings = yield from self.fitted()
        result = self.report(fitted)
        result["warnings"] += warnings
        if self.design.masked:
            result["records_in_use"] = fitted.count
        return result

    def fitted(
        self,
    ) -> Generator[Step, tuple[Released, ...], tuple[LocationScaleFitted, list[str]]]:
        """The recipe without its report; the fit, and what to warn of."""
        start = self.start or Location(0.0, 1.0)
        if self.quantiles:
            (start,) = self.quantiles.locations((yield self.quantiles.step))
        fitted: LocationScaleFitted = yield from fit(
            self.design, self.column.name, self.settings, (start.centre, start.scale)
        )
        return fitted, [NO_PROFILE] if self.quantiles else []

    def report(self, fitted: LocationScaleFitted) -> dict[str, Any]:
        """What a reply says of a fit."""
        covariance = fitted.sampling + fitted.privacy
        values = np.array([fitted.location, fitted.scale])
        se, privacy = (np.sqrt(np.maximum(np.diag(C), 0)) for C in (covariance, fitted.privacy))
        half = float(ndtri((1 + self.confidence_level) / 2)) * se
        lost = [
            name
            for name, ok in zip(("location", "scale"), fitted.identified, strict=True)
            if not ok
        ]
        return {
            "location": fitted.location,
            "scale": fitted.scale,
            "standard_errors": se.tolist(),
            "privacy_standard_errors": privacy.tolist(),
            "covariance": covariance.tolist(),
            "confidence_level": self.confidence_level,
            "confidence_intervals": [
                [float(v - h), float(v + h)] if ok else [None, None]
                for v, h, ok in zip(values, half, fitted.identified, strict=True)
            ],
            "estimable": list(fitted.identified),
            "tuning": self.settings.c,
            "estimand": (
                f"Huber's Proposal 2 with c = {self.settings.c:g}: mean psi((y-m)/s) = 0, "
                "mean psi^2((y-m)/s) = its value at the normal law"
            ),
            "n": self.facts.n,
            "warnings": [f"Not estimable (constant column, or too few records): {', '.join(lost)}."]
            if lost
            else [],
        }


def plan_location_scale(
    facts: DatasetFacts, design: Design, column: Column, query: LocationScale, rho: int
) -> LocationScalePlan:
    """Plans an estimate at `rho` (RHO_UNITS) from public facts; design: mask and columns only."""
    term = Term(column.name, (ColumnValue(column.name),), column.lower, column.upper)
    start = term_location(term, facts.profile) if facts.profile else None
    quantiles = None
    if start is None:
        quantiles = plan_mini_profile(design, (term,), facts.schema, facts.n, rho)
    settings = plan_settings(
        facts.n,
        facts.schema.unit.max_rows,
        rho - (quantiles.rho if quantiles else 0),
        tuning=query.tuning,
        masked=design.masked,
    )
    return LocationScalePlan(
        facts, design, column, settings, start, quantiles, query.confidence_level
    )
