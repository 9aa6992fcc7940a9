"""The planned numbers of one noisy Newton fit of a generalised linear model, from public facts.

The tuning constant c (Poisson, Gamma; the binomial needs none) and the factor f = R²/q_c of the Mallows
radius are chosen together: of a public grid, the pair with the least forecast variance of one white
coefficient on a normal design,

    sampling   (E w²‖u‖²/q) γ_c/(n h̄ κ² b_c²)
    privacy    (2RK/(n√(2ρ_T) h̄ κ b_c))²,   K = sup|q|, ρ_T the last gradient's share

with h̄ a public guess of the mean information; then the largest f with that c whose forecast standard
error is within 15 % of the least, as on skewed data the weights move the target away from the
unweighted fit. (Poisson rows √μ u have heavier tails than normal ones: there f = 3, which measured
best or close to it on all designs tried.) As n grows the privacy part vanishes, and c and f grow: the
truncated maximum likelihood estimator of Avella-Medina (2021), Corollary 2.
"""

from dataclasses import dataclass
from itertools import product
from math import inf, sqrt

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import CountSum, GramSum, Part, VectorSum
from reticent_server.estimators.glm.dispersion import ChiScore
from reticent_server.estimators.glm.score import FamilyName, QuasiScore
from reticent_server.estimators.newton.early_rows import FULL_STEPS, largest_stride
from reticent_server.estimators.newton.schedule import allocate
from reticent_server.estimators.newton.settings import Dimensions
from reticent_server.numerics.families import gamma_moments
from reticent_server.numerics.mallows_moments import WeightMoments, weight_moments
from reticent_server.numerics.psi import Huber

RADIUS_FACTORS = (0.8, 1.0, 1.5, 2.0, 3.0, 4.0)
WORTH = 1.15
POISSON_FACTOR = 3.0
TUNINGS = (1.0, 1.345, 1.7, 2.0, 2.5, 3.0)
TRUNCATIONS = (*TUNINGS, 4.0, 5.0, 6.0, 8.0)
COUNTS = ("poisson", "negative_binomial")
UNSCALED = ("binomial", "negative_binomial")
SCALE_CUT = 1.5
LEVERAGE_CAP = 2.0
_GAMMA_FRACTIONS = {
    5: (0.04, 0.06, 0.10, 0.15, 0.65),
    4: (0.06, 0.12, 0.17, 0.65),
    3: (0.15, 0.20, 0.65),
}
_FRACTIONS = {
    5: (0.04, 0.06, 0.10, 0.25, 0.55),
    4: (0.06, 0.12, 0.27, 0.55),
    3: (0.15, 0.30, 0.55),
}
_QUIET, _QUIET_FRACTIONS = 0.03, (0.02, 0.03, 0.06, 0.27, 0.62)
_SETTLED = 0.02  # in squared units of the predictor; scoring steps have a quadratic rate
_EXPLAINED = 0.7


@dataclass(frozen=True, slots=True)
class GlmSettings:
    """What is fixed before a record is read.

    overdispersed: whether s stays free in the last steps (planned tuning). moments: of the weights on
    a normal design. eta: forecast privacy over sampling standard error. gradients, jacobians (T,),
    scales (T − 1,; the
    Gamma's last one is part of the last step; empty for the binomial), meat and count: ρ in RHO_UNITS.
    """

    family: FamilyName
    c: float
    limits: tuple[float, float]
    overdispersed: bool
    moments: WeightMoments
    eta: float
    gradients: tuple[int, ...]
    jacobians: tuple[int, ...]
    scales: tuple[int, ...]
    meat: int
    count: int
    stride: int = 1

    @property
    def steps(self) -> int:
        return len(self.gradients)

    def subset(self, step: int) -> RowSubset | None:
        """The rows that a step (from 0) adds, None for all: newton.early_rows."""
        early = self.stride > 1 and step < self.steps - FULL_STEPS
        return RowSubset(self.stride) if early else None

    def count_at(self, step: int) -> int:
        """The ρ of the number of records in use that a step releases: once, or once more on all rows."""
        if self.stride == 1:
            return self.count if step == 0 else 0
        half = self.count // 2
        return {0: half, self.steps - FULL_STEPS: self.count - half}.get(step, 0)

    def mean_information(self, score: QuasiScore) -> float:
        """h̄ where all records have the η of `score`'s limits (b_c except for the binomial)."""
        if self.family == "binomial":
            return score.information_bound()
        return information_guess(self.family, self.c, score.scale)[1]

    @property
    def rho(self) -> int:
        return sum((*self.gradients, *self.jacobians, *self.scales, self.meat, self.count))

    def score(self, scale: float, start: float) -> QuasiScore:
        return QuasiScore(self.family, self.c, scale, self.limits, start)

    def score_parts(
        self,
        step: int,
        sizes: Dimensions,
        score: QuasiScore,
        gradient_clip: float,
        chi: ChiScore | None = None,
    ) -> tuple[Part, ...]:
        """Gradient, Jacobian, in the last step the meat, and a count (count_at).

        With `chi` the meat is the joint one, and the sum of the χ-scores follows.

        gradient_clip: C (centre). Where `score` has one η for all records (the start) its bounds are
        smaller.
        """
        q, m, R = sizes.size, sizes.unit_rows, sqrt(sizes.radius_squared)
        bound = R * score.score_bound()
        parts: list[Part] = [
            VectorSum(q, gradient_clip, self.gradients[step], m),
            GramSum(q, R * sqrt(score.information_bound()), self.jacobians[step], m),
        ]
        if step == self.steps - 1 and chi is None:
            parts.append(GramSum(q, bound, self.meat, m))
        if chi is not None:
            joint = sqrt(bound**2 + chi.bound**2)
            parts += [
                GramSum(q + 1, joint, self.meat, m),
                VectorSum(1, chi.bound, self.scales[-1], m),
            ]
        if self.count_at(step):
            parts.append(CountSum(1, self.count_at(step), m))
        return tuple(parts)

    def scale_part(self, step: int, sizes: Dimensions) -> VectorSum:
        """The mean square of the cut residuals after a step."""
        return VectorSum(1, SCALE_CUT**2, self.scales[step], sizes.unit_rows)


