# SPDX-License-Identifier: Apache-2.0
"""The loss of a regression: which score, how far it is cut, how much a record's place may weigh.

Defaults come from the loss alone, so that what is estimated does not depend on ε, n or a profile:

    huber     c = 1.345 (95 % efficient at normal errors), R² = 2q
    squared   c = 4, R² = 4q: least squares with a public truncation of residuals and of leverage
    tukey     c = 4.685 (95 % efficient), R² = 2q, started from Huber's fit

`tuning="planned"` takes of a public menu what is forecast to have the smallest error: it moves the
estimand with ε and n, and says so.
"""

from dataclasses import dataclass

from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.huber import (
    LinearFamily,
    MedianResidual,
    SquareResidual,
    WeightedMedianResidual,
)
from reticent_server.fitting.trust import SOUND, TrustVerdict
from reticent_server.fitting.tuning import least_variance
from reticent_server.kinds.shared.answers import (
    BIWEIGHT,
    LEAST_SQUARES,
    ROBUST,
    cut_least_squares,
)
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.biweight import EFFICIENT_95, Biweight
from reticent_server.numerics.psi import Huber

# c: 95 % efficient at the normal law (Huber 1964); R²/q: weights below 1 for few rows of a normal
# design
DEFAULT_HUBER, DEFAULT_RADIUS = 1.345, 2.0
# c = 4 and R²/q = 4 change few of a normal table's records: nearly least squares, and more noise
SQUARED_TUNING, SQUARED_RADIUS = 4.0, 4.0
WHOLE_TARGET = (
    "least-squares coefficients of all records in use; the scores of the few records with the "
    "largest ones are cut, and "
    "intervals allow for it"
)
LEAST_BIWEIGHT = 2.0  # below it the biweight's equation has many solutions near the Huber fit
_MENU = ((0.6, 0.8), (0.6, 1.0), (1.0, 1.0), (1.0, 2.0), (1.345, 2.0), (1.345, 4.0))  # (c, R²/q)


@dataclass(frozen=True, slots=True)
class ResidualLoss:
    """start: Huber's ψ. biweight: the ψ of the last steps, or None. radius: R²/q. name: as asked
    for. planned: whether the constants were chosen for the smallest error. weighted: whether
    records count by their weights. whole: whether the last scores are cut as a whole, at a rank;
    `start` and `radius` are then those of the early steps.
    """

    name: str
    start: Huber
    biweight: Biweight | None
    radius: float
    planned: bool
    weighted: bool = False
    whole: bool = False

    @property
    def c(self) -> float:
        """The tuning constant of what is estimated."""
        return (self.biweight or self.start).c

    @property
    def answers(self) -> str:
        """The reply's first line."""
        if self.whole:
            return LEAST_SQUARES
        if self.name == "squared":
            return cut_least_squares(self.c)
        return ROBUST if self.biweight is None else BIWEIGHT

    def residuals(
        self, tie: float
    ) -> MedianResidual | WeightedMedianResidual | SquareResidual | None:
        """How the residual scale is measured where so many responses are equal."""
        if trust.without_scale(tie):
            return None
        if trust.tied(tie) or self.name == "squared":
            return SquareResidual()
        return WeightedMedianResidual() if self.weighted else MedianResidual()

    def verdict(self, tie: float) -> TrustVerdict:
        """The verdict on so tied a response: what a robust fit means depends on a scale that the
        residuals may not have."""
        return SOUND if self.name == "squared" else trust.robust(tie)

    def family(self, spread: float, tie: float, distances: FloatArray | None) -> LinearFamily:
        """The family of a fit from a residual scale `spread`. distances: as of WholeScore."""
        return LinearFamily(self.start, self.biweight, spread, self.residuals(tie), distances)

    def signal(self, tie: float) -> Signal:
        """What the score is at a settled fit."""
        psi = self.biweight or self.start
        return Signal(
            psi.bound,
            psi.mean_derivative,
            self.residuals(tie) is not None,
            centred=True,
            signed=self.biweight is not None,
            whole=self.whole,
        )

    def estimand(self, radius_squared: float, tie: float) -> str:
        """The target in words; with `weighting` of the reply it can be computed on any table."""
        names = {
            "huber": "Mallows-Huber regression coefficients",
            "squared": "Least squares with residuals and leverage truncated",
            "tukey": "Mallows-Tukey (biweight) regression coefficients",
        }
        if self.whole:
            return WHOLE_TARGET
        measured = self.residuals(tie)
        scale = "the response's public one" if measured is None else measured.words
        text = (
            f"{names[self.name]}, tuning constant {self.c:g}, residual scale {scale}; weights "
            f"min(1, {radius_squared:g}/|Ax|^2) with the matrix A of `weighting`"
        )
        if self.biweight is not None:
            text += (
                f"; the solution reached from the Huber fit with tuning constant {self.start.c:g}"
            )
        return text + (
            "; constants planned for the smallest error at this epsilon" if self.planned else ""
        )


def plain_loss() -> ResidualLoss:
    """Least squares of the whole table (fitting.whole_newton), led to by Huber's score."""
    return ResidualLoss(
        "squared", Huber(DEFAULT_HUBER), None, DEFAULT_RADIUS, planned=False, whole=True
    )


def asked_loss(query: LinearRegression) -> ResidualLoss:
    """The loss that a query asks for. InvalidQuery for constants that it cannot have.

    With tuning="planned" the constants are the defaults until sizes are known (planned_loss).
    """
    tuning = query.tuning
    if isinstance(tuning, str):
        if query.loss != "huber":
            raise InvalidQuery(
                'tuning="planned" is for loss="huber"; leave it out or give a number.'
            )
        return ResidualLoss("huber", Huber(DEFAULT_HUBER), None, DEFAULT_RADIUS, planned=True)
    match query.loss:
        case "tukey":
            if tuning is not None and tuning < LEAST_BIWEIGHT:
                raise InvalidQuery(
                    f"The biweight's tuning constant is at least {LEAST_BIWEIGHT:g}."
                )
            biweight = Biweight(tuning or EFFICIENT_95)
            return ResidualLoss(
                "tukey", Huber(DEFAULT_HUBER), biweight, DEFAULT_RADIUS, planned=False
            )
        case "squared":
            return ResidualLoss(
                "squared", Huber(tuning or SQUARED_TUNING), None, SQUARED_RADIUS, planned=False
            )
        case _:
            return ResidualLoss(
                "huber", Huber(tuning or DEFAULT_HUBER), None, DEFAULT_RADIUS, planned=False
            )


def planned_loss(sizes: Sizes, rho: int) -> ResidualLoss:
    """Huber's loss with the constants of the smallest error."""

    def signal(psi: Huber) -> Signal:
        return Signal(psi.bound, psi.mean_derivative, scaled=True, centred=True)

    laws = (((c, radius), Huber(c)) for c, radius in _MENU)
    choices = (
        (pair, pair[1], signal(psi), psi.mean_square / psi.mean_derivative) for pair, psi in laws
    )
    c, radius = least_variance(sizes, rho, choices)
    return ResidualLoss("huber", Huber(c), None, radius, planned=True)
