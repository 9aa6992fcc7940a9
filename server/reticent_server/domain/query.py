"""The query kinds, as frozen values; validated at the HTTP edge, stored as JSON."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

Family = Literal["binomial", "poisson", "gamma", "gaussian", "negative_binomial"]


@dataclass(frozen=True, slots=True)
class Privacy:
    """What the analyst offers; delta None means the policy's default."""

    epsilon: float
    delta: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """Number of records for which `where` holds."""

    kind: ClassVar[str] = "count"
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean of a bounded column over the records in use."""

    kind: ClassVar[str] = "mean"
    column: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """Huber–Mallows regression. calibration: of influence; None: ptr.

    loss: "tukey" is the biweight, from a private Huber fit, "squared" least squares with a large public
    truncation; newton only. tuning None: the loss's default; "planned": chosen for the smallest error at this
    ε, which moves the estimand with it. ridge: λ of the penalty λ/2 times the sum of squared slopes in the units of the data; newton only.
    """

    kind: ClassVar[str] = "linear_regression"
    formula: str
    where: str | None = None
    loss: Literal["huber", "squared", "tukey"] = "huber"
    tuning: float | Literal["planned"] | None = None
    ridge: float | None = None
    mechanism: Literal["newton", "gradient_descent", "influence"] = "newton"
    calibration: Literal["ptr", "asymptotic"] | None = None
    confidence_level: float = 0.95


@dataclass(frozen=True, slots=True)
class Glm:
    """Robust generalised linear model. tuning None: the family's default (binomial: ∞); "planned": chosen
    for the smallest error at this ε, which moves the estimand with it.

    dispersion: α of the negative binomial, V = μ + αμ², which no other family has.
    calibration: of influence; None: ptr.
    """

    kind: ClassVar[str] = "glm"
    formula: str
    family: Family
    where: str | None = None
    tuning: float | Literal["planned"] | None = None
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Literal["ptr", "asymptotic"] | None = None
    confidence_level: float = 0.95
    dispersion: float | None = None


@dataclass(frozen=True, slots=True)
class LocationScale:
    """Location and scale of a column by Huber's Proposal 2. tuning None: 1.5; "planned": chosen for the smallest
    error at this ε, which moves the estimand with it; newton only.

    calibration: of influence, which has no other.
    """

    kind: ClassVar[str] = "location_scale"
    column: str
    where: str | None = None
    tuning: float | Literal["planned"] | None = None
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Literal["asymptotic"] | None = None
    confidence_level: float = 0.95


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """Test of linear hypotheses about a model's coefficients.

    family: of the model; None: the linear regression. hypothesis: one text for each row of Rβ = r;
    None: a table of the model's terms (not for score tests). dispersion: as of Glm.
    """

    kind: ClassVar[str] = "hypothesis_test"
    formula: str
    test: Literal["wald", "score", "lr"] = "wald"
    hypothesis: tuple[str, ...] | None = None
    family: Family | None = None
    where: str | None = None
    tuning: float | None = None
    mechanism: Literal["newton"] = "newton"
    confidence_level: float = 0.95
    dispersion: float | None = None

    def __post_init__(self) -> None:
        _as_tuple(self, "hypothesis")


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of a bounded column over the records in use."""

    kind: ClassVar[str] = "sum"
    column: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of records by bin of public edges; bins None: by level or whole number."""

    kind: ClassVar[str] = "histogram"
    column: str
    bins: tuple[float, ...] | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        _as_tuple(self, "bins")


@dataclass(frozen=True, slots=True)
class Crosstab:
    """Numbers of records by the values of two or more columns."""

    kind: ClassVar[str] = "crosstab"
    columns: tuple[str, ...]
    where: str | None = None

    def __post_init__(self) -> None:
        _as_tuple(self, "columns")


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a column over the records in use."""

    kind: ClassVar[str] = "quantiles"
    column: str
    probabilities: tuple[float, ...] = (0.25, 0.5, 0.75)
    where: str | None = None

    def __post_init__(self) -> None:
        _as_tuple(self, "probabilities")


