# SPDX-License-Identifier: Apache-2.0
"""The reply about group–time effects: for each set of controls, every effect and its averages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.results import Interval, Share, Size
from reticent_server.kinds.event_study.plan import PretrendTest
from reticent_server.kinds.staggered_did.effects import (
    CohortCells,
    Combination,
    GroupTime,
    average,
    covariance,
    group_time_effects,
    pooled,
)

_SMALLEST = 1e-10  # relative eigenvalue at which a covariance is inverted, as of a singular one


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect on the treated, in the units of the response."""

    value: float
    standard_error: Size
    privacy_standard_error: Size
    confidence_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeEffect:
    """ATT(g, t). cohort: g, the first period under treatment. period: t."""

    cohort: int
    period: int
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsBy:
    """Averages of effects by time since treatment, cohort or period (`at`), and one over all.

    covariance: (k, k) of sampling and noise. overall: null where there is none.
    """

    at: list[int]
    effects: list[Effect]
    covariance: list[list[float]]
    overall: Effect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledEffects:
    """What one set of controls gives. simple: the average over all treated cohorts and periods.
    dynamic: by time since treatment, the reference −1 left out.
    """

    simple: Effect
    dynamic: EffectsBy
    by_cohort: EffectsBy
    calendar: EffectsBy
    group_time: list[GroupTimeEffect]
    pretrend: PretrendTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A cohort: its first period under treatment (null: never), its noisy number (of rows in all
    periods where the unit is a row), and whether that is above its noise; without, it is left out.
    """

    start: int | None
    size: float
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StaggeredDidResult:
    """Effects with those never treated as controls, and with those not yet treated; null where no
    such control is above the noise. radius: to what length responses are cut, a person's deviations
    from the own mean together, or a row's distance from `centre`.
    """

    cohorts: list[Cohort]
    periods: list[int]
    never: ControlledEffects | None
    not_yet: ControlledEffects | None
    radius: float
    centre: float
    confidence_level: Share
    estimand: str
    n: int
    warnings: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """How combinations are written down. z: the normal quantile of an interval's end."""

    cells: CohortCells
    z: float

    def effects(self, combinations: Sequence[Combination]) -> list[Effect]:
        """Each with its standard errors and interval."""
        sampling, privacy = self._variances(combinations)
        errors = np.sqrt(sampling + privacy).tolist()
        rows = zip(combinations, errors, np.sqrt(privacy).tolist(), strict=True)
        return [
            Effect(
                value=c.value,
                standard_error=error,
                privacy_standard_error=noise,
                confidence_interval=(c.value - self.z * error, c.value + self.z * error),
            )
            for c, error, noise in rows
        ]

    def _variances(self, combinations: Sequence[Combination]) -> tuple[FloatArray, FloatArray]:
        D = np.stack([c.gradient for c in combinations])
        both = [
            np.maximum(np.einsum("ack,ckl,acl->a", D, V, D, optimize=True), 0.0)
            for V in (self.cells.sampling, self.cells.privacy)
        ]
        return both[0], both[1]

    def covariance(self, combinations: Sequence[Combination]) -> FloatArray:
        return covariance(combinations, self.cells.sampling + self.cells.privacy)

    def by(
        self, of: dict[int, list[GroupTime]], overall: Combination | None, *, equally: bool = False
    ) -> EffectsBy:
        """equally: within one key by equal weights, else by cohorts' shares."""
        at = sorted(of)
        averages = [
            average([e.effect for e in of[k]]) if equally else pooled(self.cells, of[k]) for k in at
        ]
        return EffectsBy(
            at=at,
            effects=self.effects(averages),
            covariance=self.covariance(averages).tolist(),
            overall=None if overall is None else self.effects([overall])[0],
        )


def controlled_effects(
    cells: CohortCells, first: int, level: float, *, never: bool
) -> ControlledEffects | None:
    """All that one set of controls gives. first: the first period. None without any effect."""
    effects = group_time_effects(cells, never=never)
    after = [e for e in effects if e.period >= cells.starts[e.cohort]]
    if not after:
        return None
    written = _Written(cells, float(ndtri((1 + level) / 2)))
    dates = {e.cohort: first + cells.starts[e.cohort] for e in effects}
    since = _grouped(effects, [e.period - cells.starts[e.cohort] for e in effects])
    by_cohort = _grouped(after, [dates[e.cohort] for e in after])
    calendar = _grouped(after, [first + e.period for e in after])
    of_cohorts = [_one(es) for es in by_cohort.values()]
    return ControlledEffects(
        simple=written.effects([pooled(cells, after)])[0],
        dynamic=written.by(since, average([pooled(cells, since[k]) for k in since if k >= 0])),
        by_cohort=written.by(by_cohort, pooled(cells, of_cohorts), equally=True),
        calendar=written.by(calendar, average([pooled(cells, es) for es in calendar.values()])),
        group_time=[
            GroupTimeEffect(cohort=dates[e.cohort], period=first + e.period, effect=effect)
            for e, effect in zip(effects, written.effects([e.effect for e in effects]), strict=True)
        ],
        pretrend=_pretrend(cells, [e for e in effects if e.period < cells.starts[e.cohort]]),
    )


def _one(effects: list[GroupTime]) -> GroupTime:
    """A cohort's mean effect over the periods under treatment."""
    return GroupTime(effects[0].cohort, effects[0].period, average([e.effect for e in effects]))


def _grouped(effects: list[GroupTime], keys: list[int]) -> dict[int, list[GroupTime]]:
    found: dict[int, list[GroupTime]] = {}
    for key, effect in zip(keys, effects, strict=True):
        found.setdefault(key, []).append(effect)
    return found


def _pretrend(cells: CohortCells, before: list[GroupTime]) -> PretrendTest:
    """Wald's test that every ATT(g, t) before treatment is 0; statistic: χ² with df degrees of
    freedom."""
    if not before:
        return PretrendTest(statistic=None, df=0, p_value=None)
    combinations = [e.effect for e in before]
    b = np.array([c.value for c in combinations])
    C = covariance(combinations, cells.sampling + cells.privacy)
    W = float(b @ np.linalg.pinv(C, rcond=_SMALLEST, hermitian=True) @ b)
    return PretrendTest(statistic=W, df=len(b), p_value=float(chdtrc(len(b), W)))
