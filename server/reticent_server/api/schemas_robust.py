"""Request bodies of tables, sums, quantiles, robust statistics of columns, and the depth median."""

from typing import Annotated, Literal

from pydantic import Field

from reticent_server.api.strict import Name, Positive, Strict, Text
from reticent_server.domain.query import (
    Crosstab,
    DepthMedian,
    Histogram,
    Iqr,
    Median,
    MEstimateQuery,
    Quantiles,
    Sum,
)

Number = Annotated[float, Field(allow_inf_nan=False)]
MAX_EDGES = 1001


class SumBody(Strict):
    """Sum of a bounded column over the records in use."""

    kind: Literal["sum"]
    column: Name
    where: Text | None = None

    def query(self) -> Sum:
        return Sum(column=self.column, where=self.where)


class HistogramBody(Strict):
    """Numbers of records by bin or level."""

    kind: Literal["histogram"]
    column: Name
    bins: list[Number] | None = Field(
        None, min_length=2, max_length=MAX_EDGES, description="Edges; null: levels, whole numbers."
    )
    where: Text | None = None

    def query(self) -> Histogram:
        bins = None if self.bins is None else tuple(self.bins)
        return Histogram(column=self.column, bins=bins, where=self.where)


class CrosstabBody(Strict):
    """Numbers of records by the values of two or more columns; two also carry a test."""

    kind: Literal["crosstab"]
    columns: list[Name] = Field(min_length=2, max_length=6)
    where: Text | None = None

    def query(self) -> Crosstab:
        return Crosstab(columns=tuple(self.columns), where=self.where)


class QuantilesBody(Strict):
    """Quantiles of a column over the records in use."""

    kind: Literal["quantiles"]
    column: Name
    probabilities: list[Number] = Field([0.25, 0.5, 0.75], min_length=1, max_length=99)
    where: Text | None = None

    def query(self) -> Quantiles:
        return Quantiles(self.column, tuple(self.probabilities), self.where)


class IqrBody(Strict):
    """Interquartile range of a column; with `ptr` No Reply is possible."""

    kind: Literal["iqr"]
    column: Name
    mechanism: Literal["quantiles", "ptr"] = "quantiles"
    where: Text | None = Field(None, description="For quantiles only.")

    def query(self) -> Iqr:
        return Iqr(column=self.column, mechanism=self.mechanism, where=self.where)


class MedianBody(Strict):
    """Median of a column; with `ptr` No Reply is possible."""

    kind: Literal["median"]
    column: Name
    mechanism: Literal["exponential", "smooth_sensitivity", "ptr"] = "exponential"
    where: Text | None = Field(None, description="For the exponential mechanism only.")

    def query(self) -> Median:
        return Median(column=self.column, mechanism=self.mechanism, where=self.where)


class MEstimateBody(Strict):
    """Huber's location by the exponential mechanism."""

    kind: Literal["m_estimate"]
    column: Name
    psi: Literal["huber"] = "huber"
    tuning: Positive | None = Field(
        None, description="c, in the units of the column; null: from the profile."
    )
    base: Literal["uniform", "cauchy"] = "uniform"
    lower: Number | None = Field(None, description="Of the uniform base; the Cauchy's quartile.")
    upper: Number | None = None

    def query(self) -> MEstimateQuery:
        return MEstimateQuery(
            column=self.column,
            psi=self.psi,
            tuning=self.tuning,
            base=self.base,
            lower=self.lower,
            upper=self.upper,
        )


class DepthMedianBody(Strict):
    """Projection-depth median of up to 8 columns; No Reply is possible."""

    kind: Literal["depth_median"]
    columns: list[Name] = Field(min_length=1, max_length=8)
    scale: Literal["iqr", "mad", "trimmed"] = "trimmed"
    eta: Positive | Literal["private"] | None = Field(
        None, description="Sharpness of the draw; null: planned; private: chosen from a grid."
    )
    directions: int | None = Field(None, ge=2, le=1000)

    def query(self) -> DepthMedian:
        return DepthMedian(
            columns=tuple(self.columns),
            scale=self.scale,
            eta=self.eta,
            directions=self.directions,
        )


RobustBody = (
    SumBody
    | HistogramBody
    | CrosstabBody
    | QuantilesBody
    | IqrBody
    | MedianBody
    | MEstimateBody
    | DepthMedianBody
)
