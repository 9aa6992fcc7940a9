# SPDX-License-Identifier: Apache-2.0
"""The question of a generalised linear model."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le
from pydantic import AllowInfNan, Field, Strict

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import (
    By,
    Cluster,
    Flag,
    Formula,
    Level,
    Name,
    PlannedTuning,
    Strata,
    Weights,
    Where,
)
from reticent_server.kinds.glm.categories.laws import LAWS
from reticent_server.kinds.glm.families import FAMILIES, LINKS

GAUSSIAN = "gaussian"
"""A Gaussian response is a linear regression with Huber's score."""
if TYPE_CHECKING:
    Family = str
    AnyFamily = str
    Link = str
else:
    Family = Literal[(*FAMILIES, GAUSSIAN)]
    AnyFamily = Literal[(*FAMILIES, GAUSSIAN, *LAWS)]
    Link = Literal[LINKS]
Dispersion = Annotated[
    Annotated[float, Strict(), Ge(0.001), Le(100), AllowInfNan(False)] | None,
    Field(
        description=(
            "α of the negative binomial, V = μ + αμ²; null: estimated with the coefficients. No "
            "other family has one."
        )
    ),
]


@dataclass(frozen=True, slots=True)
class Glm(Query):
    """Robust generalised linear model by noisy Newton steps, or the binomial by influence."""

    formula: Formula
    family: Annotated[
        AnyFamily,
        Field(
            description="Of the response: 0/1 (binomial), counts (poisson, negative_binomial), "
            "positive (gamma), any number (gaussian), or one of several levels, without order "
            "(multinomial) or in the order of the schema (ordinal)."
        ),
    ]
    where: Where = None
    tuning: Annotated[
        PlannedTuning | None,
        Field(
            description="Where Pearson residuals are cut; null: the family's default (binomial: "
            "not at all). planned: chosen for the smallest error at this ε, which moves what is "
            "estimated with it."
        ),
    ] = None
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Annotated[
        Literal["ptr", "asymptotic"] | None,
        Field(
            description=(
                "Of the influence mechanism; null: ptr. asymptotic: a conditional guarantee."
            )
        ),
    ] = None
    confidence_level: Level = 0.95
    dispersion: Dispersion = None
    link: Annotated[
        Link | None,
        Field(
            description=(
                "Of the binomial: logit, probit, cloglog, or log for relative risks; null: the "
                "family's canonical one."
            )
        ),
    ] = None
    weights: Weights = None
    offset: Annotated[
        Name | None,
        Field(description="A numeric column that is added to the predictor, in the link's units."),
    ] = None
    exposure: Annotated[
        Name | None,
        Field(
            description=(
                "A column of time or persons at risk with a lower bound above 0, in the link "
                "log: exp(coefficient) is a ratio of rates."
            )
        ),
    ] = None
    by: By = None
    fit_statistics: Annotated[
        Flag,
        Field(
            description=(
                "Also R² and the residual standard deviation, for a tenth of the budget; "
                "binomial with the logit link or gaussian, newton, without by or tuning, only."
            )
        ),
    ] = False
    target: Annotated[
        Literal["robust", "likelihood"],
        Field(
            description="likelihood: what maximum likelihood estimates on all records; the few "
            "largest scores are cut, and intervals allow for it (newton; one row a person; not "
            "with by or the binomial's log link). robust: residuals and leverage are bounded, "
            "which moves what is estimated."
        ),
    ] = "robust"
    cluster: Cluster = None
    strata: Strata = None
    kind: Literal["glm"] = field(default="glm", kw_only=True)

    def other_target(self) -> "Glm | None":
        """Maximum likelihood beside a robust fit, and the reverse; the constants of one are not the
        other's.
        """
        if self.mechanism != "newton":
            return None
        target: Literal["robust", "likelihood"] = (
            "likelihood" if self.target == "robust" else "robust"
        )
        return replace(self, target=target, tuning=None)
