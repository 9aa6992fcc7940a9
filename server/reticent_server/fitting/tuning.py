# SPDX-License-Identifier: Apache-2.0
"""tuning="planned": of a public menu, the constants with the smallest forecast error at this ε and
n.

They move the estimand with ε and n; defaults come from the model alone.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from reticent_server.fitting.budget import Signal, Sizes, noise_ratio

_LAST_STEP = 0.45  # of ρ, in the last gradient

ChoiceT = TypeVar("ChoiceT")


def least_variance(
    sizes: Sizes, rho: int, choices: Iterable[tuple[ChoiceT, float, Signal, float]]
) -> ChoiceT:
    """The choice of the smallest forecast variance. choices: each with its R²/q, signal, and E
    q²/h̄.

    The variance is that of a white coefficient: sampling, unit²E q²/(nκh̄²), and the last
    gradient's noise.
    """

    def variance(radius: float, signal: Signal, mean_square: float) -> float:
        ready = replace(sizes, radius_squared=radius * sizes.size)
        noise = noise_ratio(ready, rho, signal) ** 2 / sizes.size / _LAST_STEP
        information = ready.mean_norm * signal.curvature * sizes.expected_n
        return noise + mean_square * signal.unit**2 / information

    return min(choices, key=lambda choice: variance(*choice[1:]))[0]
