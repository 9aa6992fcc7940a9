"""The planned numbers of one noisy gradient descent: steps, and every release's integer ρ."""

from dataclasses import dataclass
from math import sqrt

from reticent_server.domain.steps import CountSum, GramSum, Part, VectorSum
from reticent_server.estimators.newton.settings import Dimensions, noise_ratio
from reticent_server.numerics.scale_histogram import BINS

QUIET_TUNING, NOISY_TUNING, NOISY_RATIO = 1.0, 0.6, 0.1
STEPS = 40
_SCALES_AFTER = (3, 6, 10, 16)
_FIRST, _LAST, _MEAT, _SCALES, _COUNT = 0.04, 0.12, 0.03, 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Settings:
    """c, the number of steps T, and ρ (RHO_UNITS) of each kind of release.

    gradient: of one of the T gradients; scale: of one of the histograms, made after the steps
    `scales_after`; first, last: Jacobians; count: 0 unless the design is masked.
    """

    c: float
    steps: int
    scales_after: tuple[int, ...]
    gradient: int
    scale: int
    first: int
    last: int
    meat: int
    count: int

    @property
    def averaged_from(self) -> int:
        """t₀: the first point of the path that is averaged, from 0."""
        return self.steps - self.steps // 3

    @property
    def rho(self) -> int:
        once = self.first + self.last + self.meat + self.count
        return once + self.steps * self.gradient + len(self.scales_after) * self.scale

    def first_parts(self, sizes: Dimensions) -> tuple[Part, ...]:
        """The Jacobian at the start, and the number of records in use."""
        jacobian = GramSum(sizes.size, sqrt(sizes.radius_squared), self.first, sizes.unit_rows)
        count = (CountSum(1, self.count, sizes.unit_rows),) if self.count else ()
        return (jacobian, *count)

    def gradient_part(self, sizes: Dimensions) -> VectorSum:
        return VectorSum(sizes.size, self._score_norm(sizes), self.gradient, sizes.unit_rows)

    def scale_part(self, sizes: Dimensions) -> CountSum:
        return CountSum(BINS, self.scale, sizes.unit_rows)

    def last_parts(self, sizes: Dimensions) -> tuple[Part, ...]:
        """The Jacobian and the meat at the end."""
        R, m = sqrt(sizes.radius_squared), sizes.unit_rows
        jacobian = GramSum(sizes.size, R, self.last, m)
        return (jacobian, GramSum(sizes.size, self._score_norm(sizes), self.meat, m))

    def _score_norm(self, sizes: Dimensions) -> float:
        return sqrt(sizes.radius_squared) * self.c


def plan_settings(sizes: Dimensions, rho: int, *, tuning: float | None, masked: bool) -> Settings:
    """Splits `rho` (RHO_UNITS); their sum is at most rho."""
    noisy = noise_ratio(sizes, rho) >= NOISY_RATIO
    count = int(_COUNT * rho) if masked else 0
    first, last, meat = (int(share * rho) for share in (_FIRST, _LAST, _MEAT))
    scale = int(_SCALES * rho) // len(_SCALES_AFTER)
    left = rho - first - last - meat - count - scale * len(_SCALES_AFTER)
    return Settings(
        c=tuning or (NOISY_TUNING if noisy else QUIET_TUNING),
        steps=STEPS,
        scales_after=_SCALES_AFTER,
        gradient=left // STEPS,
        scale=scale,
        first=first,
        last=last,
        meat=meat,
        count=count,
    )
