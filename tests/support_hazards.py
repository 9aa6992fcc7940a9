"""Hazard regressions of simulated persons: planned, answered, and Cox's regression of the same persons."""

import numpy as np

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.hazard_regression.plan import plan_hazard_regression
from reticent_server.kinds.hazard_regression.surv import parse_hazards
from support_newton import boolean, facts_of, numeric, profile_of

TIME, EVENT, START = numeric("t", 0.0, 12.0), boolean("e"), numeric("s", 0.0, 12.0)
AGE, DOSE, ARM = numeric("age", -6.0, 6.0), numeric("dose", 0.0, 12.0), boolean("arm")
GROUP = Column("g", ColumnKind.CATEGORICAL, 0.0, 2.0, ("a", "b", "c"))
COLUMNS = [TIME, EVENT, START, AGE, DOSE, ARM]
FORMULA = "Surv(t, e) ~ age + arm + dose"
BETA = np.array([0.4, -0.6, 0.3])
SHAPE, RATE = 1.3, 0.1


def persons(rng, n, beta=BETA, *, late=0.0):
    """A table: Weibull times, hazard RATE (times of a person of middling risk), uniform dropout up to 15, end at 12.

    late: the share that comes under observation after 0, at a uniform time; those with the event before are not there.
    """
    m = n if not late else 3 * n
    age, arm, dose = rng.normal(size=m), rng.random(m) < 0.5, rng.exponential(size=m)
    eta = np.column_stack([age, arm, dose]) @ beta
    until = (rng.exponential(size=m) / (RATE * np.exp(eta - np.mean(eta)))) ** (1 / SHAPE)
    end = np.minimum(rng.uniform(0, 15, m), 12.0)
    start = np.where(rng.random(m) < late, rng.uniform(0, 4, m), 0.0)
    time = np.minimum(until, end)
    kept = np.flatnonzero(start < time)[:n]
    found = {"t": time, "e": until <= end, "s": start, "age": age, "arm": arm, "dose": dose}
    table = {k: np.ascontiguousarray(v[kept].astype(float)) for k, v in found.items()}
    return {
        k: np.clip(v, c.lower, c.upper) for (k, v), c in zip(table.items(), COLUMNS_OF, strict=True)
    }


COLUMNS_OF = [TIME, EVENT, START, AGE, ARM, DOSE]


def planned(table, rho, formula=FORMULA, cuts=None, *, profile=True, **more):
    """A plan on a public profile of the table."""
    known = profile_of(table, COLUMNS) if profile else None
    facts = facts_of(len(table["t"]), COLUMNS, known, **more)
    asked = parse_hazards(formula, facts, cuts, None, rho / 10**12)
    return plan_hazard_regression(facts, asked, 0.95, rho)


def cox(X, start, time, event, steps=12):
    """(β, its covariance) by partial likelihood (Breslow) with late entry."""
    order = np.argsort(-time, kind="stable")
    entry = np.argsort(-start, kind="stable")
    beta = np.zeros(X.shape[1])
    for _ in range(steps):
        risk = np.exp(X @ beta)
        both = np.column_stack(
            [risk, risk[:, None] * X, *(risk[:, None] * X * x[:, None] for x in X.T)]
        )
        left = np.searchsorted(-time[order], -time, side="right")
        late = np.searchsorted(-start[entry], -time, side="right") * 0
        sums = np.vstack([np.zeros(both.shape[1]), np.cumsum(both[order], axis=0)])[left]
        if start.any():
            late = np.searchsorted(-start[entry], -time, side="right")
            sums -= np.vstack([np.zeros(both.shape[1]), np.cumsum(both[entry], axis=0)])[late]
        k = len(beta)
        mean = sums[:, 1 : k + 1] / sums[:, :1]
        second = (sums[:, k + 1 :] / sums[:, :1]).reshape(-1, k, k)
        g = ((X - mean) * event[:, None]).sum(axis=0)
        H = ((second - mean[:, :, None] * mean[:, None, :]) * event[:, None, None]).sum(axis=0)
        beta = beta + np.linalg.solve(H, g)
    return beta, np.linalg.inv(H)
