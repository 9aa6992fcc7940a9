# SPDX-License-Identifier: Apache-2.0
"""Tests of ranks from noisy counts by group and bin, with the noise in the null law.

With T = N + Z (G × B), pooled shares π of the bins and centred ridits r (r_b the share below b and
half of that in b, minus ½, so π·r = 0), the residual R = T − T1·1ᵀT/t gives X = Rr. Under equal
distributions, to first order,

    cov X = n v D + σ²‖r‖² H,   v = Σ π_b r_b²,   D = diag p − ppᵀ,   H = (I − p1ᵀ)(I − p1ᵀ)ᵀ,

p the groups' shares. In contrasts that diagonalise D against H the statistic Σ X̃_i²/(n λ_i
v + σ²‖r‖²) has a χ² law with G − 1 degrees of freedom: without noise it is Kruskal and Wallis's H
with ties counted, of two groups the square of Mann and Whitney's z.

Superiority of two groups, θ = P(X > Y) + ½P(X = Y) of bins, is T_1ᵀKT_2/(N_1N_2) + ½ with K_bc = ½
sign(b − c). Its variance: sampling Var_1(Kq_2)/N_1 + Var_2(Kq_1)/N_2 (DeLong), q_g the groups'
shares; noise, with u_g the gradient in T_g, σ²(‖u_1‖² + ‖u_2‖²) − σ⁴‖K‖²/(N_1N_2)²: the subtraction
is what the noise in the gradients adds to them.

Everything is post-processing of released counts. Sources: Kruskal & Wallis (1952); DeLong, DeLong &
Clarke-Pearson (1988); noise in the law: Gaboardi, Lim, Rogers & Vadhan (2016).
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.shared.group_bins import GroupBins
from reticent_server.numerics.independence import contrasts


@dataclass(frozen=True, slots=True, eq=False)
class RankTest:
    """X: χ² with df degrees of freedom; direction: 1 where the first group's ranks are the larger
    ones, else −1.

    kappa: what multiplies η², the share of the ranks' variance between groups, in X's
    noncentrality. mean_ranks: (G,) as shares of the records, from 0 to 1.
    """

    X: float
    df: int
    direction: float
    kappa: float
    mean_ranks: FloatArray


@dataclass(frozen=True, slots=True)
class Superiority:
    """θ with its standard error, and the part of that from noise."""

    value: float
    standard_error: float
    noise: float


def centred_ridits(pi: FloatArray) -> FloatArray:
    """(B,) share below and half of that inside, minus ½."""
    return np.asarray(np.cumsum(pi) - pi / 2 - 0.5)


def rank_test(bins: GroupBins) -> RankTest:
    """Whether the groups' distributions have equal mean ranks."""
    T, sigma, pi = bins.T, bins.sigma, bins.pooled
    n = max(float(T.sum()), 1.0)
    r = centred_ridits(pi)
    X = (T - np.outer(T.sum(axis=1), T.sum(axis=0)) / n) @ r
    V, lam = contrasts(T.sum(axis=1), sigma * np.sqrt(T.shape[1]))
    sampling = n * lam * float(pi @ r**2)
    variance = np.maximum(sampling + sigma**2 * float(r @ r), np.finfo(float).tiny)
    kappa = n * float((sampling * lam / variance).sum() / max(lam.sum(), np.finfo(float).tiny))
    return RankTest(
        X=float(((V @ X) ** 2 / variance).sum()),
        df=len(lam),
        direction=1.0 if X[0] >= 0 else -1.0,
        kappa=kappa,
        mean_ranks=np.clip(0.5 + X / bins.numbers, 0.0, 1.0),
    )


def superiority(bins: GroupBins) -> Superiority:
    """θ of the first of two groups over the second."""
    B, N, q = bins.T.shape[1], bins.numbers, bins.own
    K = 0.5 * np.sign(np.subtract.outer(np.arange(B), np.arange(B)))
    theta = float(np.clip(bins.T[0] @ K @ bins.T[1] / (N[0] * N[1]), -0.5, 0.5))
    u = ((K @ bins.T[1] / N[1] - theta) / N[0], (-K @ bins.T[0] / N[0] - theta) / N[1])
    second = bins.sigma**4 * float((K**2).sum()) / float(N[0] * N[1]) ** 2
    noise = max(bins.sigma**2 * sum(float(x @ x) for x in u) - second, second)
    placements = (K @ q[1], -K @ q[0])
    sampling = sum(
        float(q[g] @ x**2 - (q[g] @ x) ** 2) / float(N[g]) for g, x in enumerate(placements)
    )
    return Superiority(theta + 0.5, (sampling + noise) ** 0.5, noise**0.5)
