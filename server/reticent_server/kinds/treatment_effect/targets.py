# SPDX-License-Identifier: Apache-2.0
"""Whose effect is estimated, and with which weights.

With the propensity e of a record and a tilt h(e), the weights are h/e of the treated and h/(1 − e)
of the controls, and the effect is averaged over records weighted by g:

    ate      h = 1          everybody
    att      h = e          the treated (g = A)
    atc      h = 1 − e      the controls (g = 1 − A)
    overlap  h = e(1 − e)   those who might be either

e lies within [t, 1 − t], t public, so that weights are at most 1/t. Slopes are derivatives by the
predictor η of e, de/dη = e(1 − e).

Source: Li, Morgan & Zaslavsky (2018), Balancing covariates via propensity score weighting.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of records (rows,): g of the target, and the weights of a treated and of a
    control record; their slopes by η."""

    target: FloatArray
    treated: FloatArray
    control: FloatArray
    target_slope: FloatArray
    treated_slope: FloatArray
    control_slope: FloatArray


class EffectTarget(ABC):
    """Whose effect. low, high: whether propensities near 0 or near 1 have weights without bound.
    most: the largest g.
    """

    low = False
    high = False
    most = 1.0

    @abstractmethod
    def weights(self, e: FloatArray, treated: FloatArray) -> Weights:
        """The weights of propensities (rows,) and 0/1 treatments (rows,)."""


class _All(EffectTarget):
    low, high = True, True

    def weights(self, e: FloatArray, treated: FloatArray) -> Weights:  # noqa: ARG002
        one, none = np.ones_like(e), np.zeros_like(e)
        return Weights(one, 1 / e, 1 / (1 - e), none, -(1 - e) / e, e / (1 - e))


class _Treated(EffectTarget):
    high = True

    def weights(self, e: FloatArray, treated: FloatArray) -> Weights:
        one, none, odds = np.ones_like(e), np.zeros_like(e), e / (1 - e)
        return Weights(treated, one, odds, none, none, odds)


class _Controls(EffectTarget):
    low = True

    def weights(self, e: FloatArray, treated: FloatArray) -> Weights:
        one, none, odds = np.ones_like(e), np.zeros_like(e), (1 - e) / e
        return Weights(1 - treated, odds, one, none, -odds, none)


class _Overlap(EffectTarget):
    most = 0.25

    def weights(self, e: FloatArray, treated: FloatArray) -> Weights:  # noqa: ARG002
        h = e * (1 - e)
        return Weights(h, 1 - e, e, h * (1 - 2 * e), -h, h)


TARGETS: Mapping[str, EffectTarget] = {
    "ate": _All(),
    "att": _Treated(),
    "atc": _Controls(),
    "overlap": _Overlap(),
}
