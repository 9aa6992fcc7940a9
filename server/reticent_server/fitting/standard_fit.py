# SPDX-License-Identifier: Apache-2.0
"""A released fit in standardised units, and what is known of its standard errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.identifiability import Directions
from reticent_server.fitting.person_scores import Clusters
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.trust import SOUND, BoolArray, TrustVerdict
from reticent_server.numerics.matrices import symmetric


@dataclass(frozen=True, slots=True, eq=False)
class StandardFit:
    """The released fit in standardised units and internal order.

    theta (q,); sampling and privacy covariances (q, q); scale; directions: which the releases can
    tell from none; count: records in use, as released; freedom: where scores are those of persons;
    information: (q, q) mean weighted curvature, per unit of the response; inverse: (q, q) its
    inverse, as the fit used it; transform: W. verdict: whether its standard errors are to be
    trusted (fitting.trust). cut, taken: where scores were cut as a whole, and the part (q, q) of
    `privacy` that allows for what the cut takes; None elsewhere. sparse: (q,) which coefficients
    are compared with a level of too few events (fitting.sparse_levels); None where that is not
    asked. events: (q,) about how many events decide each coefficient, where records are not all
    worth the same; None elsewhere. bend: (q,) what `theta` has been moved by because the mean score
    bends, and left: the part (q, q) of `privacy` that is of the way that is left; None elsewhere.
    """

    theta: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    scale: float
    directions: Directions
    count: float
    information: FloatArray
    inverse: FloatArray
    transform: FloatArray
    freedom: "Freedom | PublicClusters | None" = None
    verdict: TrustVerdict = SOUND
    cut: RowCut | None = None
    taken: FloatArray | None = None
    sparse: BoolArray | None = None
    events: FloatArray | None = None
    bend: FloatArray | None = None
    left: FloatArray | None = None

    @property
    def curvature(self) -> FloatArray:
        """J (q, q) in u."""
        W = self.transform
        return symmetric(W @ self.information @ W.T)


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """What a cluster-robust variance V_s of cᵀθ is known to: released with noise of sd `noise`
    ‖Aᵀc‖², from `clusters` persons. A (q, q): from mean scores to θ. unsure: the operator norm of
    the Jacobian's noise relative to its smallest eigenvalue, at most 1.
    """

    clusters: Clusters
    noise: float
    A: FloatArray
    unsure: float

    @property
    def verdict(self) -> TrustVerdict:
        """Whether intervals are right: persons enough, few of them clipped, a Jacobian above its
        noise.
        """
        return trust.persons(self.clusters.effective, self.clusters.clipped, self.unsure)

    def degrees(
        self, combinations: FloatArray, sampling: FloatArray, total: FloatArray
    ) -> FloatArray:
        """(k,) Satterthwaite's degrees of freedom of the variances `total` (k,) of combinations (k,
        q), of which `sampling` (k,) is the persons': 2V²/(noise's variance + 2V_s²/(N_eff − 1)).
        """
        squared = np.sum((combinations @ self.A) ** 2, axis=1)
        unsure = (self.noise * squared) ** 2
        unsure += 2 * sampling**2 / max(self.clusters.effective - 1, 1.0)
        return np.asarray(2 * total**2 / np.maximum(unsure, np.finfo(float).tiny))

    @property
    def words(self) -> str:
        """What the clip of persons' sums does to the estimand."""
        return self.clusters.words

    @property
    def told(self) -> dict[str, Any]:
        """What a reply says of them beside the degrees of freedom."""
        return {
            "clusters": self.clusters.persons,
            "effective_clusters": self.clusters.effective,
            "clipped_share": self.clusters.clipped,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PublicClusters:
    """What a variance between the levels of a public column is known to (fitting.cluster_scores).
    present: G; effective: G_e; freedom: degrees of freedom. design_effects (q,): of the reported
    coefficients, the variance between clusters over that between rows."""

    column: str
    present: float
    effective: float
    freedom: float
    design_effects: FloatArray

    def degrees(
        self,
        combinations: FloatArray,  # noqa: ARG002 - as of Freedom
        sampling: FloatArray,
        total: FloatArray,
    ) -> FloatArray:
        """(k,) f(V/m)², f = `freedom`, of the variances V = `total` (k,), of which m = `sampling`
        (k,) is the clusters'."""
        return np.asarray(self.freedom * (total / np.maximum(sampling, np.finfo(float).tiny)) ** 2)

    @property
    def words(self) -> str:
        """Nothing: what is estimated stays."""
        return ""

    @property
    def told(self) -> dict[str, Any]:
        """What a reply says of them beside the degrees of freedom."""
        return {
            "cluster": self.column,
            "clusters": self.present,
            "effective_clusters": self.effective,
            "design_effects": self.design_effects.tolist(),
        }
