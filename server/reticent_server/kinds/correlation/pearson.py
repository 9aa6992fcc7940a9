# SPDX-License-Identifier: Apache-2.0
"""Pearson's correlation of the whole columns.

1. Two rounds of moments of the pair, cut at three public spreads, give coordinates in which the
   columns are about white (kinds.correlation.frame): noise is then small beside 1 − r², as sampling
   errors are.
2. Noisy counts of the squared lengths ‖w‖² there, from which come a length C beyond which few
   records lie, and what drawing these in to C takes from the second moments, E = Σ(‖w‖² − C²)₊
   (fitting.row_tail).
3. The moments of records drawn in to C: number, sums, products.
4. With ψ = wᵀGw the influence of a record on r, the sum of ψ².

Privacy: each part is a sum of bounded functions of one record and of what was released; their ρ add
up. Proof: mechanisms.noisy_sum, running_counts.

With Σ the covariance of the columns, Σ = BVBᵀ, B = W⁻¹, V of w: dr = tr(G dV), G = BᵀHB with
H_xy = 1/(2√(Σ_xxΣ_yy)) and H_xx = −r/(2Σ_xx). So, s the noise of an entry of the diagonal,

    var r = mean ψ²/N + (s²‖G‖² + 2s²‖Gμ‖²/a²)/N² + (leaning · ‖G‖₂ E/N)²

The last is the allowance: what is drawn in moves r by ‖G‖₂ E/N at most, ‖G‖₂ the largest absolute
eigenvalue, where all of it is along one direction of the two that move r most, and by `leaning` of
that as a rule. It is added as a noise of that size, and where the tail is too heavy for it
(trust.squares_told, thresholds.CUT_ALLOWANCE) nothing is claimed: the interval is −1 to 1,
and a sentence says why.

The interval has every r₀ with |r − r₀| ≤ z √(var r) (1 − r₀²)/(1 − r²), as errors of a correlation
go with 1 − r²; the test is of r₀ = 0.

Source: Fisher (1921); Hampel (1974), The influence curve; Armstrong & Kolesár (2018).
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting import trust
from reticent_server.fitting.budget import allocate
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.results import Interval
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut
from reticent_server.fitting.trust import words
from reticent_server.fitting.trust.thresholds import VARIES
from reticent_server.kinds.correlation.frame import (
    InfluenceSquaresMap,
    PairFrame,
    PairLengthsMap,
    WhitePairMap,
)
from reticent_server.kinds.correlation.result import CorrelationQuestion, CorrelationResult
from reticent_server.kinds.shared.named_tests import normal_p_value
from reticent_server.kinds.shared.ranges import clip_range, skewness, spread
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.matrices import floored

ROUNDS = (0.05, 0.07)  # shares of ρ: noise of a tenth of a variance, which whitening bears
LENGTHS, SQUARES = 0.10, 0.06  # of ρ; the rest is for the moments
REACH = 3.0  # spreads at which rounds are cut: 1 % of a normal pair lies beyond
A = 0.5  # of C: number and sums enter by means alone, which are near 0
RANK = 4.0  # records beyond C, in standard deviations of the noise of r, which is a number of cuts
LEANING = 0.2  # of ‖G‖₂ E: on 13 pairs of real tables it was 0 to .2
TYPICAL = 3.7  # C of a plan where noise hides the pair: 1 of 1,000 normal pairs is farther
_CLEAR = 30.0
"""Records over half of those beyond C, from which a plan takes C as of normal pairs: forecasts are
then .85 to 1.1 of the released noise (n = 500 to 20,000, epsilon .5 to 4), below .6 to
.8 with TYPICAL."""
_UNIT = 2.0  # the mean of ‖w‖² of white pairs
_NORMAL_SQUARES = 8.0  # the mean of ‖w‖⁴ of normal ones
_FLOOR = 2.0  # noise of an eigenvalue that a whitening counts at least
_SQUARES_SD = 0.5  # relative error of what lengths alone say of mean ψ²
_LEAST = 1e-9  # of a variance that noise hides
_MOST = 1 - 1e-6  # of |r|: its interval then still has an inside
ESTIMAND = "Pearson's correlation"


@dataclass(frozen=True, slots=True, eq=False)
class PairMoments:
    """Released: N, mean (2,) and covariance (2, 2) of w; s: the noise of an entry of the diagonal
    of the sums, a: the weight of a record's 1.
    """

    N: float
    mean: FloatArray
    covariance: FloatArray
    s: float
    a: float

    @classmethod
    def of(cls, released: Released, a: float, reach: float, n: int | None) -> "PairMoments":
        """From the sums of a WhitePairMap; n: the number of records where that is public."""
        S = released.values
        N = max(float(S[0, 0]) / a**2 if n is None else float(n), 1.0)
        mean = np.clip(S[0, 1:] / a / N, -reach, reach)
        return cls(N, mean, S[1:, 1:] / N - np.outer(mean, mean), released.sd, a)


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimate:
    """r with its influence G (2, 2)."""

    r: float
    G: FloatArray
    moments: PairMoments

    @classmethod
    def of(cls, frame: PairFrame, moments: PairMoments) -> "PairEstimate":
        """From released moments: r by the covariance in the data's units, floored by its noise."""
        V = floored(moments.covariance, max(moments.s / moments.N, _LEAST))
        B = np.linalg.inv(frame.W)
        S = B @ V @ B.T
        scale = sqrt(S[0, 0] * S[1, 1])
        r = float(np.clip(S[0, 1] / scale, -_MOST, _MOST))
        H = np.array([[-r / S[0, 0], 1 / scale], [1 / scale, -r / S[1, 1]]]) / 2
        return cls(r, B.T @ H @ B, moments)

    @property
    def most(self) -> float:
        """‖G‖₂."""
        return float(np.abs(np.linalg.eigvalsh(self.G)).max())

    @property
    def noise(self) -> float:
        """The variance of r's noise."""
        of_mean = 2 * float(np.sum((self.G @ self.moments.mean) ** 2)) / self.moments.a**2
        return self.moments.s**2 * (float(np.sum(self.G**2)) + of_mean) / self.moments.N**2

    def allowance(self, cut: RowCut) -> float:
        """What the cut of the largest scores may have moved r by. cut: the released one."""
        return LEANING * self.most * cut.excess / self.moments.N


