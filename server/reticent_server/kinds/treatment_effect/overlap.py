# SPDX-License-Identifier: Apache-2.0
"""What the noisy histogram of propensities by arm says: how many are in each arm, how large weights
are, and whether anybody is compared with nobody.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.results import Size
from reticent_server.fitting.trust import clear
from reticent_server.kinds.treatment_effect.targets import EffectTarget

BINS = 20  # of the propensity: a twentieth each, the outer ones up to the trimming bound
_FEW = 5.0  # records whose weight the first sums may cut: they only centre


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Propensities of the treated and of the controls. edges: (B + 1,); treated, controls: (B,)
    noisy numbers of records.
    """

    edges: list[float]
    treated: list[float]
    controls: list[float]
    count_standard_error: Size


@dataclass(frozen=True, slots=True, eq=False)
class PropensityHistogram:
    """counts: (2, B) of controls and of the treated; sd: of the noise of one. edges: (B + 1,)."""

    edges: FloatArray
    counts: FloatArray
    sd: float

    @property
    def numbers(self) -> tuple[float, float]:
        """The numbers of controls and of treated."""
        controls, treated = self.counts.sum(axis=1).tolist()
        return controls, treated

    @property
    def number_sd(self) -> float:
        """The standard deviation of the noise of such a number."""
        return self.sd * sqrt(self.counts.shape[1])

    @property
    def sure(self) -> bool:
        """Whether both arms are above the noise (fitting.trust.clear)."""
        return bool(clear(min(self.numbers), self.number_sd))

    def weights(self, target: EffectTarget) -> FloatArray:
        """(2, B) of the controls and the treated at each bin's middle."""
        return self._weights(target, (self.edges[1:] + self.edges[:-1]) / 2)

    def _weights(self, target: EffectTarget, e: FloatArray) -> FloatArray:
        """(2, k) at propensities (k,), within the trimming bounds."""
        e = np.clip(e, self.edges[1], self.edges[-2])
        w = target.weights(e, np.ones_like(e))
        return np.stack([w.control, w.treated])

    def largest(self, target: EffectTarget) -> float:
        """The weight that few records are beyond."""
        low, high = (self._weights(target, e) for e in (self.edges[:-1], self.edges[1:]))
        w, N = np.maximum(low, high).ravel(), self.counts.ravel()
        N = np.where(self.sd < N, N, 0.0)
        order = np.argsort(-w)
        beyond = np.cumsum(N[order])
        least = max(_FEW, self.number_sd)
        return float(w[order][min(int(np.sum(beyond < least)), len(w) - 1)])

    def effective(self, target: EffectTarget) -> tuple[float, float]:
        """(Σw)²/Σw² of the controls and of the treated."""
        w, N = self.weights(target), np.maximum(self.counts, 0.0)
        squares = np.maximum((w**2 * N).sum(axis=1), np.finfo(float).tiny)
        controls, treated = ((w * N).sum(axis=1) ** 2 / squares).tolist()
        return controls, treated

    def beyond(self, target: EffectTarget) -> tuple[float, float]:
        """The share of records with propensities at which weights are cut, and its noise."""
        ends = [at for at, open_ in ((0, target.low), (-1, target.high)) if open_]
        total = max(float(self.counts.sum()), 1.0)
        return float(self.counts[:, ends].sum()) / total, self.sd * sqrt(2 * len(ends)) / total

    @property
    def shown(self) -> Overlap:
        """The histogram by arm, as a reply has it."""
        controls, treated = self.counts.tolist()
        return Overlap(
            edges=self.edges.tolist(),
            treated=treated,
            controls=controls,
            count_standard_error=self.sd,
        )


def histogram(released: Released, edges: FloatArray) -> PropensityHistogram:
    """The histogram of the released counts of an OverlapMap."""
    return PropensityHistogram(edges, released.values.reshape(2, -1), released.sd)


def public_edges(trim: float) -> FloatArray:
    """(BINS + 1,) from 0 to 1, the trimming bound and one less it among them."""
    inner = np.linspace(trim, 1 - trim, BINS - 1)
    return np.concatenate([[0.0], inner, [1.0]])