@dataclass(frozen=True, slots=True)
class Choice:
    """A tuning constant and a radius factor with the variances that they are forecast to give."""

    c: float
    factor: float
    sampling: float
    privacy: float


def choose(
    family: FamilyName,
    sizes: Dimensions,
    rho: int,
    tuning: float | None,
    upper: float,
    typical: float,
) -> Choice:
    """The pair of least forecast variance; `sizes` gives q, q_c, n and what rare dummies add to R².

    typical: of a binomial response the public frequency of ones, else a public guess of s.
    """
    if tuning is not None:
        tunings: tuple[float, ...] = (tuning,)
    else:
        likelihood = TRUNCATIONS if family == "negative_binomial" else TUNINGS
        tunings = (inf,) if family == "binomial" else likelihood
    factors = (POISSON_FACTOR,) if family in COUNTS else RADIUS_FACTORS
    pairs = product(tunings, factors)
    found = [forecast_choice(family, sizes, rho, c, f, upper, typical) for c, f in pairs]
    least = min(x.sampling + x.privacy for x in found)
    near = [x for x in found if x.sampling + x.privacy <= WORTH**2 * least]
    best = min(near, key=lambda x: x.sampling + x.privacy)
    return max((x for x in near if x.c == best.c), key=lambda x: x.factor)


def forecast_choice(
    family: FamilyName,
    sizes: Dimensions,
    rho: int,
    c: float,
    factor: float,
    upper: float,
    typical: float,
) -> Choice:
    """Forecast variances of one white coefficient, per unit of its term's scale."""
    white = factor * sizes.white_size
    rare = sizes.radius_squared - sizes.white_radius_squared
    moments = weight_moments(sizes.white_size - int(sizes.intercept), white or 1.0, sizes.intercept)
    h, b, gamma = information_guess(family, c, typical)
    scale = typical if family in {"gamma", "negative_binomial"} else 1.0
    limits = QuasiScore(family, c, scale, (0.0, 0.0)).law.predictor_limits(upper)
    bound = sqrt(white + rare) * QuasiScore(family, c, scale, limits).score_bound()
    noise = 2 * bound * sizes.unit_rows / (sizes.n * sqrt(2 * 0.5 * rho / RHO_UNITS))
    return Choice(
        c=c,
        factor=factor,
        sampling=moments.inflation * gamma / (sizes.n * h * b * b),
        privacy=(noise / (h * b * moments.norm)) ** 2,
    )


def information_guess(family: FamilyName, c: float, typical: float) -> tuple[float, float, float]:
    """(h̄, d, Var ψ_c): the mean information without cutting; moments of Gamma's law or the normal."""
    base = _EXPLAINED * typical * (1 - typical) if family == "binomial" else 1.0
    if c == inf:
        return base, 1.0, 1.0
    if family == "gamma":
        mean, slope, square = gamma_moments(typical**2, typical**2, c)
        return base, slope, square - mean**2
    return base, Huber(c).mean_derivative, Huber(c).mean_square


def plan_settings(
    family: FamilyName,
    sizes: Dimensions,
    rho: int,
    choice: Choice,
    *,
    upper: float,
    tuned: bool,
    masked: bool,
) -> GlmSettings:
    """Splits `rho` (RHO_UNITS) over the releases; their sum is exactly rho."""
    eta = sqrt(choice.privacy / choice.sampling)
    planned = _GAMMA_FRACTIONS if family == "gamma" else _FRACTIONS
    fractions = planned[5 if eta < 2 else 4 if eta < 8 else 3]
    first, later, meat, count = 0.08, 0.08, 0.03, 0.01 if masked else 0.0
    if family == "binomial" and sqrt(choice.privacy) < _QUIET:
        fractions, first, later = _QUIET_FRACTIONS, 0.04, 0.05
    steps = len(fractions)
    scales = 0.0 if family in UNSCALED else 0.05
    gradients = 1 - first - later - meat - count - scales
    stride = 1
    if family == "binomial":
        noise = 0.5 * choice.privacy / (gradients * min(fractions[:-FULL_STEPS], default=1.0))
        q = sizes.size
        stride = largest_stride(sizes.n, steps, q * choice.sampling, q * noise, _SETTLED)
    weights = (
        *(gradients * f for f in fractions),
        first,
        *((later / (steps - 1),) * (steps - 1)),
        *((scales / (steps - 1),) * (steps - 1) if scales else ()),
        *((count,) if masked else ()),
        meat,
    )
    parts = allocate(rho, weights)
    law = QuasiScore(family, choice.c, 1.0, (0.0, 0.0)).law
    return GlmSettings(
        family=family,
        c=choice.c,
        limits=law.predictor_limits(upper),
        overdispersed=family in {"gamma", "negative_binomial"} or not tuned,
        moments=weight_moments(
            sizes.white_size - int(sizes.intercept),
            sizes.white_radius_squared or 1.0,
            sizes.intercept,
        ),
        eta=eta,
        gradients=parts[:steps],
        jacobians=parts[steps : 2 * steps],
        scales=parts[2 * steps : 3 * steps - 1] if scales else (),
        meat=parts[-1],
        count=parts[-2] if masked else 0,
        stride=stride,
    )
