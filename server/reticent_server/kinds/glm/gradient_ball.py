# SPDX-License-Identifier: Apache-2.0
"""Where a logit's contributions to the gradient lie: in a smaller ball than one about 0.

A contribution is z q with z = w u, ‖z‖ ≤ R, q = y − μ(η) and η = τ t/w, t = θ̂ᵀz the part of z
along θ̂, the direction of θ in u. It is long only where the model is wrong about the record, q
η < 0, and so always on one side: θ̂ᵀ(z q) is at least −R, but at most about .28/τ, and across θ̂
(where η = 0) |q| is ½. With −a θ̂ as its centre the smallest ball has the radius

    C = min_a max ‖z q + a θ̂‖ ≤ R sup|q|,

about .83 R where τ ≈ 1.3 (nothing is gained as τ → ∞). Both follow from θ, W and R, which are
public. A constant a θ̂ is added to every record's contribution, the sum is released at the clip C,
and n a θ̂ is taken off what was released.

The maximum is over a grid of the angle between u and θ and of ‖u‖, in the worst of the two signs of
q, ‖z‖ = min(‖u‖, R²/‖u‖); the primitive clips at C what the grid may have missed.
"""

from math import inf

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.score import Ball, Score

# points of the grid: the primitive clips what falls between them, so they cost accuracy only
_ANGLES, _LENGTHS, _CENTRES = 91, 121, 61
# ‖u‖ in radii: beyond it w u has length R/30 or η is at its limit; clipped as above
_FARTHEST = 30.0
# of the radius, above the grid's largest: fewer contributions are clipped for .2 % more noise
_ROOM = 1.002


def logistic_ball(score: Score, direction: FloatArray, radius: float) -> Ball | None:
    """The ball at θ in u (q,), R = radius; None where none is smaller than the one about 0."""
    tau = float(np.linalg.norm(direction))
    if not 0 < tau < inf:
        return None
    along, across = _extremes(score, tau, radius)
    centres, squares = np.linspace(0, radius / 2, _CENTRES), across**2
    radii = np.sqrt([np.max((along + a) ** 2 + squares) for a in centres])
    best = int(np.argmin(radii))
    if radii[best] * _ROOM >= radius * score.bound:
        return None
    shift = np.asarray(float(centres[best]) / tau * direction, dtype=np.float64)
    return Ball(shift, float(radii[best]) * _ROOM)


def _extremes(score: Score, tau: float, radius: float) -> tuple[FloatArray, FloatArray]:
    """(points,) parts along and across θ̂ of the contributions on the grid."""
    angle = np.linspace(0, np.pi / 2, _ANGLES)[:, None]
    lengths = np.concatenate([np.linspace(0, 1, _LENGTHS), np.geomspace(1, _FARTHEST, _LENGTHS)])
    eta = np.clip(tau * radius * lengths * np.cos(angle), *score.limits).ravel()
    z = radius * np.minimum(lengths, 1 / np.maximum(lengths, 1e-300)) * np.ones_like(angle)
    parts = (z * np.cos(angle)).ravel(), (z * np.sin(angle)).ravel()
    q = [score.evaluate(np.full_like(eta, y), eta) for y in (0.0, 1.0)]
    along, across = (np.concatenate([part * value for value in q]) for part in parts)
    return along, across
