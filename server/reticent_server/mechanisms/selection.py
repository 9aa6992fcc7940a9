"""Selection from a public finite list: the exponential mechanism.

Domain: integer scores u_1..u_K computed from private data, K public. Neighbours: tables whose scores
differ by at most Δu each. Output: one index. Tier: unconditional.

Proof. With independent Gumbel noise of scale b, index k has the largest noisy score with probability
exp(u_k/b) / Σ_j exp(u_j/b): the exponential mechanism with ε = 2Δu/b (McSherry & Talwar 2007). It is
ε-DP and, being bounded-range with parameter ε, ε²/8 = Δu²/(2b²)-zCDP (Dong, Durfee & Rogers 2020;
Cesar & Rogers 2021). With any other noise that zCDP bound does not hold (it would be ε²/2).

Errors: none that depend on the data. Units: scores and b in the same units. Source: McSherry & Talwar (2007).
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms._sampler import NoisyMax, smallest_scale

IntArray = NDArray[np.int64]


def gumbel_scale(sensitivity: int, rho: int) -> float:
    """b: the smallest scale at which one selection costs at most `rho` (RHO_UNITS)."""
    return smallest_scale(NoisyMax, sensitivity, rho / RHO_UNITS)


def billed_rho(b: float, sensitivity: int) -> float:
    """Δu²/(2b²) as the sampler bills it (not in units)."""
    return NoisyMax(b).rho(sensitivity)


def select(scores: Private[IntArray], b: float) -> int:
    """The selected index. scores: (K,) int64, K ≥ 1."""
    return NoisyMax(b).select(scores.unwrap())
