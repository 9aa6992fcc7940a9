"""A planned generalised linear model: from public facts to steps, and from releases to the result.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows). Every
value that leaves the table is a part of one of the steps, and each part's contributions are functions
of one record and of earlier releases:

    gradient     ‖w v q‖ ≤ RK        VectorSum  Δ = 2RK m      (binomial: 2C m, C ≤ RK; centre)
    information  ‖v√(w h)‖ ≤ R√H     GramSum    Δ = √2 R²H m
    meat         ‖w v q‖ ≤ RK        GramSum    Δ = √2 R²K² m
    scale        ψ_k² ≤ k²           VectorSum  Δ = 2k² m      (Poisson, Gamma)
    χ            |wχ| ≤ sup|χ|       VectorSum  Δ = 2 sup|χ| m  (Gamma's last step; its meat is joint)
    count        one bin             CountSum   Δ = √2 m       (masked designs)
    quantiles    one cell            QuantileTree              (no profile)

since w‖v_c‖² ≤ R_c², w ≤ 1, w m² ≤ cap, and the rare dummies of one record have Σb_j⁻² ≤ (R² − R_c²)/cap. The
primitives enforce each norm by scaling down, so a mistake here would cost accuracy only. The parts' ρ
are fixed by the plan and add up to it under adaptive composition of zCDP; all else is post-processing.
The number of passes is fixed, so time does not depend on the data.

Source: Cantoni & Ronchetti (2001); Avella-Medina (2021), Example 3 and Corollary 2; Avella-Medina,
Bradshaw & Loh (2023).
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

import numpy as np

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts, Profile
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import Glm
from reticent_server.domain.steps import QuantileTree, Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.estimators.glm.recipe import GlmFitted, GlmNewton
from reticent_server.estimators.glm.report import report
from reticent_server.estimators.glm.score import FamilyName
from reticent_server.estimators.glm.settings import (
    COUNTS,
    LEVERAGE_CAP,
    Choice,
    GlmSettings,
    choose,
    plan_settings,
)
from reticent_server.estimators.newton.coding import (
    Coding,
    Split,
    code_design,
    profile_locations,
    split_terms,
)
from reticent_server.estimators.newton.restriction import Restriction
from reticent_server.estimators.newton.settings import Dimensions
from reticent_server.estimators.standardise import Atoms, Location, term_atoms
from reticent_server.estimators.standardise_private import (
    PROBABILITIES,
    MiniProfile,
    plan_mini_profile,
)
from reticent_server.mechanisms.quantile_tree import SELECTION_NANOSECONDS

NO_PROFILE = (
    "No profile covers this model's columns: a share of the budget went to their quartiles. "
    "A profile by the curator would be paid once for all queries."
)
_UNSCALED = Location(0.0, 1.0)
_LEAST_START, _EXPLAINED = 0.02, 0.7


@dataclass(frozen=True, slots=True)
class Start:
    """A public start: η₀, the link of a typical mean, and the scale s₀.

    typical: of a binomial response the frequency of ones, else a guess of s once the model explains.
    """

    eta: float
    scale: float
    typical: float


@dataclass(frozen=True, slots=True)
class GlmPlan:
    """A planned generalised linear model; satisfies EstimatorPlan.

    coding and start are final with a profile; without one `quantiles` is released first. dispersion: α
    of the negative binomial.
    """

    facts: DatasetFacts
    coding: Coding
    settings: GlmSettings
    sizes: Dimensions
    choice: Choice
    start: Start
    quantiles: MiniProfile | None
    confidence_level: float
    dispersion: float | None = None
    mechanism: str = "noisy Newton (robust quasi-likelihood), discrete Gaussian sums"
    reference: str = (
        "Cantoni & Ronchetti (2001); Avella-Medina (2021), Example 3; "
        "Avella-Medina, Bradshaw & Loh (2023)"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.coding.design.columns

    @property
    def rho(self) -> int:
        return self.settings.rho + (self.quantiles.rho if self.quantiles else 0)

    @property
    def passes(self) -> int:
        joint = self.settings.family == "gamma" and self.coding.design.intercept
        own = max(len(self.settings.scales) - joint, 0)
        return self.settings.steps + own + (self.quantiles is not None)

    @property
    def column_ms(self) -> int:
        """Planned time beyond that of sums: special functions of each record, the predictions, and
        the draws of a mini-profile's quantiles."""
        times = {"binomial": 100, "poisson": 4000, "gamma": 400, "negative_binomial": 12_000}
        per_record = times[self.settings.family]
        draws = 0
        if self.quantiles:
            trees = self.quantiles.step.parts
            draws = sum(t.sub_cells * 3 for t in trees if isinstance(t, QuantileTree))
        records = self.facts.n * self.passes * per_record
        return 200 * self.settings.steps + (records + draws * SELECTION_NANOSECONDS) // 10**6

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Steps, tuning, shares of ρ, and expected standard errors per unit of a term's scale."""
        return {
            "steps": self.settings.steps,
            "tuning": self.settings.c if np.isfinite(self.settings.c) else None,
            "notes": [NO_PROFILE] if self.quantiles else [],
            "shares": self.shares,
            "sampling_standard_error": sqrt(self.choice.sampling),
            "privacy_standard_error": sqrt(self.choice.privacy),
            "noise_ratio": self.settings.eta,
        }

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        s = self.settings
        amounts = {
            "quantiles": self.quantiles.rho if self.quantiles else 0,
            "records_in_use": s.count,
            "gradients": sum(s.gradients),
            "jacobians": sum(s.jacobians),
            "scales": sum(s.scales),
            "meat": s.meat,
        }
        return {name: amount / self.rho for name, amount in amounts.items()}

    def run(self) -> Recipe:
        """The recipe; its result has ARCHITECTURE's keys, and steps, shares and warnings."""
        _, _, result = yield from self.fitted()
        return result

    def fitted(
        self, restrict: Callable[[Coding], Restriction] | None = None
    ) -> Generator[Step, tuple[Released, ...], tuple[Coding, GlmFitted, dict[str, Any]]]:
        """The recipe, with the coding and the fit that its result was made of.

        restrict: gives the restriction of a score test (estimators.newton.restriction).
        """
        coding, start = self.coding, self.start
        if self.quantiles:
            released = yield self.quantiles.step
            *locations, _ = self.quantiles.locations(released)
            coding = _recode(coding, locations)
            atoms = _atoms(released[-1])
            start = start_from(self.settings.family, atoms, coding.response, self.dispersion)
        restriction = restrict(coding) if restrict else None
        newton = GlmNewton(coding, self.settings, self.sizes, start.eta, start.scale, restriction)
        fitted: GlmFitted = yield from newton.fit()
        result = report(coding, self.settings, fitted, level=self.confidence_level, n=self.facts.n)
        if self.quantiles:
            result["warnings"].append(NO_PROFILE)
        if coding.design.masked:
            result["records_in_use"] = fitted.count
        return coding, fitted, {**result, "steps": self.settings.steps, "shares": self.shares}


