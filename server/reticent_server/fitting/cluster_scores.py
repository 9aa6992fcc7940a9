# SPDX-License-Identifier: Apache-2.0
"""Cluster-robust errors of a released fit, where clusters are the levels of a public column.

After the fit two more steps release bounded scores s = w v q(y, η), ‖s‖ ≤ C = R sup|q|, of the
family's robust start (fitting.score) with the short radius R² = RADIUS q at most: at the released
coefficients θ̂

    Σ s      VectorSum  Δ = 2C          and Σ w h v vᵀ   GramSum  Δ = √2 R² sup h

whence θ′ = θ̂ + unit Wᵀ J⁻¹ mean s, near the solution of Σ s = 0; and there, with G levels,

    squares   B = Σ s_i s_iᵀ         GramSum                Δ = √2 C²
    sums      S_g = Σ_{i ∈ g} s_i    VectorSum of e_g ⊗ s   Δ = 2C   (noise: σ² an entry)
    numbers   n_g                    CountSum               Δ = √2

the last two for each of the clusterings: one column, or of two columns each and their combinations.

*Privacy.* A record lies in one cluster at most, so it contributes e_g ⊗ s with ‖e_g ⊗ s‖ = ‖s‖ ≤
C. Replacing it by a record (s′, g′) changes the stacked sums by e_g ⊗ s − e_g′ ⊗ s′, of squared
norm ‖s − s′‖² ≤ 4C² inside a cluster and ‖s‖² + ‖s′‖² ≤ 2C² between two: Δ = 2C for G clusters as
for one, attained by s′ = −s, ‖s‖ = C, in one cluster. Coefficients, coordinates and levels are
public or released before; the primitive cuts (mechanisms.noisy_sum, mechanisms.placed). The parts
and the fit's steps compose by zCDP. All else is post-processing.

*Estimate.* With Ŝ_g = S_g − (n_g/n)Σ S_g, which subtracts what remains of Σ s ≠ 0, E Σ_g Ŝ_g Ŝ_gᵀ
is the clusters' meat and νI, ν = σ²(G − 2 + GΣ(n_g/n)²), which is taken off. What clusters add to
the rows' meat, brought to θ by A = unit Wᵀ J⁻¹, is added to the fit's own covariance V between
rows:

    V_c = V + A((G/(G − 1))(Σ Ŝ_g Ŝ_gᵀ − νI) − B)Aᵀ/n²

G/(G − 1) is the textbook's factor of few clusters (CR1; (N − 1)/(N − q) is 1 for such tables).
Scores are bounded because the noise of V_c goes with C²: at the length at which least squares cuts
its own it would be ten times as large. That costs no bias where clusters share a shift of the
predictor: it moves the solutions of Σ s = 0 and of the fit's equation alike, which is what A(·)Aᵀ
says. Weights depend on v alone and θ′ is the solution, so that skewed residuals, whose cut leaves a
mean, do not look like clusters.

*Two columns* (Cameron, Gelbach & Miller 2011): V_c = V + D₁ + D₂ − D₁₂, D what the clusters of a
column, or of the combinations of both, add to the rows' covariance; each with its own G/(G − 1).
The three parts of ρ go as G^⅓, which makes the noise's variance of D₁ + D₂ − D₁₂ least. Where there
are too many combinations, or the plan expects more noise of them than MOST_COMBINED, D₁₂ is not
released and not taken off (`multi0` of R's sandwich): D₁₂ ≥ 0 but for chance where records of a
combination have something in common, so that V_c is larger. The sum need not be positive definite;
its eigenvalues, relative to V, are raised to _LEAST_EFFECT, and its variances to V's.

*Strata.* Clusters (primary sampling units) are the combinations of stratum and cluster, drawn apart
in each stratum h, of n_h clusters with records: Ŝ_g = S_g − mean_h S and n_h/(n_h − 1) in the place
of the above, so that νI is Σ n_h σ² I; a cluster that is alone in its stratum is centred at the
mean of all (`survey.lonely.psu = "adjust"`). With the design's weights that is the linearised error
of svyglm. There are (G − H)G_e/G degrees of freedom, of which the textbook has G − H.

A variance is never below the rows': by noise or with few clusters m̂ often is, and Angrist &
Pischke (2009, section 8.2.3) advise the larger of the two. With N the part of νI in m̂, its
standard deviation is √(2/G)(m + N), of which noise makes √(2/G)√((m + N)² − m²), and ALLOWED of
that is added:

    m = max(m̂, row) + ALLOWED √(Σ (2/G)((m + N)² − m²))

summed over the clusterings.

An interval of Satterthwaite's degrees of freedom in its place would be wider, or none, wherever it
is not the same. Intervals are of t laws with (G_e − 1)(V/m)² degrees of freedom, V = m + p with p
the fit's privacy variance and G_e = (Σ n_g)²/Σ n_g²: G_e − 1, at most the textbook's G − 1, where p
is small. The squares of n_g are freed of their noise.

Source: Liang & Zeger (1986); Cameron, Gelbach & Miller (2011); Binder (1983); Cameron & Miller
(2015); Carter, Schnepel & Steigerwald (2017) for
G_e. Attack: tests/privacy/test_cluster_privacy.py.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from reticent_server.fitting.trust import BoolArray
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
MOST_COMBINED = 4.0
"""Noise of the combinations of two columns, over the rows' variance, up to which they are released:
above it the noise widens intervals more than what is not taken off would.
"""
_LEAST_EFFECT = 0.05  # of the rows' covariance, a direction's in a matrix of covariances


Part = VectorSum | GramSum | CountSum


@dataclass(frozen=True, slots=True)
class LevelClusters:
    """The clusters: combinations of the stored values of each of `columns`, those of the last run
    fastest. strata: of how many equal runs of clusters each is one stratum; None: there are none.
    """

    columns: tuple[str, ...]
    codes: tuple[tuple[float, ...], ...]
    strata: int | None = None

    @property
    def size(self) -> int:
        """The number of combinations of levels, present or not."""
        return prod(map(len, self.codes))

    @property
    def name(self) -> str:
        """The clusters' columns, as replies name them."""
        return " and ".join(self.columns)

    def places(self, block: Block) -> NDArray[np.int64]:
        """(rows,) which cluster a record is in; −1 for none."""
        found: Any = 0
        for name, codes in zip(self.columns, self.codes, strict=True):
            place = level_places(codes, block.columns[name])
            found = np.where((found < 0) | (place < 0), -1, found * len(codes) + place)
        return np.asarray(found, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterScoreMap:
    """Gives s (q, rows), and for each of `clusterings` e_g ⊗ s and g (rows,)."""

    scores: ScoreMap
    clusterings: tuple[LevelClusters, ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        used = in_use(self.scores.coding.design, block)
        with np.errstate(all="ignore"):
            (score,) = self.scores(block)
            s = multiplied(score)
            places = [each.places(block) for each in self.clusterings]
        used = used & np.all([place >= 0 for place in places], axis=0)
        s = np.where(used, s, 0.0)
        found: list[Contribution] = [s]
        for place, each in zip(places, self.clusterings, strict=True):
            group = np.where(used, place, -1)
            found += [Placed(s, group, each.size), group.astype(np.float64)]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """What the steps release of q coefficients and the clusters, at ρ in RHO_UNITS."""

    size: int
    clusterings: tuple[LevelClusters, ...]
    rho: int

    @property
    def name(self) -> str:
        """The columns' names."""
        return " and ".join(dict.fromkeys(n for each in self.clusterings for n in each.columns))

    @property
    def groups(self) -> int:
        """The number of groups of all clusterings together."""
        return sum(each.size for each in self.clusterings)

    def shift(self, clip: float, reach: float) -> tuple[VectorSum, GramSum]:
        """The parts of the step to θ′. clip: C; reach: R √sup h."""
        shift, curvature = int(self.rho * _SHIFT), int(self.rho * _CURVATURE)
        return VectorSum(self.size, clip, shift), GramSum(self.size, reach, curvature)

    def sums(self, clip: float) -> tuple[Part, ...]:
        """The parts of the step by cluster: squares, then sums and numbers of each clustering."""
        squares, numbers = int(self.rho * _SQUARES), int(self.rho * _NUMBERS)
        used = sum(part.rho for part in self.shift(1.0, 1.0)) + squares + numbers
        left = self.rho - used
        roots = [each.size ** (1 / 3) for each in self.clusterings]
        parts: list[Part] = [GramSum(self.size, clip, squares)]
        for root, each in zip(roots, self.clusterings, strict=True):
            rho = int(left * root / sum(roots))
            parts += [
                VectorSum(self.size * each.size, clip, rho, groups=each.size),
                CountSum(each.size, numbers // len(roots)),
            ]
        rounded = self.rho - sum(part.rho for part in (*self.shift(1.0, 1.0), *parts))
        return (replace(parts[0], rho=parts[0].rho + rounded), *parts[1:])


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
    """What the clusters of one clustering, or of several, add. added (q, q): to the covariance
    between rows; noises: of each clustering (q, q) which was taken off, and G. present: the least
    G; effective, freedom: G_e and degrees of freedom, of the clustering with the fewest."""

    added: FloatArray
    noises: tuple[tuple[FloatArray, float], ...]
    present: float
    effective: float
    freedom: float


def between(
    fit: StandardFit,
    A: FloatArray,
    released: tuple[Released, ...],
    clusterings: tuple[LevelClusters, ...],
    n: float,
) -> Between:
    """What clusters add, from what the second step has released. The third clustering, of
    combinations, is taken off."""
    squares, *rest = released
    B = n * calmed_meat(squares.values / n, squares.sd / n, fit.curvature)
    each = [
        _of_clustering(A / n, B, rest[2 * k], rest[2 * k + 1], clusters)
        for k, clusters in enumerate(clusterings)
    ]
    signs = (1, 1, -1)[: len(each)]
    least = min(each[:2], key=lambda one: one.freedom)
    return replace(
        least,
        added=np.sum([s * one.added for s, one in zip(signs, each, strict=True)], axis=0),
        noises=tuple(noise for one in each for noise in one.noises),
        present=min(one.present for one in each[:2]),
    )


def _of_clustering(
    A: FloatArray, B: FloatArray, sums: Released, numbers: Released, clusters: LevelClusters
) -> Between:
    """D of one clustering. A: to θ, over n."""
    counts = Counts.of(numbers)
    stacked = sums.values.reshape(len(B), clusters.size)
    if clusters.strata is None:
        centred = stacked - np.outer(stacked.sum(axis=1), counts.shares)
        nu = sums.sd**2 * (clusters.size - 2 + clusters.size * float(counts.shares @ counts.shares))
        few = counts.present / (counts.present - 1)
        meat, nu, freedom = few * centred @ centred.T, few * nu, counts.effective - 1
    else:
        centred, cells, lost = in_strata(stacked, counts.there, clusters.strata)
        meat, nu = centred @ centred.T, sums.sd**2 * cells
        freedom = max(cells - lost, 1) * counts.effective / counts.present
    return Between(
        added=np.asarray(A @ (meat - nu * np.eye(len(B)) - B) @ A.T),
        noises=((np.asarray(nu * A @ A.T), counts.present),),
        present=counts.present,
        effective=counts.effective,
        freedom=max(freedom, 1.0),
    )


def in_strata(sums: FloatArray, there: BoolArray, strata: int) -> tuple[FloatArray, float, int]:
    """Deviations of sums (q, G) of clusters with records, `there` (G,), in H equal runs: (q, G)
    √(n_h/(n_h − 1)) times the deviations from the stratum's mean, 0 for others, from the mean of
    all where one is alone; the number of clusters; that of strata with any. Noise of variance σ² in
    a sum adds about σ² times the number of clusters to a sum of squares."""
    q = len(sums)
    cells = there.reshape(strata, -1)
    values = np.where(cells, sums.reshape(q, strata, -1), 0.0)
    number = cells.sum(axis=1)
    total = max(int(number.sum()), 1)
    alone = number == 1
    mean = values.sum(axis=2) / np.maximum(number, 1)
    mean = np.where(alone, (values.sum(axis=(1, 2)) / total)[:, None], mean)
    factor = np.sqrt(np.where(alone, 1.0, number / np.maximum(number - 1, 1)))
    found = np.where(cells, (values - mean[:, :, None]) * factor[None, :, None], 0.0)
    return found.reshape(q, -1), float(total), int(np.count_nonzero(number))


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """there (G,): the levels whose number of records is above its noise. shares (G,): n_g/n of
    those; present, effective: G and G_e, 2 at least."""

    there: BoolArray
    shares: FloatArray
    present: float
    effective: float

    @classmethod
    def of(cls, released: Released) -> "Counts":
        """From noisy numbers of records by level: a level is present where its number is clear of
        its noise.
        """
        counts = released.values
        there = np.asarray(trust.clear(counts, released.sd), dtype=bool)
        present = max(float(there.sum()), 2.0)
        kept = np.where(there, counts, 0.0)
        total = max(float(kept.sum()), 1.0)
        squares = float(kept @ kept) - present * released.sd**2
        effective = total**2 / max(squares, total**2 / present)
        return cls(there, kept / total, present, max(effective, 2.0))


def clustered(
    coding: Coding, fit: StandardFit, found: Between, column: str
) -> tuple[StandardFit, FloatArray]:
    """The fit with the covariance between clusters in place of that between rows; N/m (q,) of the
    reported coefficients. column: the name or names of whose levels clusters are.
    """
    back = back_transform(coding).matrix
    rows = np.diag(back @ fit.sampling @ back.T)
    root = power(fit.sampling, 0.5)
    turn = np.linalg.inv(root)
    effects = np.eye(len(rows)) + turn @ found.added @ turn
    kept = back @ root @ floored(effects, _LEAST_EFFECT) @ root @ back.T
    variances = np.maximum(rows + np.diag(back @ found.added @ back.T), rows)
    noises = [(np.diag(back @ noise @ back.T), G) for noise, G in found.noises]
    unsure = np.sqrt(sum(2 / G * ((variances + N) ** 2 - variances**2) for N, G in noises))
    scale = np.sqrt((variances + ALLOWED * unsure) / np.diag(kept))
    inside = np.linalg.solve(back, np.outer(scale, scale) * kept)
    freedom = PublicClusters(
        column=column,
        present=found.present,
        effective=found.effective,
        freedom=found.freedom,
        design_effects=variances / rows,
    )
    sampling = symmetric(np.linalg.solve(back, inside.T))
    taken = sum(N for N, _ in noises) / variances
    return replace(fit, sampling=sampling, freedom=freedom), np.asarray(taken)
