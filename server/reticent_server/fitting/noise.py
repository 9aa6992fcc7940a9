# SPDX-License-Identifier: Apache-2.0
"""The noise that a planned part will have, for plans and forecasts: Δ/√(2ρ) in the units of
contributions."""

from math import sqrt

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum, VectorSum


def planned_sd(part: VectorSum | GramSum | CountSum) -> float:
    """Standard deviation of an entry (of a Gram sum: on the diagonal); proofs:
    mechanisms.noisy_sum."""
    unit = part.unit_rows / sqrt(2 * part.rho / RHO_UNITS)
    match part:
        case VectorSum(clip=clip):
            return 2 * clip * unit
        case GramSum(clip=clip, signed=signed):
            return (2.0 if signed else sqrt(2)) * clip**2 * unit
        case CountSum(bins=bins):
            return (sqrt(2) if bins > 1 else 1.0) * unit
