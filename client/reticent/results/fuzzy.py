# SPDX-License-Identifier: Apache-2.0
"""The effect of a fuzzy design, from two released jumps at one cut-off.

With J the jump of the response and D that of treatment, the effect is θ = J/D. Both releases are
about the same records, and the covariance of their sampling errors s is not released, but at most
s_J s_D in absolute value; their noises η are independent. So

    Var(Ĵ − θ D̂) ≤ (s_J + |θ| s_D)² + η_J² + θ² η_D² = V(θ),

and {θ : (Ĵ − θ D̂)² ≤ z² V(θ)} holds the effect with probability 1 − α or more, however small D is
(Anderson & Rubin 1949; Fieller 1954). The set is solved for θ ≥ 0 and θ ≤ 0, a quadratic
inequality each. Its smallest interval is given: it is the whole line where the jump of treatment
cannot be distinguished from 0, or where one of the two jumps has no interval of its own.
"""

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from scipy.special import ndtri


@dataclass(frozen=True, slots=True)
class Jump:
    """A released jump: its value, and the standard errors of sampling and of noise, NaN where it
    has none.
    """

    value: float
    sampling: float
    noise: float

    @property
    def known(self) -> bool:
        """Whether it has errors."""
        return isfinite(self.sampling) and isfinite(self.noise)


@dataclass(frozen=True, slots=True)
class FuzzyEffect:
    """J/D with its interval, whose ends may be infinite."""

    value: float
    interval: tuple[float, float]


def fuzzy_effect(response: Jump, treatment: Jump, alpha: float) -> FuzzyEffect:
    """The ratio of two jumps with its interval of level 1 − alpha."""
    value = response.value / treatment.value if treatment.value else inf
    if not (response.known and treatment.known):
        return FuzzyEffect(value, (-inf, inf))
    z = float(ndtri(1 - alpha / 2))
    up = _set(response, treatment, z)
    down = _set(Jump(-response.value, response.sampling, response.noise), treatment, z)
    ends = [*up, *(-end for end in down)]
    return FuzzyEffect(value, (min(ends), max(ends)) if ends else (value, value))


def _set(J: Jump, D: Jump, z: float) -> list[float]:
    """The least and the largest θ ≥ 0 of the set, or nothing."""
    a = D.value**2 - z**2 * (D.sampling**2 + D.noise**2)
    b = -2 * (J.value * D.value + z**2 * J.sampling * D.sampling)
    c = J.value**2 - z**2 * (J.sampling**2 + J.noise**2)
    roots = np.roots([a, b, c])
    inner = sorted(float(r.real) for r in roots if abs(r.imag) <= 0 and r.real > 0)
    inside = [0.0, *inner] if c <= 0 else inner
    return [*inside[:1], *inside[-1:], *([inf] if a <= 0 else [])]