def plan_glm(facts: DatasetFacts, design: Design, query: Glm, rho: int) -> GlmPlan:
    """Plans a model at `rho` (RHO_UNITS) from public facts alone.

    Raises InvalidQuery without terms, or with a response whose bounds the family cannot have.
    """
    family = query.family
    if family == "gaussian":
        raise InvalidQuery("The gaussian family is a linear regression.")
    response = checked_response(design, family)
    if (query.dispersion is not None) is not (family == "negative_binomial"):
        raise InvalidQuery("The negative_binomial family has a dispersion; no other has one.")
    quantiles, coding, start = _public_start(facts, design, response, query, rho)
    left = rho - (quantiles.rho if quantiles else 0)
    sizes, choice = _sized(facts, coding, family, left, query.tuning, start.typical)
    coding = replace(
        coding,
        radius_squared=sizes.radius_squared,
        white_radius_squared=sizes.white_radius_squared,
    )
    settings = plan_settings(
        family,
        sizes,
        left,
        choice,
        upper=response.upper,
        tuned=query.tuning is not None,
        masked=design.masked,
    )
    return GlmPlan(
        facts,
        coding,
        settings,
        sizes,
        choice,
        start,
        quantiles,
        query.confidence_level,
        query.dispersion,
    )


def checked_response(design: Design, family: FamilyName) -> Term:
    """The response. Raises InvalidQuery where its declared bounds do not suit the family."""
    response = design.response
    if response is None or not design.names:
        raise InvalidQuery("A model needs a response and at least one term.")
    if family == "binomial" and not (response.lower >= 0 and response.upper <= 1):
        raise InvalidQuery("A binomial response must be boolean, or have bounds within [0, 1].")
    if family != "binomial" and response.lower < 0:
        raise InvalidQuery(
            "A response of counts or of the Gamma family must have a lower bound of at least 0."
        )
    return response


