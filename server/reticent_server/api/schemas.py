"""Request bodies: strict models of the query kinds, and their domain values."""

from typing import Annotated, Literal

from pydantic import Field

from reticent_server.api.schemas_robust import Number, RobustBody
from reticent_server.api.strict import Name, Positive, Strict, Text
from reticent_server.domain.query import (
    Count,
    Family,
    Glm,
    HypothesisTest,
    LinearRegression,
    LocationScale,
    Mean,
    Privacy,
    SubsampleAggregateQuery,
)
from reticent_server.pipeline.ask import Ask

Tuning = Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False)]
TuningOrPlanned = Annotated[Tuning | Literal["planned"], Field(union_mode="left_to_right")]
Dispersion = Annotated[
    Annotated[float, Field(ge=0.001, le=100, allow_inf_nan=False)] | None,
    Field(description="α of the negative binomial, V = μ + αμ²; no other family has one."),
]
Level = Annotated[float, Field(ge=0.5, le=0.9999, allow_inf_nan=False)]


class CountBody(Strict):
    """Number of records for which `where` holds."""

    kind: Literal["count"]
    where: Text | None = Field(None, description='Such as `grade >= 7 and waterfront == "1"`.')

    def query(self) -> Count:
        return Count(where=self.where)


class MeanBody(Strict):
    """Mean of a bounded column over the records in use."""

    kind: Literal["mean"]
    column: Name
    where: Text | None = None

    def query(self) -> Mean:
        return Mean(column=self.column, where=self.where)


class LinearRegressionBody(Strict):
    """Huber–Mallows linear regression by noisy Newton steps, gradient descent, or influence.

    With `influence` No Reply is possible.
    """

    kind: Literal["linear_regression"]
    formula: Text = Field(description="Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.")
    where: Text | None = None
    loss: Literal["huber", "squared", "tukey"] = Field(
        "huber",
        description="squared: least squares with a large public truncation. tukey: the biweight, started from a "
        "private Huber fit; newton only.",
    )
    tuning: TuningOrPlanned | None = Field(
        None,
        description="The loss's c; null: 1.345 (squared: 4, tukey: 4.685). planned: chosen for the smallest error at "
        "this ε, which moves what is estimated with it (huber and newton only).",
    )
    ridge: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None,
        description="λ of the penalty λ/2 times the sum of squared slopes in the units of the data.",
    )
    mechanism: Literal["newton", "gradient_descent", "influence"] = "newton"
    calibration: Literal["ptr", "asymptotic"] | None = Field(
        None,
        description="Of the influence mechanism; null: ptr. asymptotic: a conditional guarantee.",
    )
    confidence_level: Level = 0.95

    def query(self) -> LinearRegression:
        return LinearRegression(
            formula=self.formula,
            where=self.where,
            loss=self.loss,
            tuning=self.tuning,
            ridge=self.ridge,
            mechanism=self.mechanism,
            calibration=self.calibration,
            confidence_level=self.confidence_level,
        )


class GlmBody(Strict):
    """Robust generalised linear model by noisy Newton steps, or the binomial by influence."""

    kind: Literal["glm"]
    formula: Text = Field(description="Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.")
    family: Family
    where: Text | None = None
    tuning: TuningOrPlanned | None = Field(
        None,
        description="Where Pearson residuals are cut; null: the family's default (binomial: not at all). planned: "
        "chosen for the smallest error at this ε, which moves what is estimated with it.",
    )
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Literal["ptr", "asymptotic"] | None = Field(
        None,
        description="Of the influence mechanism; null: ptr. asymptotic: a conditional guarantee.",
    )
    confidence_level: Level = 0.95
    dispersion: Dispersion = None

    def query(self) -> Glm:
        return Glm(
            formula=self.formula,
            family=self.family,
            where=self.where,
            tuning=self.tuning,
            mechanism=self.mechanism,
            calibration=self.calibration,
            confidence_level=self.confidence_level,
            dispersion=self.dispersion,
        )


