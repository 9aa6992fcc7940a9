# SPDX-License-Identifier: Apache-2.0
"""Cluster-robust errors of a released fit, where clusters are the levels of a public column.

After the fit two more steps release bounded scores s = w v q(y, η), ‖s‖ ≤ C = R sup|q|, of the
family's robust start (fitting.score) with the short radius R² = RADIUS q at most: at the released
coefficients θ̂

    Σ s      VectorSum  Δ = 2C          and Σ w h v vᵀ   GramSum  Δ = √2 R² sup h

whence θ′ = θ̂ + unit Wᵀ J⁻¹ mean s, near the solution of Σ s = 0; and there, with G levels,

    sums      S_g = Σ_{i ∈ g} s_i    VectorSum of e_g ⊗ s   Δ = 2C        (noise of variance σ² an entry)
    squares   B = Σ s_i s_iᵀ         GramSum                Δ = √2 C²
    numbers   n_g                    CountSum               Δ = √2

*Privacy.* A record lies in one cluster at most, so it contributes e_g ⊗ s with ‖e_g ⊗ s‖ = ‖s‖ ≤
C. Replacing it by a record (s′, g′) changes the stacked sums by e_g ⊗ s − e_g′ ⊗ s′, of squared
norm ‖s − s′‖² ≤ 4C² inside a cluster and ‖s‖² + ‖s′‖² ≤ 2C² between two: Δ = 2C for G clusters as
for one, attained by s′ = −s, ‖s‖ = C, in one cluster. Coefficients, coordinates and levels are
public or released before; the primitive cuts (mechanisms.noisy_sum, mechanisms.placed). The parts
and the fit's steps compose by zCDP. All else is post-processing.

*Estimate.* With Ŝ_g = S_g − (n_g/n)Σ S_g, which takes off what is left of Σ s ≠ 0, E Σ_g Ŝ_g Ŝ_gᵀ
is the clusters' meat and νI, ν = σ²(G − 2 + GΣ(n_g/n)²), which is taken off. What clusters add to
the rows' meat, brought to θ by A = unit Wᵀ J⁻¹, is added to the fit's own covariance V between rows:

    V_c = V + A((G/(G − 1))(Σ Ŝ_g Ŝ_gᵀ − νI) − B)Aᵀ/n²

G/(G − 1) is the textbook's factor of few clusters (CR1; (N − 1)/(N − q) is 1 for such tables).
Scores are bounded because the noise of V_c goes with C²: at the length at which least squares cuts
its own it would be ten times as large. That costs no bias where clusters share a shift of the
predictor: it moves the solutions of Σ s = 0 and of the fit's equation alike, which is what A(·)Aᵀ
says. Weights depend on v alone and θ′ is the solution, so that skewed residuals, whose cut leaves a
mean, do not look like clusters.

A variance is never below the rows': by noise or with few clusters m̂ often is, and Angrist & Pischke
(2009, section 8.2.3) advise the larger of the two. With N the part of νI in m̂, its standard
deviation is √(2/G)(m + N), of which noise makes √(2/G)√((m + N)² − m²), and ALLOWED of that is
added:

    m = max(m̂, row) + ALLOWED √(2/G) √((m + N)² − m²)

An interval of Satterthwaite's degrees of freedom in its place would be wider, or none, wherever it
is not the same. Intervals are of t laws with (G_e − 1)(V/m)² degrees of freedom, V = m + p with p
the fit's privacy variance and G_e = (Σ n_g)²/Σ n_g²: G_e − 1, at most the textbook's G − 1, where p
is small. The squares of n_g are freed of their noise.

Source: Liang & Zeger (1986); Cameron & Miller (2015); Carter, Schnepel & Steigerwald (2017) for
G_e. Attack: tests/privacy/test_cluster_privacy.py.
"""

from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import (
    Block,
    Contribution,
    CountSum,
    FloatArray,
    GramSum,
    Placed,
    Released,
    VectorSum,
    multiplied,
)
from reticent_server.fitting import trust
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.covariance import calmed_meat
from reticent_server.fitting.maps import ScoreMap
from reticent_server.fitting.newton import LARGEST_THETA
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.standard_fit import PublicClusters, StandardFit
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.level_places import level_places
from reticent_server.numerics.matrices import floored, power, symmetric

RADIUS = 1.25
"""R²/q of the scores that clusters are told by: most records of a normal design weigh 1."""
SHARE = 4  # of ρ, one part for the clusters' steps
_SHIFT, _CURVATURE, _SQUARES, _NUMBERS = 0.07, 0.07, 0.06, 0.05  # of that part; the rest sums
ALLOWED = 0.5
"""Of the noise's standard deviation in a variance: intervals then cover .942 to .999 for 15 and 40
clusters, design effects of 1 to 30, and N from .1 to 20 of the rows' variance; with 0 .92.
"""
_LEAST_EFFECT = 0.05  # of the rows' covariance, a direction's in a matrix of covariances