@dataclass(frozen=True, slots=True)
class Iqr:
    """Interquartile range of a column: of its private quartiles, or by propose–test–release.

    where: for quantiles only.
    """

    kind: ClassVar[str] = "iqr"
    column: str
    mechanism: Literal["quantiles", "ptr"] = "quantiles"
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Median:
    """Median of a column. where: for the exponential mechanism only."""

    kind: ClassVar[str] = "median"
    column: str
    mechanism: Literal["exponential", "smooth_sensitivity", "ptr"] = "exponential"
    where: str | None = None


@dataclass(frozen=True, slots=True)
class MEstimateQuery:
    """Huber's location of a column by the exponential mechanism.

    tuning: c, in the units of the column; None: from the profile. lower, upper: where a uniform base
    lies, or the quartiles of a Cauchy base; None: the declared bounds.
    """

    kind: ClassVar[str] = "m_estimate"
    column: str
    psi: Literal["huber"] = "huber"
    tuning: float | None = None
    base: Literal["uniform", "cauchy"] = "uniform"
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class DepthMedian:
    """Projection-depth median of up to 8 columns.

    scale: of the projections; "trimmed" also replaces their medians by trimmed means. eta None:
    planned; "private": chosen privately from a grid. directions None: 500.
    """

    kind: ClassVar[str] = "depth_median"
    columns: tuple[str, ...]
    scale: Literal["iqr", "mad", "trimmed"] = "trimmed"
    eta: float | Literal["private"] | None = None
    directions: int | None = None

    def __post_init__(self) -> None:
        _as_tuple(self, "columns")


BlockModelQuery = LinearRegression | Glm | LocationScale
_BLOCK_MODELS: dict[str, type[BlockModelQuery]] = {
    kind.kind: kind for kind in (LinearRegression, Glm, LocationScale)
}


@dataclass(frozen=True, slots=True)
class SubsampleAggregateQuery:
    """A model fitted to secret random blocks of the records, and its estimates averaged.

    blocks None: planned. parameter_bounds: [lower, upper] of each estimate, None: from public facts.
    bias_correction: of each block's estimate, where the model has one.
    """

    kind: ClassVar[str] = "subsample_aggregate"
    model: BlockModelQuery
    blocks: int | None = None
    parameter_bounds: tuple[tuple[float, ...], ...] | None = None
    bias_correction: bool = True
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if self.parameter_bounds is not None:
            pairs = tuple(tuple(pair) for pair in self.parameter_bounds)
            object.__setattr__(self, "parameter_bounds", pairs)
        if isinstance(self.model, dict):  # as it is stored
            fields = dict(self.model)
            object.__setattr__(self, "model", _BLOCK_MODELS[fields.pop("kind")](**fields))


@dataclass(frozen=True, slots=True)
class ProfileQuery:
    """The data set's profile; asked by the curator only."""

    kind: ClassVar[str] = "profile"


Query = (
    Count
    | Mean
    | LinearRegression
    | Glm
    | LocationScale
    | HypothesisTest
    | Sum
    | Histogram
    | Crosstab
    | Quantiles
    | Iqr
    | Median
    | MEstimateQuery
    | DepthMedian
    | SubsampleAggregateQuery
    | ProfileQuery
)


def _as_tuple(query: object, field: str) -> None:
    """A field that came as a JSON list, as the tuple that a frozen value has."""
    value = getattr(query, field)
    if value is not None:
        object.__setattr__(query, field, tuple(value))


def query_json(query: Query) -> dict[str, Any]:
    """The query as it is stored and replied: its kind and its fields that are not None."""
    fields = {k: v for k, v in asdict(query).items() if v is not None}
    if isinstance(query, SubsampleAggregateQuery):
        fields["model"] = query_json(query.model)
    return {"kind": query.kind} | fields
