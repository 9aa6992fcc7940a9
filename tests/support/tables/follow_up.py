"""Times to an event: simulated persons, Kaplan–Meier and the log-rank test without privacy, and planned questions."""

import numpy as np

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from support.kinds.recipes import block_of, facts_of, released

TIME = Column("t", ColumnKind.NUMERIC, 0.0, 20.0)
EVENT = Column("e", ColumnKind.BOOLEAN, 0.0, 1.0)
GROUP = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
MISSING = Column("m", ColumnKind.NUMERIC, 0.0, 1.0, (), ("NA",))
COLUMNS = (TIME, EVENT, GROUP, MISSING)
CUTS = tuple((np.arange(1, 21) * 0.6).tolist())
SHAPE, SCALE = 1.3, 10.0


def offer(epsilon, delta=1e-6):
    """What (ε, δ) allows."""
    return PrivacyCost(0, 0, rho_units(epsilon, delta))


EXACT = PrivacyCost(0, 0, 10**22)


def facts(n, max_rows=1):
    return facts_of(n, COLUMNS, max_rows)


def survival(t):
    """S of the simulated persons of group a."""
    return np.exp(-((np.asarray(t) / SCALE) ** SHAPE))


def persons(rng, n, *, ratio=1.0, share=0.5, dropout=15.0):
    """(time, event, group): Weibull times, hazard `ratio` in group b, where dropout has the mean `dropout`."""
    group = (rng.random(n) < share).astype(float)
    until = SCALE * rng.weibull(SHAPE, n) * np.where(group == 1, ratio ** (-1 / SHAPE), 1.0)
    left = rng.exponential(np.where(group == 1, dropout, 15.0))
    end = np.minimum(left, rng.uniform(8.4, 16.8, n))
    return np.minimum(until, end), (until <= end).astype(float), group


def block(rng, n, **more):
    time, event, group = persons(rng, n, **more)
    return block_of({"m": np.zeros(n, dtype=bool)}, t=time, e=event, g=group, m=np.zeros(n))


def kaplan_meier(time, event, at):
    """S at times `at`, right-continuous."""
    order = np.argsort(time, kind="stable")
    time, event = time[order], event[order]
    at_risk = len(time) - np.searchsorted(time, time, side="left")
    log_s = np.cumsum(np.log1p(-np.minimum(event / at_risk, 1 - 1e-12)))
    index = np.searchsorted(time, at, side="right") - 1
    return np.where(index >= 0, np.exp(log_s[np.maximum(index, 0)]), 1.0)


def log_rank(time, event, group):
    """The statistic of two groups, by distinct times."""
    observed = variance = 0.0
    for t in np.unique(time[event == 1]):
        at_risk, here = time >= t, (time == t) & (event == 1)
        r, r1, d = at_risk.sum(), (at_risk & (group == 1)).sum(), here.sum()
        observed += (here & (group == 1)).sum() - d * r1 / r
        variance += d * (r1 / r) * (1 - r1 / r) * (r - d) / max(r - 1, 1)
    return observed**2 / variance


def answer(plan, block):
    """The result of a plan on a block, as its dataclass."""
    recipe = plan.run()
    step = next(recipe)
    while True:
        try:
            step = recipe.send(released(step, block))
        except StopIteration as stop:
            return stop.value