@dataclass(frozen=True, slots=True)
class LevelClusters:
    """The clusters: the stored values (G,) of `column`."""

    column: str
    codes: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterScoreMap:
    """Gives e_g ⊗ s, s (q, rows) and g (rows,)."""

    scores: ScoreMap
    clusters: LevelClusters

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        used = in_use(self.scores.coding.design, block)
        with np.errstate(all="ignore"):
            (score,) = self.scores(block)
            s = multiplied(score)
            places = level_places(self.clusters.codes, block.columns[self.clusters.column])
        group = np.where(used, places, -1)
        s = np.where(group >= 0, s, 0.0)
        return Placed(s, group, self.clusters.size), s, group.astype(np.float64)


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """What the steps release of q coefficients and the clusters, at ρ in RHO_UNITS."""

    size: int
    clusters: LevelClusters
    rho: int

    def shift(self, clip: float, reach: float) -> tuple[VectorSum, GramSum]:
        """Of the step to θ′. clip: C; reach: R √sup h."""
        shift, curvature = int(self.rho * _SHIFT), int(self.rho * _CURVATURE)
        return VectorSum(self.size, clip, shift), GramSum(self.size, reach, curvature)

    def sums(self, clip: float) -> tuple[VectorSum, GramSum, CountSum]:
        """Of the step by cluster."""
        G, squares, numbers = self.clusters.size, *self._counted
        used = sum(part.rho for part in self.shift(1.0, 1.0)) + squares + numbers
        return (
            VectorSum(self.size * G, clip, self.rho - used, groups=G),
            GramSum(self.size, clip, squares),
            CountSum(G, numbers),
        )

    @property
    def _counted(self) -> tuple[int, int]:
        return int(self.rho * _SQUARES), int(self.rho * _NUMBERS)


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """What the first step tells. theta (q,): θ′; A (q, q): from mean scores to θ."""

    theta: FloatArray
    A: FloatArray


def shift_of(fit: StandardFit, unit: float, released: tuple[Released, ...], n: float) -> Shift:
    """From the released sum and curvature of n records. unit: the score's."""
    mean, curvature = released
    J = calmed_meat(curvature.values / n, curvature.sd / n, fit.curvature)
    A = unit * np.linalg.solve(J, fit.transform).T
    theta = np.clip(fit.theta + A @ mean.values / n, -LARGEST_THETA, LARGEST_THETA)
    return Shift(theta, np.asarray(A))


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """column: whose levels the clusters are. added (q, q): to the covariance between rows; noise
    (q, q): which was taken off. present, effective: G and G_e of the levels with records.
    """

    column: str
    added: FloatArray
    noise: FloatArray
    present: float
    effective: float


def between(
    fit: StandardFit,
    A: FloatArray,
    released: tuple[Released, ...],
    clusters: LevelClusters,
    n: float,
) -> Between:
    """What clusters add, from what the second step has released."""
    sums, squares, numbers = released
    G, q = clusters.size, len(squares.values)
    shares, present, effective = _shares(numbers)
    stacked = sums.values.reshape(q, G)
    centred = stacked - np.outer(stacked.sum(axis=1), shares)
    nu = sums.sd**2 * (G - 2 + G * float(shares @ shares))
    B = n * calmed_meat(squares.values / n, squares.sd / n, fit.curvature)
    few = present / (present - 1)
    A = A / n
    return Between(
        column=clusters.column,
        added=np.asarray(A @ (few * (centred @ centred.T - nu * np.eye(q)) - B) @ A.T),
        noise=np.asarray(few * nu * A @ A.T),
        present=present,
        effective=effective,
    )


def _shares(released: Released) -> tuple[FloatArray, float, float]:
    """n_g/n (G,), G and G_e, 2 at least: of the levels whose number of records is above its
    noise.
    """
    counts = released.values
    there = np.asarray(trust.clear(counts, released.sd), dtype=bool)
    present = max(float(there.sum()), 2.0)
    kept = np.where(there, counts, 0.0)
    total = max(float(kept.sum()), 1.0)
    squares = float(kept @ kept) - present * released.sd**2
    effective = total**2 / max(squares, total**2 / present)
    return kept / total, present, max(effective, 2.0)


def clustered(coding: Coding, fit: StandardFit, found: Between) -> tuple[StandardFit, FloatArray]:
    """The fit with the covariance between clusters in place of that between rows; N/m (q,) of the
    reported coefficients.
    """
    back = back_transform(coding).matrix
    rows = np.diag(back @ fit.sampling @ back.T)
    root = power(fit.sampling, 0.5)
    turn = np.linalg.inv(root)
    effects = np.eye(len(rows)) + turn @ found.added @ turn
    kept = back @ root @ floored(effects, _LEAST_EFFECT) @ root @ back.T
    variances = np.maximum(rows + np.diag(back @ found.added @ back.T), rows)
    noise = np.diag(back @ found.noise @ back.T)
    unsure = np.sqrt(2 / found.present * ((variances + noise) ** 2 - variances**2))
    scale = np.sqrt((variances + ALLOWED * unsure) / np.diag(kept))
    inside = np.linalg.solve(back, np.outer(scale, scale) * kept)
    freedom = PublicClusters(
        column=found.column,
        present=found.present,
        effective=found.effective,
        design_effects=variances / rows,
    )
    sampling = symmetric(np.linalg.solve(back, inside.T))
    return replace(fit, sampling=sampling, freedom=freedom), noise / variances
