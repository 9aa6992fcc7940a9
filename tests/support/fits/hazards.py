# SPDX-License-Identifier: Apache-2.0
"""Hazard regressions of simulated persons: planned, answered, and Cox's regression of the same
persons.
"""

from typing import Any

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.hazard_regression.partial_plan import PartialPlan, plan_partial
from reticent_server.kinds.hazard_regression.surv import parse_hazards
from support.fits.regressions import Table, boolean, facts_of, numeric, profile_of

TIME, EVENT, START = numeric("t", 0.0, 12.0), boolean("e"), numeric("s", 0.0, 12.0)
AGE, DOSE, ARM = numeric("age", -6.0, 6.0), numeric("dose", 0.0, 12.0), boolean("arm")
GROUP = Column("g", ColumnKind.CATEGORICAL, 0.0, 2.0, ("a", "b", "c"))
OFFSET, PARTS = numeric("o", -4.0, 4.0), numeric("parts", np.exp(-4.0), np.exp(4.0))
COLUMNS = [TIME, EVENT, START, AGE, ARM, DOSE]
FORMULA = "Surv(t, e) ~ age + arm + dose"
BETA = np.array([0.4, -0.6, 0.3])
SHAPE, RATE = 1.3, 0.1
STEEP, FLAT, OLDER = 2.2, 0.2, 0.7  # by which a stratum differs from the one before


def persons(
    rng: np.random.Generator,
    n: int,
    beta: FloatArray = BETA,
    *,
    late: float = 0.0,
    offset: float = 0.0,
    strata: int = 1,
) -> Table:
    """A table: Weibull times, hazard RATE (times of a person of middling risk), uniform dropout up
    to 15, end at 12.

    late: the share that comes under observation after 0, at a uniform time; those with the event
    before are not there. offset: the sd of a known part `o` of the log hazard, half of whose
    variance goes with age; `parts` is exp(o). strata: levels of `g`, of which the later ones have
    hazards that are STEEP times as large, rising more slowly, and older persons.
    """
    m = n if not late else 3 * n
    g = rng.integers(strata, size=m) if strata > 1 else np.zeros(m)
    age, arm, dose = rng.normal(size=m) + OLDER * g, rng.random(m) < 0.5, rng.exponential(size=m)
    eta = np.column_stack([age, arm, dose]) @ beta
    o = offset * np.sqrt(0.5) * (age + rng.normal(size=m)) if offset else np.zeros(m)
    o = np.clip(o, OFFSET.lower, OFFSET.upper)
    level = RATE * STEEP**g * np.exp(eta - np.mean(eta) + o)
    until = (rng.exponential(size=m) / level) ** (1 / (SHAPE - FLAT * g))
    end = np.minimum(rng.uniform(0, 15, m), 12.0)
    start = np.where(rng.random(m) < late, rng.uniform(0, 4, m), 0.0)
    time = np.minimum(until, end)
    kept = np.flatnonzero(start < time)[:n]
    drawn = (time, until <= end, start, age, arm, dose, o, np.exp(o), g)
    return {
        c.name: np.clip(np.ascontiguousarray(v[kept].astype(float)), c.lower, c.upper)
        for c, v in zip([*COLUMNS, OFFSET, PARTS, GROUP], drawn, strict=True)
    }


def cured(rng: np.random.Generator, n: int, share: float) -> Table:
    """The same, where `share` of the persons, all among the tenth at the highest risk, live on."""
    found = persons(rng, n)
    risk = np.column_stack([found["age"], found["arm"], found["dose"]]) @ BETA
    high = np.flatnonzero(risk > np.quantile(risk, 0.9))
    live = rng.choice(high, int(share * n), replace=False)
    time, event = found["t"].copy(), found["e"].copy()
    time[live], event[live] = 12.0, 0.0
    return found | {"t": time, "e": event}


