# SPDX-License-Identifier: Apache-2.0
"""Times to an event: simulated persons, Kaplan–Meier and the log-rank test without privacy, and
planned questions.
"""

import numpy as np
from numpy.typing import ArrayLike

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block, FloatArray
from support.kinds.recipes import block_of, facts_of

TIME = Column("t", ColumnKind.NUMERIC, 0.0, 20.0)
EVENT = Column("e", ColumnKind.BOOLEAN, 0.0, 1.0)
GROUP = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
MISSING = Column("m", ColumnKind.NUMERIC, 0.0, 1.0, (), ("NA",))
COLUMNS = (TIME, EVENT, GROUP, MISSING)
CUTS = tuple((np.arange(1, 21) * 0.6).tolist())
SHAPE, SCALE = 1.3, 10.0


def offer(epsilon: float, delta: float = 1e-6) -> PrivacyCost:
    """What (ε, δ) allows."""
    return PrivacyCost(0, 0, rho_units(epsilon, delta))


EXACT = PrivacyCost(0, 0, 10**22)


def facts(n: int, max_rows: int = 1) -> DatasetFacts:
    return facts_of(n, COLUMNS, max_rows)


def survival(t: ArrayLike) -> FloatArray:
    """S of the simulated persons of group a."""
    return np.asarray(np.exp(-((np.asarray(t) / SCALE) ** SHAPE)))


def persons(
    rng: np.random.Generator,
    n: int,
    *,
    ratio: float = 1.0,
    share: float = 0.5,
    dropout: float = 15.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(time, event, group): Weibull times, hazard `ratio` in group b, where dropout has the mean
    `dropout`.
    """
    group = (rng.random(n) < share).astype(float)
    until = SCALE * rng.weibull(SHAPE, n) * np.where(group == 1, ratio ** (-1 / SHAPE), 1.0)
    left = rng.exponential(np.where(group == 1, dropout, 15.0))
    end = np.minimum(left, rng.uniform(8.4, 16.8, n))
    return np.minimum(until, end), (until <= end).astype(float), group


def block(rng: np.random.Generator, n: int, **more: float) -> Block:
    time, event, group = persons(rng, n, **more)
    return block_of({"m": np.zeros(n, dtype=bool)}, t=time, e=event, g=group, m=np.zeros(n))


def kaplan_meier(time: FloatArray, event: FloatArray, at: ArrayLike) -> FloatArray:
    """S at times `at`, right-continuous."""
    times, deaths = np.unique(time[event == 1], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), times, side="left")
    log_s = np.cumsum(np.log1p(-np.minimum(deaths / at_risk, 1 - 1e-12)))
    index = np.searchsorted(times, at, side="right") - 1
    return np.where(index >= 0, np.exp(log_s[np.maximum(index, 0)]), 1.0)


def log_rank(time: FloatArray, event: FloatArray, group: FloatArray) -> float:
    """The statistic of two groups, by distinct times."""
    observed = variance = 0.0
    for t in np.unique(time[event == 1]):
        at_risk, here = time >= t, (time == t) & (event == 1)
        r, r1, d = at_risk.sum(), (at_risk & (group == 1)).sum(), here.sum()
        observed += (here & (group == 1)).sum() - d * r1 / r
        variance += d * (r1 / r) * (1 - r1 / r) * (r - d) / max(r - 1, 1)
    return float(observed**2 / variance)
