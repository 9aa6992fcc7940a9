# SPDX-License-Identifier: Apache-2.0
"""The exact chance that a test of safety passes, at a margin."""

import numpy as np

from reticent_server.domain.columns import DepthDraw
from reticent_server.domain.steps import FloatArray
from reticent_server.mechanisms import depth_draw, ptr


def pass_probability(margin: int, epsilon: int, delta: int) -> float:
    """P(margin + Z ≥ T), Z discrete Laplace of the scale that is drawn. epsilon, delta: in
    units.
    """
    p = np.exp(-1 / ptr.noise_scale(epsilon))
    short = ptr.threshold(epsilon, delta) - margin
    return float(p**short / (1 + p) if short > 0 else 1 - p ** (1 - short) / (1 + p))


def reply_probability(part: DepthDraw, values: FloatArray) -> float:
    """Of a depth median with one planned η, on columns (d, n)."""
    found = depth_draw.measure(part, depth_draw.whole_numbers(part, values))
    (margin,) = depth_draw.margins(part, found, values.shape[1])
    return pass_probability(margin, part.epsilon_test, part.delta)