def changing(rng: np.random.Generator, n: int, gap: float, until: float = 3.0) -> Table:
    """The same, where age's coefficient is larger by `gap` up to `until`, and smaller by it after:
    hazards are not proportional.
    """
    found = persons(rng, n)
    age = found["age"]
    rest = np.column_stack([found["arm"], found["dose"]]) @ BETA[1:]
    level = RATE * np.exp(rest - np.mean(rest))
    before, after = (level * np.exp((BETA[0] + side * gap) * age) for side in (1, -1))
    drawn, turn = rng.exponential(size=n), until**SHAPE
    late = turn + (drawn - before * turn) / after
    time = np.where(drawn < before * turn, drawn / before, late) ** (1 / SHAPE)
    end = np.minimum(rng.uniform(0, 15, n), 12.0)
    return found | {"t": np.minimum(time, end), "e": (time <= end).astype(float)}


def planned_partial(
    table: Table,
    rho: int,
    formula: str = FORMULA,
    *,
    cuts: tuple[float, ...] | None = None,
    profile: bool = True,
    where: str | None = None,
    robust: bool = False,
    offset: str | None = None,
    exposure: str | None = None,
    strata: str | None = None,
    columns: list[Column] | None = None,
    bins: int = 0,
    **more: Any,
) -> PartialPlan:
    """A plan of Cox's partial likelihood, or with weights, on a public profile of the table."""
    columns = columns or [*COLUMNS, OFFSET, PARTS]
    levels = {c.name: len(c.levels) for c in columns if c.levels}
    numeric_ = [c for c in columns if not c.levels]
    known = profile_of(table, numeric_, levels) if profile else None
    facts = facts_of(len(table["t"]), columns, known, **more)
    special = {"offset": offset, "exposure": exposure, "strata": strata}
    asked = parse_hazards(formula, facts, cuts, where, rho / RHO_UNITS, **special)
    return plan_partial(facts, asked, 0.95, rho, robust=robust, bins=bins)


def cox(
    X: FloatArray,
    start: FloatArray,
    time: FloatArray,
    event: FloatArray,
    steps: int = 12,
    *,
    offset: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """(β, its covariance) by partial likelihood (Breslow) with late entry."""
    return stratified_cox(X, start, time, event, np.zeros(len(X)), steps, offset=offset)


def stratified_cox(
    X: FloatArray,
    start: FloatArray,
    time: FloatArray,
    event: FloatArray,
    strata: FloatArray,
    steps: int = 12,
    *,
    offset: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """The same with sets at risk within each value of strata (rows,)."""
    beta, offset = np.zeros(X.shape[1]), np.broadcast_to(offset, len(X))
    for _ in range(steps):
        g, H = np.zeros(len(beta)), np.zeros((len(beta),) * 2)
        for level in np.unique(strata):
            i = strata == level
            own = _score(X[i], start[i], time[i], event[i], offset[i], beta)
            g, H = g + own[0], H + own[1]
        beta = beta + np.linalg.solve(H, g)
    return beta, np.asarray(np.linalg.inv(H))


def _score(
    X: FloatArray,
    start: FloatArray,
    time: FloatArray,
    event: FloatArray,
    offset: FloatArray,
    beta: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Cox's score and information at β."""
    k = X.shape[1]
    risk = np.exp(X @ beta + offset)[:, None]
    each = np.column_stack([risk, risk * X, *(risk * X * x[:, None] for x in X.T)])
    sums = _not_before(time, each, time)
    if start.any():
        sums -= _not_before(start, each, time)
    mean = sums[:, 1 : k + 1] / sums[:, :1]
    second = (sums[:, k + 1 :] / sums[:, :1]).reshape(-1, k, k)
    g = ((X - mean) * event[:, None]).sum(axis=0)
    H = ((second - mean[:, :, None] * mean[:, None, :]) * event[:, None, None]).sum(axis=0)
    return g, np.asarray(H)


def _not_before(times: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Sums of the values (n, …) whose times are not before each of `at`."""
    order = np.argsort(-times, kind="stable")
    running = np.vstack([np.zeros(values.shape[1]), np.cumsum(values[order], axis=0)])
    return np.asarray(running[np.searchsorted(-times[order], -at, side="right")])