@dataclass(frozen=True, slots=True)
class PearsonPlan(Planned):
    """A planned correlation. rhos: of the rounds, lengths, moments and squares (RHO_UNITS). skewed:
    whether a column is, or no profile says that it is not.
    """

    deadline_shares: ClassVar = (0.1, 0.2)

    frame: PairFrame
    rhos: tuple[int, ...]
    unit_rows: int
    asked: CorrelationQuestion
    n: int
    skewed: bool

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.frame.design.columns,
            rho=sum(self.rhos),
            mechanism="discrete Gaussian sums, cut at a released rank from the top",
            reference="Canonne, Kamath & Steinke (2020)",
            passes=5,
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of a correlation near 0."""
        noise = float(self.forecast["privacy_standard_error"])
        return single("correlation", noise, 1 / sqrt(self.n))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error of a correlation near 0, of normal pairs that are all in
        use.
        """
        noise = noisy_sum.noise_sd(self._gram(self._typical, self.rhos[3]))
        found: dict[str, Any] = {"privacy_standard_error": noise / sqrt(2) / self.n}
        return found | {"notes": [words.PAIR_HIDDEN]} if self._hidden else found

    @property
    def _hidden(self) -> bool:
        """Whether the last round's noise is expected to hide that a column varies."""
        noise = noisy_sum.noise_sd(self._gram(REACH, self.rhos[1])) / self.n
        return VARIES.value * noise > 1

    @property
    def _typical(self) -> float:
        """C of normal pairs, of which exp(−C²/2) are farther: that half of the rank lies beyond, as
        what is cut is allowed for besides.
        """
        each = 2 * self.n / self._rank
        return sqrt(2 * log(each)) if each >= _CLEAR else TYPICAL

    @property
    def _grid(self) -> LengthGrid:
        return LengthGrid(_UNIT)

    @property
    def _public_n(self) -> int | None:
        return None if self.frame.design.masked else self.n

    def _gram(self, C: float, rho: int) -> GramSum:
        return exactly(GramSum(3, C * sqrt(1 + A * A), rho, self.unit_rows), A * C)

    def run(self) -> Recipe:
        """1. Two rounds. 2. Lengths. 3. Moments. 4. Squares of influences."""
        frame, varies = self.frame, False
        for k, rho in enumerate(self.rhos[:2]):
            found = yield from self._moments(f"whitening {k + 1}", frame, REACH, rho)
            varies = frame.varies(found.covariance, VARIES.value * found.s / found.N)
            frame = frame.whitened(
                found.mean, found.covariance, max(_FLOOR * found.s / found.N, _LEAST)
            )
        part = self._grid.part(self.rhos[2], self.unit_rows)
        (counts,) = yield SumStep("lengths", (part,), PairLengthsMap(frame, self._grid))
        cut = chosen_cut(self._grid, counts, found.N, self._rank)
        C = sqrt(cut.length)
        moments = yield from self._moments("moments", frame, C, self.rhos[3])
        pair = PairEstimate.of(frame, moments)
        squares = yield from self._squares(frame, pair, C, cut)
        return self._result(pair, cut, squares / moments.N, varies=varies)

    @property
    def _rank(self) -> float:
        return RANK * noisy_sum.noise_sd(self._gram(1.0, self.rhos[3])) * sqrt(2)

    def _moments(
        self, label: str, frame: PairFrame, C: float, rho: int
    ) -> Generator[Step, tuple[Released, ...], PairMoments]:
        part, a = self._gram(C, rho), A * C
        (released,) = yield SumStep(label, (part,), WhitePairMap(frame, C, a))
        return PairMoments.of(released, a, C, self._public_n)

    def _squares(
        self, frame: PairFrame, pair: PairEstimate, C: float, cut: RowCut
    ) -> Generator[Step, tuple[Released, ...], float]:
        """Mean ψ²: what the lengths say of it where the pair is as long in all directions, and what
        was released, by precision.
        """
        B, N = pair.most * C**2, pair.moments.N
        part = VectorSum(1, B**2 / 2, self.rhos[4], self.unit_rows)
        each = InfluenceSquaresMap(frame, C, pair.moments.mean, pair.G, B)
        (released,) = yield SumStep("squares of influences", (part,), each)
        told = float(released.values[0]) / N + B**2 / 2
        usual = float(np.sum(pair.G**2)) * (cut.squares or _NORMAL_SQUARES) / 4
        by_lengths, by_release = (_SQUARES_SD * usual) ** -2, (released.sd / N) ** -2
        return (by_lengths * usual + by_release * max(told, 0.0)) / (by_lengths + by_release)

    def _result(
        self, pair: PairEstimate, cut: RowCut, sampling: float, *, varies: bool
    ) -> CorrelationResult:
        allowance = pair.allowance(cut)
        rest = sampling + pair.noise
        told = trust.squares_told(cut.bulk, cut.alpha, skewed=self.skewed)
        told = varies and not trust.cut_decides(allowance, sqrt(rest), told=told)
        error = sqrt(rest + allowance**2)
        level = self.asked.confidence_level
        z = pair.r * (1 - pair.r**2) / error if told else 0.0
        return CorrelationResult(
            statistic=z,
            p_value=normal_p_value(z, self.asked.alternative),
            effect=pair.r,
            effect_interval=interval(pair.r, half_width(error, level)) if told else (-1.0, 1.0),
            confidence_level=level,
            estimand=ESTIMAND,
            method="pearson",
            standard_error=error,
            privacy_standard_error=sqrt(pair.noise + allowance**2),
            number=pair.moments.N,
            n=self.n,
            warnings=tuple(
                trust.correlation_tail(cut.beyond, allowance / error, told=told)
                if varies
                else [words.CONSTANT]
            ),
        )