class LocationScaleBody(Strict):
    """Location and scale of a column by Huber's Proposal 2."""

    kind: Literal["location_scale"]
    column: Name
    where: Text | None = None
    tuning: Tuning | Literal["planned"] | None = Field(
        None,
        description="Huber's c; null: 1.5. planned: the smallest error at this epsilon, which moves "
        "the estimand with it; newton only.",
    )
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Literal["asymptotic"] | None = Field(
        None, description="Of the influence mechanism, which needs it: a conditional guarantee."
    )
    confidence_level: Level = 0.95

    def query(self) -> LocationScale:
        return LocationScale(
            column=self.column,
            where=self.where,
            tuning=self.tuning,
            mechanism=self.mechanism,
            calibration=self.calibration,
            confidence_level=self.confidence_level,
        )


class HypothesisTestBody(Strict):
    """Test of linear hypotheses about a model's coefficients, the privacy noise being counted."""

    kind: Literal["hypothesis_test"]
    formula: Text = Field(description="Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.")
    test: Literal["wald", "score", "lr"] = "wald"
    hypothesis: list[Text] | None = Field(
        None,
        max_length=64,
        description='Such as `["x1 = 0", "x2 = x3"]`; null: a table of the terms.',
    )
    family: Family | None = Field(
        None, description="Of a generalised linear model; null: the linear regression."
    )
    where: Text | None = None
    tuning: Tuning | None = None
    mechanism: Literal["newton"] = "newton"
    confidence_level: Level = 0.95
    dispersion: Dispersion = None

    def query(self) -> HypothesisTest:
        return HypothesisTest(
            formula=self.formula,
            test=self.test,
            hypothesis=None if self.hypothesis is None else tuple(self.hypothesis),
            family=self.family,
            where=self.where,
            tuning=self.tuning,
            mechanism=self.mechanism,
            confidence_level=self.confidence_level,
            dispersion=self.dispersion,
        )


class SubsampleAggregateBody(Strict):
    """A model fitted to secret random blocks of the records, and its estimates averaged."""

    kind: Literal["subsample_aggregate"]
    model: Annotated[
        LinearRegressionBody | GlmBody | LocationScaleBody,
        Field(discriminator="kind", description="What is fitted to a block; no mechanism."),
    ]
    blocks: int | None = Field(None, ge=2, le=65_536, description="null means planned.")
    parameter_bounds: list[list[Number]] | None = Field(
        None,
        max_length=256,
        description="[lower, upper] of each estimate; null: from public facts.",
    )
    bias_correction: bool = Field(True, description="Of a block's estimate, where there is one.")
    confidence_level: Level = 0.95

    def query(self) -> SubsampleAggregateQuery:
        given = self.parameter_bounds
        return SubsampleAggregateQuery(
            model=self.model.query(),
            blocks=self.blocks,
            parameter_bounds=None if given is None else tuple(map(tuple, given)),
            bias_correction=self.bias_correction,
            confidence_level=self.confidence_level,
        )


QueryBody = Annotated[
    CountBody
    | MeanBody
    | LinearRegressionBody
    | GlmBody
    | LocationScaleBody
    | HypothesisTestBody
    | SubsampleAggregateBody
    | RobustBody,
    Field(discriminator="kind", description="What is asked."),
]


class PrivacyBody(Strict):
    """What the release may cost; delta null: the policy's default, and where an account is charged
    for delta at most a tenth of the account's, so that ten such requests fit."""

    epsilon: Positive
    delta: Positive | None = None


class RequestBody(Strict):
    """A question about a data set, for POST /v1/plans and /v1/releases."""

    dataset: Name
    query: QueryBody
    privacy: PrivacyBody
    project: Name | None = Field(
        None,
        description="The name of the project that pays; null: your own budget, or the only project "
        "of yours that has the data set.",
    )

    def ask(self, idempotency_key: str | None = None) -> Ask:
        """The request as the pipeline takes it."""
        privacy = Privacy(epsilon=self.privacy.epsilon, delta=self.privacy.delta)
        return Ask(self.dataset, self.query.query(), privacy, idempotency_key, self.project)
