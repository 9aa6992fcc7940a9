# SPDX-License-Identifier: Apache-2.0
"""A fit on the affine subspace Rθ = r, for score tests: the path keeps to it, the last step leaves
it.

The prior of the filter is conditioned on Rθ = r; its covariance then has no part across the
subspace, and no gain leaves it. The last step, with the unconditioned prior's gain, is the one-step
estimate from the restricted fit: its Rθ − r is R A g, the efficient score, and a Wald test of it is
Rao's test (Heritier & Ronchetti 1994, eq. 8). Everything is post-processing of the same releases as
an unrestricted fit's.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.beliefs import Stepped
from reticent_server.fitting.curvature import StepView


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """rows R (k, q) of full rank and values r (k,), for θ of x̃."""

    rows: FloatArray
    values: FloatArray

    def started(
        self, theta: FloatArray, C: FloatArray, W: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """θ (q,) of x̃ and C (q, q) of u, conditioned on the restriction."""
        R = self.rows @ W.T
        gain = np.linalg.solve(R @ C @ R.T, R @ C).T
        start = theta + W.T @ gain @ (self.values - self.rows @ theta)
        return start, np.asarray(C - gain @ R @ C)

    def last_step(self, seen: StepView, first: FloatArray) -> Stepped:
        """The step off it, linear whatever the curvature: its gain is made for what is left and the
        unconditioned prior, `first` (q, q)."""
        return Stepped.sure(seen.moved(first + seen.covariance))
