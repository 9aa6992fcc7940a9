# SPDX-License-Identifier: Apache-2.0
"""The median of a bounded column with discrete Laplace noise scaled by its smooth sensitivity.

Domain: one column of n records within public bounds; unit a row. Output: a point of the public
lattice within the bounds. Always replies. Tier: unconditional.

Every record is first rounded to the lattice (a function of the record), so the median M = X_(h),
its local sensitivity A^(0) and all A^(k) are whole numbers of steps. With S = SS_β(D) and
b = max(2S/ε, 2¹⁴), M + Z is released, P(Z = z) = c(b) e^(−|z|/b), c(b) = tanh(1/(2b)); clipping it
is post-processing.

Proof. For neighbours: s = |M − M′| ≤ min(S, S′), and e^(−β) ≤ b/b′ ≤ e^β. Write P, P′ for the two
laws and z = y − M.

- b < b′: since tanh(x)/x decreases, c(b)/c(b′) ≤ b′/b ≤ e^β, and |y − M′|/b′ − |z|/b ≤ s/b′ ≤ ε/2.
  So P ≤ e^(β + ε/2) P′ ≤ e^ε P′, for β ≤ ε/2.
- b ≥ b′, r = b/b′: c(b)/c(b′) ≤ (1 + ζ)/r with ζ ≤ 1/(10b′²) < 10⁻⁹, so the loss is
  L(y) ≤ ζ − ln r + |y − M′|/b′ − |z|/b. On the side away from M′,
  L ≤ ζ − ln r + s/b′ + (r − 1)|z|/b; on the side towards it L ≤ ζ − ln r − s/b′ + (r − 1)|z|/b
  beyond M′, and at most ε/2 before. With P(|Z| ≥ t) ≤ (1 + 1/b) e^(−t/b),

      Σ_y (P − e^ε P′)_+ = E(1 − e^(ε−L))_+ ≤ ½(1 + 1/b) (r−1)/r [e^(−x(s/b′)) + e^(−x(−s/b′))],
      x(a) = (ε − a + ln r − ζ)/(r − 1),

  which increases in s/b′ ≤ ε/2 and in r ≤ e^β. β is the largest with that bound ≤ δ, and at most
  ε/2.

Hence (ε, δ)-DP, and δ-approximately ½ε²-zCDP. The usual β = ε/(2 ln(2/δ)) satisfies the bound while
ε ≲ 10, where it is smaller than need be, and breaks it above; with ln(1/δ), as printed in Chaudhuri
& Hsu (2012), it breaks it sooner. The computed S has a relative error of 10⁻¹², which a β smaller
by 10⁻¹¹ and an S larger by a factor 1 + 10⁻¹¹ make up for.

Errors: none that depend on the data. Source: Nissim, Raskhodnikova & Smith (2007).
"""

from functools import lru_cache
from math import exp, expm1, log

import numpy as np

from reticent_server.accounting.conversions import rho_of_pure
from reticent_server.domain.columns import SmoothMedian
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms._sampler import Laplace
from reticent_server.numerics.lattices import to_lattice
from reticent_server.numerics.order_statistics import quartile_ranks
from reticent_server.numerics.smooth_sensitivity import smooth_sensitivity

# steps of the lattice: ζ ≤ 1/(10b²) < 10⁻⁹ in the proof, and 1 + 1/b in its tail
SMALLEST_SCALE = 2.0**14
_TOLERANCE = 1e-11  # ten times the relative error of the computed S; the proof's last paragraph


def cost(part: SmoothMedian) -> PrivacyCost:
    """(ε, δ), and δ-approximately ½ε²-zCDP."""
    return PrivacyCost(part.epsilon, part.delta, rho_of_pure(part.epsilon), part.delta)


def excess(epsilon: float, beta: float) -> float:
    """The proof's bound of Σ (P − e^ε P′)_+ at r = e^β."""
    gain = expm1(beta)
    near, far = ((epsilon - a + beta - 1e-9) / gain for a in (epsilon / 2, -epsilon / 2))
    return 0.5 * (1 + 1 / SMALLEST_SCALE) * -expm1(-beta) * (exp(-near) + exp(-far))


@lru_cache(maxsize=256)
def smoothness(epsilon: int, delta: int) -> float:
    """β: the largest that the proof allows. epsilon, delta: in units."""
    e, low = epsilon / EPSILON_UNITS, 0.0
    target, high = delta / DELTA_UNITS * (1 - 1e-9), e / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(e, middle) <= target else (low, middle)
    return low


def largest_bits(epsilon: int) -> int:
    """How fine the lattice may be for its noise to stay below what a sum of int64 holds."""
    return max(20, min(46, 57 + int(log(epsilon / EPSILON_UNITS) / log(2))))


def scale(part: SmoothMedian, ordered: FloatArray) -> float:
    """b in lattice steps: private. ordered: (n,) lattice steps in increasing order."""
    _, h, _ = quartile_ranks(len(ordered))
    beta = smoothness(part.epsilon, part.delta) - _TOLERANCE
    S = smooth_sensitivity(ordered, h, beta, float(part.lattice.size)) * (1 + _TOLERANCE)
    return max(2 * S * EPSILON_UNITS / part.epsilon, SMALLEST_SCALE)


def release(part: SmoothMedian, values: Private[FloatArray]) -> Released:
    """The noisy median; sd 0, as its noise is private."""
    ordered = np.sort(to_lattice(part.lattice, values.unwrap()[0]))
    _, h, _ = quartile_ranks(len(ordered))
    median = np.array([ordered[h - 1]], dtype=np.int64)
    noisy = float(Laplace(scale(part, ordered)).add(median)[0])
    steps = min(max(noisy, 0.0), float(part.lattice.size))
    return Released(np.array([part.lattice.origin + part.lattice.step * steps]), 0.0)
