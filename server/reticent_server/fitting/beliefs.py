# SPDX-License-Identifier: Apache-2.0
"""A bank of filters: what is left of the way, under several beliefs about the curvature.

Public rows tell the curvature H of a mean score well where many records were whitened. Elsewhere
real tables have had .25 to 1 of it along what is left: a whitening in noise takes second moments
too large, and long rows have the larger residuals. A filter that is sure of H then stops short of
the solution and does not know. So each belief says that H is a factor h times what is expected, and
is a filter of its own (fitting.filter): the way that is left is N(off, C) under it. Each released
score has a chance under each belief,

    g ~ N(hH off, (hH)C(hH)ᵀ + N)        N: its noise, and what H is wrong by from axis to axis

which is the comparison of the gradient's fall with its prediction: a step along which a score falls
by half of what a belief predicts halves that belief's chance, or worse. A step goes the mean way of
all beliefs, by their chances, and what is left has the covariance of their mixture. Before the
first step how far there is to go is not known, so that a first score tells nothing of h.

A score that is unlikely under all beliefs says that the fit is farther off than it knows: the way
that it asks for is added to C. *The last check*: no intervals are given where the steps have told
that the curvature is not what it was taken for and no Jacobian has measured it
(fitting.trust.believed). All of it is post-processing.

Source: Magill (1965), optimal adaptive estimation; Bar-Shalom, Li & Kirubarajan (2001), §11.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np
from scipy.special import chdtrc

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.filter import (
    LEAST_NOISE,
    Moved,
    StepCurvature,
    after,
    curvature_error,
)
from reticent_server.fitting.trust.thresholds import LEAST_FACTOR, SURPRISE

Factors = Sequence[tuple[float, float]]
"""(h, its chance before any score): the chances add up to 1."""

EXPECTED: Factors = ((1.0, 1.0),)
"""The curvature is what is expected of it."""
SEEN: Factors = ((1.0, 0.5), (0.71, 0.25), (0.5, 0.13), (0.35, 0.08), (0.25, 0.04))
"""Steps of √2 down from 1. Along what was left before the last step it was .28 to 1.03 on twelve of
23 linear models of real tables (every other one of benchmarks.real_tables): within .76 to 1.03 on
seven, .59 and .58 on two, .43 on one, .31 and .28 on two.
"""


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureBelief:
    """That H is `factor` times what is expected. log_chance: of that. off (q,), C (q, q): mean and
    covariance of the way that is left, in u.
    """

    factor: float
    log_chance: float
    off: FloatArray
    C: FloatArray

    @property
    def chance(self) -> float:
        """The probability of this factor, in (0, 1]."""
        return exp(self.log_chance)

    @property
    def square(self) -> FloatArray:
        """(q, q) the mean square of the way that is left."""
        return np.asarray(self.C + np.outer(self.off, self.off))

    def of(self, curvature: StepCurvature) -> StepCurvature:
        """As it is believed to be."""
        J, back = curvature.J * self.factor, curvature.back * sqrt(self.factor)
        return replace(curvature, J=J, back=back)


Beliefs = tuple[CurvatureBelief, ...]


def beliefs_of(factors: Factors, C: FloatArray) -> Beliefs:
    """Before any step, with the covariance C (q, q) of the way."""
    return tuple(CurvatureBelief(h, log(chance), np.zeros(len(C)), C) for h, chance in factors)


def covariance(beliefs: Beliefs) -> FloatArray:
    """C (q, q): their mean square of the way from where the fit stands."""
    return np.asarray(sum(b.chance * b.square for b in beliefs))


def mean_factor(beliefs: Beliefs) -> float:
    """h by the chances."""
    return sum(b.chance * b.factor for b in beliefs)


def doubt(beliefs: Beliefs) -> float:
    """The chance that the curvature is less than LEAST_FACTOR of what is expected and measured."""
    return sum(b.chance for b in beliefs if b.factor < LEAST_FACTOR.value)


def widened(beliefs: Beliefs, C: FloatArray) -> Beliefs:
    """With (q, q) more between here and the solution."""
    return tuple(replace(b, C=b.C + C) for b in beliefs)


def faded(beliefs: Beliefs, left: float) -> Beliefs:
    """After a released Jacobian, which leaves so much of what was expected of the curvature."""
    return tuple(replace(b, factor=1 + left * (b.factor - 1)) for b in beliefs)


def likeliest(beliefs: Sequence[CurvatureBelief]) -> CurvatureBelief:
    """The one with the largest chance."""
    return max(beliefs, key=lambda b: b.log_chance)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """A belief before a score g (q,). H (q, q): as believed; N (q, q): noise and what H is wrong
    by; rest (q,): g less its mean; S (q, q): its covariance; square: χ² of the score, of q degrees
    where the belief is right.
    """

    belief: CurvatureBelief
    H: FloatArray
    N: FloatArray
    rest: FloatArray
    S: FloatArray
    square: float

    def moved(self, *, told: bool) -> CurvatureBelief:
        """After the score. told: whether it says something of the factor."""
        b, H = self.belief, self.H
        G = np.asarray(np.linalg.solve(self.S, H @ b.C).T)
        fit = self.square + float(np.linalg.slogdet(self.S)[1]) if told else 0.0
        off, C = b.off + G @ self.rest, after(b.C, G, H, self.N)
        return CurvatureBelief(b.factor, b.log_chance - fit / 2, off, C)


def _seen(b: CurvatureBelief, curvature: StepCurvature, noise: FloatArray, g: FloatArray) -> _Seen:
    own = b.of(curvature)
    H = own.H
    N = noise + curvature_error(b.square, own) + LEAST_NOISE * np.eye(len(g))
    rest, S = g - H @ b.off, H @ b.C @ H.T + N
    return _Seen(b, H, N, rest, S, float(rest @ np.linalg.solve(S, rest)))


def _chance(seen: Sequence[_Seen], g: FloatArray) -> float:
    return float(sum(s.belief.chance * chdtrc(len(g), s.square) for s in seen))


def surprise(beliefs: Beliefs, curvature: StepCurvature, noise: FloatArray, g: FloatArray) -> float:
    """The chance of a mean score as far as g (q,) from what is believed: of χ²_q, by the beliefs'
    chances. noise: (q, q), its covariance.
    """
    return _chance([_seen(b, curvature, noise, g) for b in beliefs], g)


def surprised(
    beliefs: Beliefs, curvature: StepCurvature, noise: FloatArray, g: FloatArray
) -> Beliefs:
    """Before a step, with more of a way where the released mean score g (q,) asks for it: where its
    chance is below SURPRISE the way dd̂ᵀ is added to C, d̂ = H⁻¹(g − H off).
    """
    if surprise(beliefs, curvature, noise, g) >= SURPRISE.value:
        return beliefs
    return _farther(beliefs, curvature, g)


def _farther(beliefs: Beliefs, curvature: StepCurvature, g: FloatArray) -> Beliefs:
    ways = (np.linalg.solve(b.of(curvature).H, g) - b.off for b in beliefs)
    return tuple(replace(b, C=b.C + np.outer(d, d)) for b, d in zip(beliefs, ways, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Stepped:
    """The way (q,) that a step goes, and what is believed after it."""

    way: FloatArray
    beliefs: Beliefs

    @classmethod
    def sure(cls, step: Moved) -> "Stepped":
        """The step of a filter that takes H for what is expected."""
        return cls(step.way, beliefs_of(EXPECTED, step.covariance))


def stepped(
    beliefs: Beliefs,
    curvature: StepCurvature,
    noise: FloatArray,
    g: FloatArray,
    *,
    checked: bool = False,
) -> Stepped:
    """A step: the mean way, by the chances after the mean score g (q,); the first one the way of
    the likeliest belief, as it has told nothing and the mean of 1/h is half as long again.

    checked: with more of a way before it where the score asks for it (`surprised`).
    """
    seen = [_seen(b, curvature, noise, g) for b in beliefs]
    if checked and _chance(seen, g) < SURPRISE.value:
        beliefs = _farther(beliefs, curvature, g)
        seen = [_seen(b, curvature, noise, g) for b in beliefs]
    told = any(b.off.any() for b in beliefs)
    moved = [each.moved(told=told) for each in seen]
    most = max(b.log_chance for b in moved)
    whole = most + log(sum(exp(b.log_chance - most) for b in moved))
    moved = [replace(b, log_chance=b.log_chance - whole) for b in moved]
    way = np.asarray(sum(b.chance * b.off for b in moved)) if told else likeliest(moved).off
    return Stepped(way, tuple(replace(b, off=b.off - way) for b in moved))