def start_from(
    family: FamilyName, atoms: Atoms | None, response: Term, dispersion: float | None = None
) -> Start:
    """η₀ and s₀ from the response's released quantiles or counts; s₀ = √α of the negative binomial."""
    if dispersion is not None:
        eta = 0.0 if atoms is None else log(max(float(atoms.weights @ atoms.values), 1e-3))
        return Start(eta, sqrt(dispersion), sqrt(dispersion))
    if atoms is None:
        return Start(0.0, 1.0, 0.3)
    mean = float(atoms.weights @ atoms.values)
    if family == "binomial":
        share = min(max(mean, _LEAST_START), 1 - _LEAST_START)
        return Start(log(share / (1 - share)), 1.0, share)
    variance = float(atoms.weights @ (atoms.values - mean) ** 2)
    mean = max(mean, 1e-3 * (response.upper or 1.0) / 1e3, 1e-9)
    if family == "poisson":
        return Start(log(mean), max(1.0, sqrt(variance / mean)), 1.0)
    variation = min(max(sqrt(variance) / mean, 0.05), 20.0)
    return Start(log(mean), variation, _EXPLAINED * variation)


def _public_start(
    facts: DatasetFacts, design: Design, response: Term, query: Glm, rho: int
) -> tuple[MiniProfile | None, Coding, Start]:
    """Coding and start from the profile; or a mini-profile, and stand-ins that it will replace."""
    profile = facts.profile
    split = split_terms(design, profile)
    terms = (*split.white, response)
    found = profile_locations(terms, profile) if profile else None
    if found is not None:
        coding = code_design(design, response, split, found[:-1], _UNSCALED)
        atoms = _profile_atoms(response, profile)
        return None, coding, _start(query, atoms, response)
    quantiles = plan_mini_profile(design, terms, facts.schema, facts.n, rho)
    unknown = [_UNSCALED] * len(split.white)
    return (
        quantiles,
        code_design(design, response, split, unknown, _UNSCALED),
        _start(query, None, response),
    )


def _start(query: Glm, atoms: Atoms | None, response: Term) -> Start:
    if query.family == "gaussian":
        raise InvalidQuery("The gaussian family is a linear regression.")
    return start_from(query.family, atoms, response, query.dispersion)


def _profile_atoms(response: Term, profile: Profile | None) -> Atoms | None:
    return None if profile is None else term_atoms(response, profile)


def _atoms(released: Released) -> Atoms:
    """The response's distribution from its quantiles at PROBABILITIES: each stands for its cell."""
    p = np.array(PROBABILITIES)
    edges = np.concatenate([[0.0], (p[1:] + p[:-1]) / 2, [1.0]])
    return Atoms(np.asarray(released.values, dtype=np.float64), np.diff(edges))


def _recode(coding: Coding, locations: list[Location]) -> Coding:
    """The coding with released locations; sizes and radii stay."""
    split = Split(coding.white, coding.rare, coding.rare_locations)
    scaled = code_design(coding.design, coding.response, split, locations, _UNSCALED)
    return replace(coding, white_locations=scaled.white_locations)


def _sized(
    facts: DatasetFacts,
    coding: Coding,
    family: FamilyName,
    rho: int,
    tuning: float | None,
    typical: float,
) -> tuple[Dimensions, Choice]:
    """The radius of least forecast variance, and the dimensions that it gives."""
    rare = coding.radius_squared - coding.white_radius_squared
    if family in COUNTS:
        rare *= LEVERAGE_CAP
    sizes = Dimensions(
        size=coding.size,
        white_size=coding.white_size,
        intercept=coding.design.intercept,
        radius_squared=coding.white_radius_squared + rare,
        white_radius_squared=coding.white_radius_squared,
        n=facts.n,
        unit_rows=facts.schema.unit.max_rows,
    )
    choice = choose(family, sizes, rho, tuning, coding.response.upper, typical)
    white = choice.factor * sizes.white_size
    return replace(sizes, radius_squared=white + rare, white_radius_squared=white), choice
