# SPDX-License-Identifier: Apache-2.0
"""Generalised linear models: the model of a planned fit (fitting.fit_plan).

Defaults of the tuning constant and the radius come from the family alone, so that what is estimated
does not depend on ε, n or a profile; tuning="planned" takes of a public menu what is forecast to
have the smallest error.

Source: Cantoni & Ronchetti (2001); Avella-Medina (2021), Example 3 and Corollary 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import FitPlan, plan_fit
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.tuning import least_variance
from reticent_server.kinds.glm.families import FAMILIES, family_of
from reticent_server.kinds.glm.families.base import FittedFamily, GlmFamily, Start
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.answers import MAXIMUM_LIKELIHOOD, ROBUST_LIKELIHOOD

_RADII = (1.0, 2.0, 3.0, 4.0)  # R²/q of which tuning="planned" takes one
DISPERSED_ONLY = (
    f"The {', '.join(law.name for law in FAMILIES.values() if law.dispersed)} family has a "
    "dispersion; "
    "no other has one."
)
NO_LINK = (
    "The family has no such link: the binomial has logit, probit, cloglog and log, the others "
    "one each."
)
LIKELIHOOD = (
    "what maximum likelihood estimates on all records in use; the scores of the few records with "
    "the largest ones are cut, and intervals allow for it"
)
NO_RISK = (
    "With the log link a binomial likelihood is infinite where a risk is 1. For relative risks ask "
    'for family="poisson" of the same 0/1 response with target="likelihood": its standard errors '
    "allow for the variance of a yes or no."
)
NO_PERSONS = (
    'target="likelihood" is for tables with one row a person, not several rows: ask for '
    'target="robust", which sums a person\'s scores first, or make one row of each person by '
    "persons= with features such as mean(x) and any(y)."
)
GlmPlan = FitPlan[Start]


@dataclass(frozen=True, slots=True)
class GlmModel:
    """A generalised linear model with its constants; satisfies fitting.fit_plan.Model.

    dispersion: α of the negative binomial. whole: whether the target is maximum likelihood's, by
    last scores that are cut as a whole; c and radius are then those of the early steps.
    """

    law: GlmFamily
    c: float
    radius: float
    dispersion: float | None
    planned: bool
    whole: bool = False
    leaves_out: bool = True
    reference: str = (
        "Cantoni & Ronchetti (2001); Avella-Medina (2021), Example 3; "
        "Avella-Medina, Bradshaw & Loh (2023)"
    )

    @property
    def mechanism(self) -> str:
        """The words for the fit in the reply's guarantee."""
        scores = "scores cut as a whole" if self.whole else "robust quasi-likelihood"
        return f"noisy Newton ({scores}), discrete Gaussian sums"

    @property
    def answers(self) -> str:
        """The sentence for maximum likelihood, or for the robust fit."""
        return MAXIMUM_LIKELIHOOD if self.whole else ROBUST_LIKELIHOOD

    @property
    def tuning(self) -> float | None:
        """c; None where residuals are not cut."""
        return self.c if isfinite(self.c) and not self.whole else None

    @property
    def nanoseconds(self) -> int:
        """The family's, for its moments."""
        return self.law.nanoseconds

    @property
    def cut_words(self) -> str:
        """As of means."""
        return trust.OF_MEANS

    @property
    def of_persons(self) -> bool:
        """True: scores are sums over a person's rows."""
        return True

    def check(self, response: Term) -> None:
        """Raises InvalidQuery with the family's words for what is wrong."""
        problem = self.law.problem(response)
        if problem is not None:
            raise InvalidQuery(problem)

    def response(self, term: Term, values: FloatArray) -> Start:
        """The family's public start."""
        return self.law.start(term, values, self.dispersion)

    def location(self, response: Start, *, intercept: bool) -> Location:  # noqa: ARG002
        """The response keeps the units of the data."""
        return Location(0.0, 1.0)

    def level(self, response: Start, *, intercept: bool) -> float:  # noqa: ARG002
        """The link of a typical mean."""
        return response.eta

    def tuned(self, sizes: Sizes, rho: int, ground: FitGround[Start]) -> "GlmModel":
        """With c and R² for the smallest error, where the query says "planned"."""
        if not self.planned:
            return self
        response = ground.response
        pairs = [(c, radius) for c in self.law.menu for radius in _RADII]
        scores = [self.law.score(c, response.scale, response) for c, _ in pairs]
        signals = [self.law.signal(c, response, intercept=True) for c, _ in pairs]
        candidates = zip(pairs, scores, signals, strict=True)
        choices = ((pair, pair[1], signal, score.mean_square) for pair, score, signal in candidates)
        c, radius = least_variance(sizes, rho, choices)
        return replace(self, c=c, radius=radius)

    def family(self, ground: FitGround[Start]) -> FittedFamily:
        """The family with these constants, and with what public rows tell."""
        intercept = ground.coding.design.intercept
        return FittedFamily(
            self.law,
            self.c,
            ground.response,
            intercept,
            ground.spread,
            likelihood=self.whole,
            distances=ground.distances,
        )

    def signal(self, ground: FitGround[Start]) -> Signal:
        """The family's bounds and expected curvature at c."""
        intercept = ground.coding.design.intercept
        signal = self.law.signal(self.c, ground.response, intercept=intercept)
        return replace(signal, whole=self.whole, bent=self.whole)

    def notes(self, ground: FitGround[Start]) -> list[str]:  # noqa: ARG002
        """None."""
        return []

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:  # noqa: ARG002
        """The fit itself."""
        return fit

    def described(
        self,
        ground: FitGround[Start],
        fit: StandardFit,
        radius_squared: float,
        result: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The fields of a reply that only generalised linear models have."""
        slopes = np.linalg.solve(fit.transform.T, fit.theta)[int(ground.coding.design.intercept) :]
        verdict = trust.separated(float(np.linalg.norm(slopes)))
        return {
            "family": self.law.name,
            **verdict.applied(result),
            "scale": fit.scale,
            "estimand": self.estimand(ground, radius_squared),
            **({"dispersion": self.dispersion} if self.law.dispersed else {}),
            "link": self.law.link,
            "variance_power": self.law.variance_power,
        }

    def estimand(self, ground: FitGround[Start], radius_squared: float) -> str:
        """The target in words; with `weighting` of the reply it can be computed on any table."""
        if self.whole:
            return f"{self.law.name} regression with the {self.law.link} link: {LIKELIHOOD}"
        score = self.law.score(self.c, ground.response.scale, ground.response)
        residuals = self.law.residuals(ground.response)
        row = "m(eta)Ax" if score.varies else "Ax"
        text = (
            f"{self.law.name} quasi-likelihood with the {self.law.link} link{self.law.cut(self.c)}"
            f"{'' if residuals is None else f', scale {residuals.words}'}; weights "
            f"min(1, {radius_squared:g}/|{row}|^2) with the matrix A of `weighting`"
        )
        if score.varies:
            text += (
                ", m the square root of a record's information relative to that at eta = "
                f"{score.start:.6g}"
            )
        return text + (
            "; constants planned for the smallest error at this epsilon" if self.planned else ""
        )


def plan_glm(facts: DatasetFacts, design: Design, query: Glm, rho: int) -> GlmPlan:
    """Plans a model at `rho` (RHO_UNITS) from public facts alone.

    Raises InvalidQuery without terms, or with a response whose bounds the family cannot have.
    """
    model = asked_model(query)
    if model.whole and facts.schema.unit.max_rows > 1:
        raise InvalidQuery(NO_PERSONS)
    return plan_fit(facts, design, model, query.confidence_level, rho)


def asked_model(query: Glm) -> GlmModel:
    """The model that a query asks for. InvalidQuery for constants that it cannot have."""
    law = family_of(query.family, query.link)
    if query.family not in FAMILIES:
        raise InvalidQuery("The gaussian family is a linear regression.")
    if law is None:
        raise InvalidQuery(NO_LINK)
    if law.uncut and query.tuning is not None:
        raise InvalidQuery("Residuals are not cut with this link; leave tuning out.")
    if (query.dispersion is not None) is not law.dispersed:
        raise InvalidQuery(DISPERSED_ONLY)
    whole = query.target == "likelihood"
    if whole and query.tuning is not None:
        raise InvalidQuery("Maximum likelihood has no tuning constant; leave tuning out.")
    if whole and law.likelihood(1.0, Start(0.0, 1.0, 1.0)) is None:
        raise InvalidQuery(NO_RISK)
    planned = isinstance(query.tuning, str)
    tuning = query.tuning if isinstance(query.tuning, float | int) else None
    default = (
        law.clustered_tuning or law.tuning if whole and query.cluster is not None else law.tuning
    )
    model = GlmModel(law, tuning or default, law.radius, query.dispersion, planned, whole)
    return replace(model, leaves_out=query.mechanism != "influence")


def checked_response(design: Design, law: GlmFamily) -> Term:
    """The response. Raises InvalidQuery where its declared bounds do not suit the family."""
    response = design.response
    if response is None or not design.names:
        raise InvalidQuery("A model needs a response and at least one term.")
    problem = law.problem(response)
    if problem is not None:
        raise InvalidQuery(problem)
    return response
