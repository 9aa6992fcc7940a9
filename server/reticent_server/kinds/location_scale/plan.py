# SPDX-License-Identifier: Apache-2.0
"""A planned location–scale estimate: from public facts to steps, and from releases to the result.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows):

    score      (τ, aτ²), τ = ψ/c; in the last step the meat as well   PowerSum   Δ = 2m
    Jacobian   (1, t, t²) of t = u/c within the cut                   PowerSum   Δ = 2m
    count      one bin (masked)                                       CountSum   Δ = m
    profile    one cell, or one value (no profile)                    QuantileTree, CountSum

A record that is not in use contributes 0, which is no farther from the others. The primitive makes
the powers itself, of one number of a record cut to ±1 (mechanisms.power_sum); ρ adds up under
adaptive composition of zCDP. All else is post-processing, the number of passes is fixed.

Source: Huber (1964); Avella-Medina (2021), Example 1; Avella-Medina, Bradshaw & Loh (2023).
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from annotated_types import Ge, MaxLen, MinLen
from scipy.special import ndtri

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import SELECTION_NANOSECONDS, FloatArray, Released, Step
from reticent_server.fitting.own_profile import (
    NO_PROFILE,
    OwnProfile,
    counts_of,
    lacking,
    plan_own_profile,
    selections_of,
)
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.results import OpenInterval, Share
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.location_scale.recipe import LocationScaleFitted, fit
from reticent_server.kinds.location_scale.settings import (
    LocationScaleSettings,
    forecast,
    plan_settings,
)
from reticent_server.kinds.location_scale.start import column_design, public_start
from reticent_server.kinds.shared.answers import ROBUST_LOCATION
from reticent_server.numerics.psi import Huber

EntryT = TypeVar("EntryT")
Pair = Annotated[list[EntryT], MinLen(2), MaxLen(2)]

NOT_SETTLED = (
    "Location and scale were still moving after the last step and are given without intervals: a "
    "single value may be held by so many records (from {least:.0%} to {most:.0%} on, as the others "
    "lie on both sides or on one) that this scale would be 0. Ask for quantiles, which every "
    "column "
    "has, or for a larger tuning."
)
NOT_ESTIMABLE = (
    "Location and scale are not identifiable here and are given without intervals: too few "
    "records lie "
    "within {c:g} scales of the location, as where a single value is held by most of them (near "
    "{least:.0%} to {most:.0%} and above) or the column is constant, or the noise at this "
    "epsilon and "
    "number of records hides how many do."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationScaleResult:
    """Location and scale in the units of the data; vectors (2,) and the covariance (2, 2) are in
    this order.

    records_in_use: noisy, with a condition or missing cells. calibration: of the influence
    mechanism.
    """

    location: float
    scale: Annotated[float, Ge(0)]
    standard_errors: Pair[float | None]
    privacy_standard_errors: Pair[float | None]
    covariance: Pair[list[float | None]]
    confidence_level: Share
    confidence_intervals: Pair[OpenInterval]
    estimable: Pair[bool]
    tuning: float
    steps: int
    estimand: str
    n: int
    warnings: list[str]
    records_in_use: float | None = None
    calibration: str | None = None


@dataclass(frozen=True, slots=True)
class LocationScalePlan(Planned):
    """A planned estimate of one column.

    start: public; without a profile `own_profile` is released first and replaces it.
    """

    deadline_shares: ClassVar = (0.07, 0.42)

    facts: DatasetFacts
    design: Design
    column: Column
    settings: LocationScaleSettings
    start: Location
    own_profile: OwnProfile | None
    confidence_level: float

    @property
    def outline(self) -> Outline:
        draws = self.own_profile.draws if self.own_profile else 0
        return Outline(
            answers=ROBUST_LOCATION,
            columns=self.design.columns,
            rho=self.settings.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism="noisy Newton (Huber's Proposal 2), discrete Gaussian sums",
            reference="Huber (1964); Avella-Medina (2021), Example 1",
            passes=self.settings.steps + (self.own_profile is not None),
            column_ms=draws * SELECTION_NANOSECONDS // 10**6,  # of an own profile's quantiles
            draws=draws,
            gaussian_counts=(*counts_of(self.own_profile), *self.settings.counts),
            selections=selections_of(self.own_profile),
        )

    @property
    def notes(self) -> list[str]:
        """Warnings of the reply that public facts decide."""
        return [NO_PROFILE] if self.own_profile else []

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the location, in scales."""
        sampling, privacy = (
            self.forecast[f"{of}_standard_error"] for of in ("sampling", "privacy")
        )
        return from_ratios(("location",), (float(privacy) / float(sampling),))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Expected standard errors of the location, in scales, at the normal law."""
        s = self.settings
        sampling, privacy = forecast(s.expected_n, s.unit_rows, s.rho - s.count, s.c)
        return {
            "steps": s.steps,
            "tuning": s.c,
            "notes": self.notes,
            "sampling_standard_error": sampling,
            "privacy_standard_error": privacy,
        }

    def run(self) -> Recipe:
        """The recipe; its result lists location and scale, with standard errors and intervals."""
        fitted = yield from self.fitted()
        return LocationScaleResult(**self.report(fitted))

    def fitted(self) -> Generator[Step, tuple[Released, ...], LocationScaleFitted]:
        """The recipe without its report."""
        location = self.start
        if self.own_profile:
            facts = self.own_profile.profiled((yield self.own_profile.step))
            start = public_start(self.design, self.column, facts, masked=False)
            location = start.location if start else location
        return (yield from fit(self.design, self.column.name, self.settings, location))

    def report(self, fitted: LocationScaleFitted) -> dict[str, Any]:
        """What a reply says of a fit."""
        covariance = fitted.sampling + fitted.privacy
        values = np.array([fitted.location, fitted.scale])
        se, privacy = (np.sqrt(np.maximum(np.diag(C), 0)) for C in (covariance, fitted.privacy))
        result = {
            "location": fitted.location,
            "scale": fitted.scale,
            "standard_errors": se.tolist(),
            "privacy_standard_errors": privacy.tolist(),
            "covariance": covariance.tolist(),
            "confidence_level": self.confidence_level,
            "confidence_intervals": self._intervals(values, se, estimable=fitted.estimable),
            "estimable": [fitted.estimable] * 2,
            "tuning": self.settings.c,
            "steps": self.settings.steps,
            "estimand": self._estimand(),
            "n": self.facts.n,
            "warnings": [*self._declined(fitted), *self.notes],
        }
        return result | ({"records_in_use": fitted.count} if self.design.masked else {})

    def _intervals(
        self, values: FloatArray, se: FloatArray, *, estimable: bool
    ) -> list[list[float | None]]:
        half = float(ndtri((1 + self.confidence_level) / 2)) * se
        if not estimable:
            return [[None, None] for _ in values]
        return [[float(v - h), float(v + h)] for v, h in zip(values, half, strict=True)]

    def _declined(self, fitted: LocationScaleFitted) -> list[str]:
        """Why there are no intervals.

        Proposal 2 has no positive root where a value's share is 1 − κ/c² or more and the others lie
        on both sides of it alike, or 1/(1 + κ/c²) and they lie on one: mean ψ = 0 sets ψ of the tie
        to −(1/p − 1)c there.
        """
        if fitted.estimable:
            return []
        c = self.settings.c
        ratio = Huber(c).mean_square / c**2
        words = NOT_ESTIMABLE if fitted.settled else NOT_SETTLED
        return [words.format(least=1 - ratio, most=1 / (1 + ratio), c=c)]

    def _estimand(self) -> str:
        s = self.settings
        return (
            f"Huber's Proposal 2 with c = {s.c:g}: mean psi((y-m)/s) = 0, "
            "mean psi^2((y-m)/s) = its value at the normal law"
            + ("; c planned for the smallest error at this epsilon" if s.planned else "")
        )


def plan_location_scale(
    facts: DatasetFacts, design: Design, column: Column, query: LocationScale, rho: int
) -> LocationScalePlan:
    """Plans an estimate at `rho` (RHO_UNITS) from public facts; design: mask and columns only."""
    own = None
    if lacking(facts, design):
        own = plan_own_profile(facts, column_design(design, column), rho, (column,))
    known = own.guessed if own else facts
    start = public_start(design, column, known, masked=own is None)
    assert start is not None  # noqa: S101 - guessed or resolved facts cover the column
    settings = plan_settings(
        facts.n,
        facts.schema.unit.max_rows,
        rho - (own.rho if own else 0),
        query,
        masked=design.masked,
        expected_n=facts.n * start.share,
    )
    return LocationScalePlan(
        facts, design, column, settings, start.location, own, query.confidence_level
    )
