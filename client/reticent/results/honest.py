# SPDX-License-Identifier: Apache-2.0
"""Intervals for effects over time that allow for trends which are not parallel (Rambachan & Roth).

With τ the effects and δ the difference in trends, the coefficients estimate β = τ + δ, δ_{−1} = 0,
and τ = 0 before treatment. The target is θ = lᵀτ over times after treatment. Two sets for δ:

*smoothness* M: |δ_{t+1} − 2δ_t + δ_{t−1}| ≤ M. The interval is aᵀβ̂ ± c σ of fixed length, a
optimal: a equals l after treatment, and before it removes every linear trend; its bias is then at
most b = M ‖aᵀD‖₁, D the effect of second differences on δ, and c is the 1 − α quantile of
|N(b/σ, 1)|. Any such a gives a valid interval; the search only makes it short.

*relative* M̄: |δ_{t+1} − δ_t| ≤ M̄ max_{s<−1} |δ_{s+1} − δ_s|. The interval is

    lᵀβ̂ ± (z_{1−α/4} σ + M̄ B Σ |l_t| (t + 1)),

B the largest end of simultaneous 1 − α/2 intervals of the differences before treatment. By
Bonferroni it covers θ with probability 1 − α or more; the conditional intervals of the paper are
shorter.

The covariance counts sampling and privacy noise. Source: Rambachan & Roth (2023), "A more credible
approach to parallel trends", sections 2.4, 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from reticent._simultaneous import critical_value

FloatArray = NDArray[np.float64]
_REFERENCE = -1
_PENALTIES = np.geomspace(1e-2, 1e2, 9)
"""Of squared bias against variance, which is all that the search varies."""
_ROUNDS = 30
"""Of weighing again; more shorten no interval by a hundredth."""
_LEAST = 1e-9
"""Of a weight's part in the bias, so that none is divided by 0."""


@dataclass(frozen=True, slots=True)
class DynamicEffects:
    """β̂ by time since treatment without −1, increasing and without a gap, and their covariance."""

    times: tuple[int, ...]
    values: FloatArray
    covariance: FloatArray

    def __post_init__(self) -> None:
        every = sorted([*self.times, _REFERENCE])
        if every != list(range(every[0], every[-1] + 1)) or every[0] == _REFERENCE:
            raise ValueError(
                "the times since treatment need at least one before -1, and none left out"
            )

    @property
    def after(self) -> NDArray[np.bool_]:
        """(k,) which are times under treatment."""
        return np.array(self.times) > _REFERENCE

    def target(self, at: int | None) -> FloatArray:
        """(k,) l: one time, or the mean of all under treatment. Raises ValueError for another."""
        if at is None:
            return np.asarray(self.after / self.after.sum())
        if at not in self.times or at < 0:
            raise ValueError("at must be one of the times under treatment")
        return np.asarray(np.array(self.times) == at, dtype=np.float64)


def smoothness_interval(
    effects: DynamicEffects, at: int | None, M: float, alpha: float
) -> tuple[float, float]:
    """The interval of fixed length for second differences of up to M ≥ 0, in units of effects."""
    best = min(
        (_length(effects, a, M, alpha) for a in _candidates(effects, effects.target(at), M)),
        key=lambda each: each[1],
    )
    return best[0] - best[1], best[0] + best[1]


def relative_interval(
    effects: DynamicEffects, at: int | None, M: float, alpha: float
) -> tuple[float, float]:
    """The interval for changes of up to M ≥ 0 times the largest change before treatment."""
    aim, V = effects.target(at), effects.covariance
    R = _first_differences(effects)
    C = R @ V @ R.T
    ends = np.abs(R @ effects.values) + critical_value(C, 1 - alpha / 2) * np.sqrt(np.diag(C))
    grows = float(np.abs(aim) @ np.maximum(np.array(effects.times) + 1, 0))
    half = float(ndtri(1 - alpha / 4)) * float(np.sqrt(aim @ V @ aim)) + M * grows * float(
        ends.max()
    )
    value = float(aim @ effects.values)
    return value - half, value + half


def _first_differences(effects: DynamicEffects) -> FloatArray:
    """(r, k) rows of β_{s+1} − β_s before treatment, with β_{−1} = 0."""
    before = [j for j, t in enumerate(effects.times) if t < _REFERENCE]
    R = np.zeros((len(before), len(effects.times)))
    for row, j in enumerate(before):
        R[row, j] = -1.0
        if j + 1 in before:
            R[row, j + 1] = 1.0
    return R


def _trends(effects: DynamicEffects) -> tuple[FloatArray, FloatArray]:
    """(k,) the linear trend through 0 at −1, and (k, r) D: what each second difference adds to
    δ."""
    times = np.array(effects.times)
    low, high = min(times), max(_REFERENCE, *times)
    second = np.arange(low + 1, high)
    after = np.maximum(times[:, None] - second, 0) * (second >= 0)
    before = np.maximum(second - times[:, None], 0) * (second < 0)
    return times + 1.0, np.where(effects.after[:, None], after, before).astype(np.float64)


def _candidates(effects: DynamicEffects, aim: FloatArray, M: float) -> list[FloatArray]:
    """Weights a that remove every linear trend, from least variance to least bias.

    Each minimises aᵀVa + κ M² ‖aᵀD‖₁², κ a penalty, by squares that are weighted again and again:
    ‖x‖₁² is the least of Σ x_j²/w_j over w ≥ 0 with Σ w_j = 1.
    """
    line, D = _trends(effects)
    before = ~effects.after
    start = aim.copy()
    start[before] = -(aim @ line) * line[before] / (line[before] @ line[before])
    free = np.zeros((len(aim), int(before.sum()) - 1))
    free[before] = np.linalg.svd(line[before][None, :])[2][1:].T
    found, V = [start], effects.covariance
    for penalty in _PENALTIES if free.size else ():
        a = start
        for _ in range(_ROUNDS):
            x = np.abs(a @ D) + _LEAST
            bent = V + penalty * M**2 * (D / x * x.sum()) @ D.T
            a = start - free @ np.linalg.solve(free.T @ bent @ free, free.T @ bent @ start)
        found.append(a)
    return found


def _length(effects: DynamicEffects, a: FloatArray, M: float, alpha: float) -> tuple[float, float]:
    """The middle and half the length of the interval with weights a."""
    _, D = _trends(effects)
    sd = float(np.sqrt(a @ effects.covariance @ a))
    bias = M * float(np.abs(a @ D).sum()) / sd
    return float(a @ effects.values), sd * _folded_quantile(bias, 1 - alpha)


def _folded_quantile(bias: float, level: float) -> float:
    """The `level` quantile of |N(bias, 1)|."""
    from scipy.optimize import brentq  # noqa: PLC0415  (no other reply needs it)

    def inside(c: float) -> float:
        return float(ndtr(c - bias) - ndtr(-c - bias)) - level

    return float(brentq(inside, 0.0, bias + 10.0))
