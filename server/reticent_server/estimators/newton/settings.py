"""The planned numbers of one noisy Newton fit: tuning, steps, and every release's integer ρ.

With the biweight the last two steps (the last, of two) have its score and start where the steps before
them, Huber's, have come: the solution near the private Huber fit, of several. Its ψ′ is negative for
|z| > c/√5, so the Jacobian of its steps is that of reweighting, 0 ≤ ψ(z)/z ≤ 1, times the
ratio E ψ′/E[ψ(z)/z] under normal errors: see relaxation.
"""

from dataclasses import dataclass
from math import sqrt

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import CountSum, GramSum, Part, VectorSum
from reticent_server.estimators.newton.early_rows import (
    FULL_STEPS,
    early_fractions,
    early_stride,
)
from reticent_server.estimators.newton.schedule import (
    Fractions,
    Shares,
    allocate,
    plan_steps,
)
from reticent_server.numerics.biweight import EFFICIENT_95, Biweight
from reticent_server.numerics.mallows import mean_weighted_norm
from reticent_server.numerics.psi import Huber
from reticent_server.numerics.scale_histogram import BINS

QUIET_TUNING, NOISY_TUNING = 1.0, 0.6
NOISY_RATIO = 0.1
BIWEIGHT_STEPS, LEAST_BIWEIGHT = 2, 2.0

Family = Huber | Biweight


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Public sizes: q coefficients, of which q_c white; intercept; R² and R_c²; n; rows of a unit."""

    size: int
    white_size: int
    intercept: bool
    radius_squared: float
    white_radius_squared: float
    n: int
    unit_rows: int = 1

    @property
    def mean_norm(self) -> float:
        """κ of the white block."""
        slopes = self.white_size - int(self.intercept)
        return mean_weighted_norm(slopes, self.white_radius_squared, self.intercept)


@dataclass(frozen=True, slots=True)
class Settings:
    """ψ, κ, η and the ρ of each release: jacobians and gradients (T,), scales (T − 1,).

    start: Huber's ψ; biweight: the ψ of the last steps, None where it is Huber's. fractions is f; count is 0 unless the design is masked. stride: above 1, all steps but the last two
    add one row of so many (early_rows).
    """

    start: Huber
    biweight: Biweight | None
    mean_norm: float
    eta: float
    fractions: Fractions
    gradients: tuple[int, ...]
    jacobians: tuple[int, ...]
    scales: tuple[int, ...]
    meat: int
    count: int
    stride: int = 1

    @property
    def steps(self) -> int:
        return len(self.gradients)

    @property
    def family(self) -> Family:
        """The ψ of what is estimated."""
        return self.biweight or self.start

    @property
    def c(self) -> float:
        """The tuning constant of what is estimated."""
        return self.family.c

    def family_at(self, step: int) -> Family:
        """The ψ of a step (from 0)."""
        first = self.steps - min(BIWEIGHT_STEPS, self.steps - 1)
        return self.family if step >= first else self.start

    def reweighted(self, step: int) -> bool:
        """Whether a step's Jacobian has the weights ψ(z)/z rather than ψ′."""
        return step < self.steps - 1 or self.biweight is not None

    def subset(self, step: int) -> RowSubset | None:
        """The rows that a step (from 0) and the scale after it add; None for all."""
        early = self.stride > 1 and step < self.steps - FULL_STEPS
        return RowSubset(self.stride) if early else None

    def count_at(self, step: int) -> int:
        """The ρ of the number of records in use that a step releases: once, or once more on all rows."""
        if self.stride == 1:
            return self.count if step == 0 else 0
        half = self.count // 2
        return {0: half, self.steps - FULL_STEPS: self.count - half}.get(step, 0)

    @property
    def averaged(self) -> bool:
        """Whether the last two points are averaged: not where early steps leave the first of them off."""
        return self.steps >= 3 and self.stride == 1

    @property
    def passes(self) -> int:
        """How often the engine goes over the table, or a part of it."""
        return 2 * self.steps - 1

    @property
    def rho(self) -> int:
        parts = (*self.gradients, *self.jacobians, *self.scales, self.meat, self.count)
        return sum(parts)

    def relaxation(self, step: int) -> float:
        """What a released Jacobian is multiplied by (steps from 0): √(b_c/k_c) between first and last.

        Reweighting overestimates the derivative of a settled fit by k_c/b_c; half of that (in
        logarithms) is taken off: faster than reweighting, calmer than Newton. At the first step the
        residuals are mostly signal, and reweighting is exact; the last uses ψ′ itself, or the whole ratio.
        """
        family = self.family_at(step)
        ratio = family.mean_derivative / family.mean_weight
        if step == self.steps - 1:
            return ratio if self.reweighted(step) else 1.0
        return sqrt(ratio) if step else 1.0

    def curvature_norm(self, step: int) -> float:
        """k₀: what a relaxed Jacobian is expected to be in whitened coordinates."""
        family = self.family_at(step)
        mean = family.mean_weight if self.reweighted(step) else family.mean_derivative
        return self.mean_norm * mean * self.relaxation(step)

    def score_parts(self, step: int, sizes: Dimensions) -> tuple[Part, ...]:
        """Gradient, Jacobian, in the last step the meat; a count (count_at)."""
        q, m, R = sizes.size, sizes.unit_rows, sqrt(sizes.radius_squared)
        bound = R * self.family_at(step).bound
        parts: list[Part] = [
            VectorSum(q, bound, self.gradients[step], m),
            GramSum(q, R, self.jacobians[step], m),
        ]
        if step == self.steps - 1:
            parts.append(GramSum(q, bound, self.meat, m))
        if self.count_at(step):
            parts.append(CountSum(1, self.count_at(step), m))
        return tuple(parts)

    def scale_part(self, step: int, sizes: Dimensions) -> CountSum:
        """The histogram after a step."""
        return CountSum(BINS, self.scales[step], sizes.unit_rows)