def interval(r: float, half: float) -> Interval:
    """The interval of all r₀ with |r − r₀| ≤ k(1 − r₀²), k = half/(1 − r²)."""
    k = half / (1 - r * r)
    low, high = (_end(r, k, sign) for sign in (-1, 1))
    return low, high


def _end(r: float, k: float, sign: int) -> float:
    """The root x of sign(x − r) = k(1 − x²) beyond r: k x² + sign·x − (k + sign·r) = 0."""
    b = sign
    root = sqrt(1 + 4 * k * (k + b * r))
    return float(np.clip(2 * (k + b * r) / (1 + root) * b, -1.0, 1.0))


def plan_pearson(
    facts: DatasetFacts,
    design: Design,
    columns: tuple[Column, Column],
    asked: CorrelationQuestion,
    rho: int,
) -> PearsonPlan:
    """Pearson's correlation at `rho` (RHO_UNITS); design: mask and columns only."""
    spans = [clip_range(facts, column) for column in columns]
    spreads = [spread(facts, c, span) for c, span in zip(columns, spans, strict=True)]
    frame = PairFrame(
        design,
        (columns[0].name, columns[1].name),
        np.array([span.expected for span in spans]),
        np.array(spreads),
        np.zeros(2),
        np.eye(2),
    )
    first, second = ROUNDS
    left = 1 - first - second - LENGTHS - SQUARES
    rhos = allocate(rho, (first, second, LENGTHS, left, SQUARES))
    far = np.array([skewness(facts, column) for column in columns])
    skewed = bool(trust.skewed(far).any())
    return PearsonPlan(frame, rhos, facts.schema.unit.max_rows, asked, facts.n, skewed)
