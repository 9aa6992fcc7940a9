# SPDX-License-Identifier: Apache-2.0
"""Huber's ψ: the bounded score of a location or regression residual.

    ρ(z) = z²/2 for |z| ≤ c, c|z| − c²/2 beyond;  ψ = ρ′ = max(−c, min(c, z))

Source: Huber (1964), "Robust estimation of a location parameter"; Huber & Ronchetti (2009), ch. 4,
7.
"""

from dataclasses import dataclass
from math import exp, pi, sqrt

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True)
class Huber:
    """Huber's family at the tuning constant c > 0 (in units of the residual scale).

    The methods are elementwise on standardised residuals z of any shape; the properties are moments
    under a standard normal z.
    """

    c: float

    def loss(self, z: FloatArray) -> FloatArray:
        """ρ(z)."""
        size = np.abs(z)
        inner = np.minimum(size, self.c)
        return np.asarray(inner * (size - 0.5 * inner))

    def psi(self, z: FloatArray) -> FloatArray:
        """ψ(z) = ρ′(z)."""
        return np.clip(z, -self.c, self.c)

    def weight(self, z: FloatArray) -> FloatArray:
        """ψ(z)/z = min(1, c/|z|), 1 at 0: the weight of iterative reweighting."""
        return np.asarray(self.c / np.maximum(np.abs(z), self.c))

    def derivative(self, z: FloatArray) -> FloatArray:
        """ψ′(z) = 1{|z| ≤ c}."""
        return (np.abs(z) <= self.c).astype(np.float64)

    @property
    def bound(self) -> float:
        """sup |ψ| = c."""
        return self.c

    @property
    def mean_derivative(self) -> float:
        """b_c = E ψ′(z) = 2Φ(c) − 1."""
        return float(2 * ndtr(self.c) - 1)

    @property
    def signed(self) -> bool:
        """Whether ψ′ has both signs."""
        return False

    def mean_derivative_at(self, variance: FloatArray) -> FloatArray:
        """E ψ′(z) = 2Φ(c/√v) − 1 of z ~ N(0, v), elementwise (Stein's lemma)."""
        return np.asarray(2 * ndtr(self.c / np.sqrt(variance)) - 1)

    @property
    def mean_square(self) -> float:
        """γ_c = E ψ²(z) = b_c + c²(1 − b_c) − 2cφ(c): consistency constant of Proposal 2."""
        density = exp(-(self.c**2) / 2) / sqrt(2 * pi)
        b = self.mean_derivative
        return b + self.c**2 * (1 - b) - 2 * self.c * density
