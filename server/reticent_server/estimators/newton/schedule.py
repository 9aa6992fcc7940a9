"""How many steps, and how much of ρ for each release: planned from (q, n, ρ), which are public.

η = 2Rc√q/(n√(2ρ) κ b_c) at c = 1 is the noise of one whole step in units of the residual scale. The
mean squared error e² and the squared residual scale S² (in units of the response's) are forecast as

    e₀² = .96, S₁² = 1;   e_t² = γe_{t−1}² + η²S_t²/f_t,   S_{t+1}² = min(.04 + e_t², 1.44 S_t²)

with γ = .16 (.10 where η < .02), and the gradients' fractions f (Σf = 1) and T ∈ {2, …, 6} minimise e_T², a larger T only for a gain of
1 %. Where η < .5 there are three steps at least: the recursion leaves out that floors calm a noisy step
and that the last two points are averaged, which at η = .4 takes a fifth off the error. A stationary f satisfies f_t ∝ S_t √λ_t, λ_t = ∂e_T²/∂e_t² with its effect through S²: a fixed
point that the adjoint recursion finds in some twenty sweeps.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

START_ERROR = 0.96
ERROR_FLOOR = 0.04
CONTRACTION, QUIET_CONTRACTION = 0.16, 0.10
QUIET_RATIO = 0.02
SCALE_GROWTH = 1.44
MAX_STEPS = 6
AVERAGED_RATIO, AVERAGED_STEPS, LEAST_STEPS = 0.5, 3, 2
_SWEEPS = 40

Fractions = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of ρ; they sum to 1 with the gradients' part.

    start: mini-profile. count: records in use (masked designs). first_jacobian, later_jacobians
    (all together), scales (all together), meat: as named.
    """

    start: float = 0.0
    count: float = 0.0
    first_jacobian: float = 0.10
    later_jacobians: float = 0.05
    scales: float = 0.04
    meat: float = 0.03

    @property
    def gradients(self) -> float:
        rest = self.first_jacobian + self.later_jacobians + self.scales + self.meat
        return 1.0 - self.start - self.count - rest


def contraction(eta: float) -> float:
    """γ: what a step leaves of the squared error; a noisy Jacobian leaves more."""
    return QUIET_CONTRACTION if eta < QUIET_RATIO else CONTRACTION


def forecast_errors(fractions: Fractions, eta: float) -> tuple[Fractions, Fractions]:
    """(e₁², …, e_T²) and (S₁², …, S_T²) under the module's recursion."""
    errors, scales, e, s = [], [], START_ERROR, 1.0
    for f in fractions:
        scales.append(s)
        e = contraction(eta) * e + eta**2 * s / f
        errors.append(e)
        s = min(ERROR_FLOOR + e, SCALE_GROWTH * s)
    return tuple(errors), tuple(scales)


def gradient_fractions(steps: int, eta: float) -> Fractions:
    """f (steps,) that minimises e_T² for a given T."""
    f: Fractions = (1 / steps,) * steps
    for _ in range(_SWEEPS):
        wanted = _stationary(f, eta)
        f = tuple(0.5 * a + 0.5 * b for a, b in zip(f, wanted, strict=True))
    return f


def _stationary(f: Fractions, eta: float) -> Fractions:
    errors, scales = forecast_errors(f, eta)
    slopes = [0.0] * len(f)
    slope, by_scale = 1.0, 0.0
    for t in reversed(range(len(f))):
        grows = ERROR_FLOOR + errors[t] > SCALE_GROWTH * scales[t]
        slope = slope if grows else slope + by_scale
        slopes[t] = slope
        by_scale = slope * eta**2 / f[t] + (SCALE_GROWTH * by_scale if grows else 0.0)
        slope *= contraction(eta)
    raw = [sqrt(a * s) for a, s in zip(slopes, scales, strict=True)]
    return tuple(r / sum(raw) for r in raw)


def least_steps(eta: float) -> int:
    """The smallest T that a plan takes."""
    return AVERAGED_STEPS if eta < AVERAGED_RATIO else LEAST_STEPS


@lru_cache(maxsize=4096)
def plan_steps(eta: float) -> Fractions:
    """The planned fractions; their number is T."""
    first = least_steps(eta)
    best, least = gradient_fractions(first, eta), float("inf")
    for steps in range(first, MAX_STEPS + 1):
        f = gradient_fractions(steps, eta)
        last = forecast_errors(f, eta)[0][-1]
        if last < 0.99 * least:
            best, least = f, last
    return best


def allocate(rho: int, weights: tuple[float, ...]) -> tuple[int, ...]:
    """Splits an integer ρ in proportion to weights (Σ = 1): each part at least 1, exact in sum.

    What rounding down leaves goes to the last part.
    """
    parts = [max(1, int(rho * w)) for w in weights[:-1]]
    return (*parts, max(1, rho - sum(parts)))
