# SPDX-License-Identifier: Apache-2.0
"""The question of a linear regression."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AllowInfNan, Field, Strict

from reticent_server.domain.query import OfPersons, Query
from reticent_server.kinds.fields import (
    By,
    Cluster,
    Flag,
    Formula,
    Level,
    PlannedTuning,
    Strata,
    Weights,
    Where,
)

MOST_ALIKE = 0.95  # rows that are more alike than that say what their means and deviations say

Ridge = Annotated[float, Strict(), Gt(0), Le(1e6), AllowInfNan(False)]


Effects = Annotated[
    Literal["person"],
    OfPersons(),
    Field(
        description="person: an intercept of every person, of a data set with several rows a "
        "person (the within estimator; newton only). Terms that are the same in all rows of a "
        "person are not identifiable then."
    ),
]

WorkingCorrelation = Annotated[
    Annotated[float, Strict(), Ge(0), Le(MOST_ALIKE), AllowInfNan(False)],
    OfPersons(),
    Field(
        description="Of any two rows of a person, of a data set with several rows a person: "
        "generalised least squares with exchangeable rows (GEE; a random intercept with this "
        "intraclass correlation; newton only). Errors by person hold whatever the rows have in "
        "common."
    ),
]


@dataclass(frozen=True, slots=True)
class LinearRegression(Query):
    """Huber–Mallows linear regression by noisy Newton steps, gradient descent, or influence.

    With `influence` No Reply is possible.
    """

    formula: Formula
    where: Where = None
    loss: Annotated[
        Literal["huber", "squared", "tukey"],
        Field(
            description="squared: least squares of all records; the few largest scores are cut, "
            "and intervals allow for it. tukey: the biweight, started from a private Huber fit; "
            "newton only."
        ),
    ] = "huber"
    tuning: Annotated[
        PlannedTuning | None,
        Field(
            description="The loss's c; null: 1.345 (tukey: 4.685; squared: none, or 4 of several "
            "rows a person). planned: chosen for the smallest error at this ε, which moves what "
            "is estimated with it (huber and newton only)."
        ),
    ] = None
    ridge: Annotated[
        Ridge | None,
        Field(
            description=(
                "λ of the penalty λ/2 times the sum of squared slopes in the units of the data; "
                "newton only."
            )
        ),
    ] = None
    mechanism: Literal["newton", "gradient_descent", "influence"] = "newton"
    calibration: Annotated[
        Literal["ptr", "asymptotic"] | None,
        Field(
            description=(
                "Of the influence mechanism; null: ptr. asymptotic: a conditional guarantee."
            )
        ),
    ] = None
    confidence_level: Level = 0.95
    weights: Weights = None
    effects: Effects | None = None
    by: By = None
    fit_statistics: Annotated[
        Flag,
        Field(
            description=(
                "Also R² and the residual standard deviation, for a tenth of the budget; newton, "
                "without by, only."
            )
        ),
    ] = False
    working_correlation: WorkingCorrelation | None = None
    cluster: Cluster = None
    strata: Strata = None
    kind: Literal["linear_regression"] = field(default="linear_regression", kw_only=True)

    def other_target(self) -> "LinearRegression | None":
        """Least squares beside a robust fit, and Huber's beside least squares: the constants of one
        are not the other's.
        """
        if self.mechanism != "newton":
            return None
        return replace(self, loss="huber" if self.loss == "squared" else "squared", tuning=None)