def noise_ratio(sizes: Dimensions, rho: int) -> float:
    """η: the noise of one whole step in units of the residual scale, at c = 1."""
    whole = sqrt(2 * rho / RHO_UNITS) * sizes.n / sizes.unit_rows
    gain = (sizes.mean_norm or 1.0) * Huber(1.0).mean_derivative
    return 2 * sqrt(sizes.radius_squared * sizes.size) / (whole * gain)


def plan_settings(
    sizes: Dimensions,
    rho: int,
    *,
    tuning: float | None,
    masked: bool,
    biweight: bool = False,
    shares: Shares | None = None,
) -> Settings:
    """Splits `rho` (RHO_UNITS) over the releases; their sum is exactly rho.

    tuning: c of what is estimated; None: planned, or 4.685 for the biweight.
    """
    shares = shares or Shares(count=0.01 if masked else 0.0)
    eta = noise_ratio(sizes, rho)
    mean_norm = sizes.mean_norm or 1.0
    fractions = plan_steps(eta)
    T = len(fractions)
    stride = early_stride(eta, sizes.size, mean_norm, sizes.n, T)
    if stride > 1:
        fractions = early_fractions(T)
    parts = allocate(rho, _weights(shares, fractions))
    planned = QUIET_TUNING if eta < NOISY_RATIO else NOISY_TUNING
    return Settings(
        start=Huber(planned if biweight else tuning or planned),
        biweight=Biweight(tuning or EFFICIENT_95) if biweight else None,
        mean_norm=mean_norm,
        eta=eta,
        fractions=fractions,
        gradients=parts[:T],
        jacobians=parts[T : 2 * T],
        scales=parts[2 * T : 3 * T - 1],
        meat=parts[-1],
        count=parts[-2] if shares.count else 0,
        stride=stride,
    )


def _weights(shares: Shares, fractions: Fractions) -> Fractions:
    """Shares of ρ in the order gradients, Jacobians, scales, count (if any), meat."""
    others = len(fractions) - 1
    return (
        *(shares.gradients * f for f in fractions),
        shares.first_jacobian,
        *((shares.later_jacobians / others,) * others),
        *((shares.scales / others,) * others),
        *((shares.count,) if shares.count else ()),
        shares.meat,
    )


def forecast(settings: Settings, sizes: Dimensions) -> dict[str, float]:
    """Expected standard errors of one white coefficient, in residual scales per term scale.

    Sampling: of the Huber–Mallows fit with normal uncorrelated terms; privacy: the last gradient's
    noise. Factors on top: correlated terms, errors that are not normal.
    """
    family = settings.family
    n, kappa = sizes.n, settings.mean_norm
    sampling = sqrt(family.mean_square / (n * kappa)) / family.mean_derivative
    clip = sqrt(sizes.radius_squared) * family.bound * sizes.unit_rows
    noise = 2 * clip / (n * sqrt(2 * settings.gradients[-1] / RHO_UNITS))
    return {
        "sampling_standard_error": sampling,
        "privacy_standard_error": noise / (kappa * family.mean_derivative),
        "noise_ratio": settings.eta,
    }
