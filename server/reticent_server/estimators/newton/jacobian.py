"""A released Jacobian made usable: floored, shrunk towards what an earlier release predicts, whitened.

All matrices are in the coordinates u = Wx̃ of their step, W = blockdiag(M_cc^(−1/2), I), and per record
in use. ν = sd_J √(2q) is the noise's operator norm (sd_J on the diagonal, sd_J/√2 off it).

- Step 1 (W = I): eigenvalues ≥ .7ν; M = J/(κ k_c).
- Later: M predicts P = k₀ W M Wᵀ (k₀I on the white block), k₀ = κ k_c for reweighting, κ b_c for ψ′.
  In the coordinates of P's Cholesky factor, where the prediction is I, eigenvalues are clipped to
  [.25, 1.6] (and ≥ .5ν/k₀ if ν < .3), then E ← (1 − λ)E + λI entry by entry, λ_jk = max(λ_j, λ_k),
  λ_j = clip((ν_j − .15)/.45, 0, 1), ν_j the noise of coordinate j (ν on the white block). The matrix
  min(1 − λ_j, 1 − λ_k) is positive semi-definite, so E stays so.

Only released matrices enter, so all of this is public.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.matrices import (
    at_least,
    cholesky,
    eigen,
    floored,
    inverse_root,
    rebuild,
)

FLOOR = 0.25
TRUSTED_NOISE = 0.3
_QUIET_NOISE = 0.1
_SHAPE_POWER, _SIZE_POWER = 1.3, 2.5
FIRST_FLOOR, _CEILING, _NOISE_FLOOR = 0.7, 1.6, 0.5
_SMALLEST = 1e-9
_SHRINK_START, _SHRINK_WIDTH = 0.15, 0.45


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """A usable Jacobian.

    J: (q, q) in its step's u. information: the released J before its repair as W⁻¹JW⁻ᵀ/k₀ in x̃.
    transform: W (q, q), u = Wx̃. frame: (q, q) to the coordinates where the information was predicted
    to be I. M: (q, q) in x̃. noise: sd_J. shrinkage: λ of the white block.
    """

    J: FloatArray
    information: FloatArray
    transform: FloatArray
    frame: FloatArray
    M: FloatArray
    noise: float
    shrinkage: float

    def solve(self, g: FloatArray) -> FloatArray:
        """J⁻¹g."""
        return np.asarray(np.linalg.solve(self.J, g), dtype=np.float64)


def noise_norm(sd: float, q: int) -> float:
    """ν = sd √(2q)."""
    return float(sd * np.sqrt(2 * q))


def first_curvature(J: FloatArray, sd: float, normal: float) -> Curvature:
    """From step 1's released Jacobian (in x̃); normal = κ k_c."""
    usable = floored(J, max(FIRST_FLOOR * noise_norm(sd, len(J)), _SMALLEST))
    identity = np.eye(len(J))
    return Curvature(usable, J / normal, identity, identity, usable / normal, sd, 0.0)


def whitening(M: FloatArray, white: int) -> FloatArray:
    """W = blockdiag(M_cc^(−1/2), I) for M (q, q) and a white block of that size."""
    W = np.eye(len(M))
    W[:white, :white] = inverse_root(M[:white, :white])
    return W


def later_curvature(J: FloatArray, sd: float, k0: float, M: FloatArray, W: FloatArray) -> Curvature:
    """From a later released Jacobian (in u = Wx̃), with the M that W was made of."""
    root = cholesky(k0 * W @ M @ W.T)
    inverse = np.linalg.inv(root)
    nu = noise_norm(sd, len(J))
    floor = max(FLOOR, _NOISE_FLOOR * nu / k0 if nu < TRUSTED_NOISE else 0.0)
    E = floored(inverse @ J @ inverse.T, floor, _CEILING)
    rates = shrinkage_rates(nu * k0 * np.sum(inverse**2, axis=1))
    mixed = np.maximum.outer(rates, rates)
    E = (1 - mixed) * E + mixed * np.eye(len(J))
    back = np.linalg.inv(W)
    return Curvature(
        J=root @ E @ root.T,
        information=back @ J @ back.T / k0,
        transform=W,
        frame=np.sqrt(k0) * inverse @ W,
        M=back @ root @ E @ root.T @ back.T / k0,
        noise=sd,
        shrinkage=float(rates[0]),
    )


def refreshed(curvature: Curvature, M: FloatArray, guard: FloatArray) -> FloatArray:
    """The next whitening matrix (q, q), M being the last one.

    Kept while the Jacobian's noise is above .3. Never below `guard`. M ← W⁻¹EW⁻ᵀ is a fixed-point
    iteration whose error shrinks slowly, slowest in the size of M (most records have w = R²/‖u‖², which
    does not see it); where noise is below .1, its next steps are anticipated by raising E's shape to
    the power 1.3 and its mean eigenvalue to the power 2.5.
    """
    nu = noise_norm(curvature.noise, len(M))
    if nu >= TRUSTED_NOISE:
        return M
    guarded = at_least(curvature.M, guard)
    if nu >= _QUIET_NOISE:
        return guarded
    frame, back = curvature.frame, np.linalg.inv(curvature.frame)
    values, vectors = eigen(frame @ guarded @ frame.T)
    size = float(values.mean())
    E = rebuild((values / size) ** _SHAPE_POWER * size**_SIZE_POWER, vectors)
    return at_least(back @ E @ back.T, guard)


def shrinkage_rates(noise: FloatArray) -> FloatArray:
    """λ for noise ν relative to what is predicted."""
    return np.clip((noise - _SHRINK_START) / _SHRINK_WIDTH, 0.0, 1.0)
