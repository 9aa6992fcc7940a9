# SPDX-License-Identifier: Apache-2.0
"""How large η may be for a reply to be likely: from public facts, for data of an ordinary shape.

For n records the certificate's terms at k are modelled, in units of the scale, by what was measured
on Gaussian, Cauchy, uniform and 10 %-contaminated data in 2 to 8 dimensions with 500 directions
(largest values; benchmarks.depth). The test passes almost surely where E_k ≤ ε_r at k = T + 4.6/ε₁.
Nothing here bears on privacy: a wrong model makes No Reply likelier, or the draw noisier.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, inf, sqrt

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.mechanisms import ptr
from reticent_server.numerics.depth_certificate import loss

_SURE = 4.6  # scales of Laplace noise of a test of ε₁: exceeded with probability ½e^−4.6 = .5 %
# twentieths of ε that the test may get: the public forecast takes the best; accuracy only
_SHARES = tuple(k / 20 for k in range(2, 19))

Rates = tuple[float, float, float]


def _iqr(k: int, n: int) -> Rates:
    u, spread = (k + 1) / n, 1 / sqrt(k + 1)
    return 1.86 * u * (1 + 5 * spread), 2.33 * u * (1.3 + 6 * spread), 0.2 + 2 / sqrt(n) + 1.9 * u


def _mad(k: int, n: int) -> Rates:
    u, spread = (k + 1) / n, 1 / sqrt(k + 1)
    shrunk = 1 / (1 - 8 * u) if 8 * u < 1 else inf
    alpha, kappa = 3.72 * u * (1 + 5 * spread), u * (14 + 22 * spread)
    return alpha * shrunk, kappa * shrunk, (0.35 + 4 / sqrt(n) + 4 * u) * shrunk


def _trimmed(k: int, n: int) -> Rates:
    u = (k + 1) / n
    shrunk = 1 / (1 - 19 * u) if 19 * u < 1 else inf
    return 9.5 / n * shrunk, 19 / n * shrunk, (0.3 + 4 / sqrt(n) + 10 * u) * shrunk


_RATES: Mapping[str, Callable[[int, int], Rates]] = {
    "iqr": _iqr,
    "mad": _mad,
    "trimmed": _trimmed,
}


@dataclass(frozen=True, slots=True)
class Split:
    """ε₁ for the test and ε_r for the draw (EPSILON_UNITS), and the η that they allow; 0: none."""

    epsilon_test: int
    epsilon_draw: int
    eta: float


def plan_split(scale: str, n: int, dimension: int, epsilon: int, delta: int) -> Split:
    """The split of ε (EPSILON_UNITS) with the largest η."""
    splits = [_split(scale, n, dimension, epsilon, delta, share) for share in _SHARES]
    return max(splits, key=lambda split: split.eta)


def _split(scale: str, n: int, dimension: int, epsilon: int, delta: int, share: float) -> Split:
    test = max(1, int(share * epsilon))
    eta = likely_eta(scale, n, dimension, (test, epsilon - test), delta)
    return Split(test, epsilon - test, eta)


def likely_eta(scale: str, n: int, dimension: int, epsilons: tuple[int, int], delta: int) -> float:
    """The largest η with E_k ≤ ε_r at the k that is needed; 0 where there is none."""
    test, draw = (e / EPSILON_UNITS for e in epsilons)
    k = ptr.threshold(epsilons[0], delta) + ceil(_SURE / test)
    alpha, kappa, F = _RATES[scale](k, n)
    if not kappa < inf:
        return 0.0
    fixed = loss(k, 0.0, alpha, kappa, F, dimension, delta / DELTA_UNITS)
    return max(0.0, (draw - fixed) / (2 * alpha + 2 * kappa * F))
