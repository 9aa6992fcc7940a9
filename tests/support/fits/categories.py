# SPDX-License-Identifier: Apache-2.0
"""Responses with several levels: simulated tables with a known law, and plans of their fits."""

from typing import Any

import numpy as np
from scipy.special import expit

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.kinds.glm.categories.plan import CategoryPlan, plan_categories
from reticent_server.kinds.glm.categories.response import level_design
from support.fits.regressions import Table, boolean, facts_of, numeric, profile_of

AGE, ARM, DOSE = numeric("age", -6.0, 6.0), boolean("arm"), numeric("dose", 0.0, 12.0)
LEVELS = ("low", "middle", "good", "high")
ANSWER = Column("g", ColumnKind.CATEGORICAL, 0.0, 3.0, LEVELS)
SHARE = numeric("a", 0.0, 2.0)
COLUMNS = [AGE, ARM, DOSE, SHARE]
FORMULA = "g ~ age + arm + dose"
MULTINOMIAL = np.array([[0.3, 0.5, -0.4, 0.2], [0.2, -0.3, 0.6, 0.3], [-0.6, 0.4, 0.2, -0.3]])
"""(K − 1, q) of the levels after the first: Intercept, age, arm, dose."""
SLOPES, THRESHOLDS = np.array([0.6, -0.5, 0.3]), np.array([-1.2, 0.2, 1.6])


def regressors(rng: np.random.Generator, n: int) -> Table:
    """Age standard normal, arm of two, dose exponential, weights uniform on [0, 2]; with the
    response's place.
    """
    age, arm, dose = rng.normal(size=n), rng.random(n) < 0.5, rng.exponential(size=n)
    drawn = (age, arm, dose, rng.uniform(0, 2, n))
    return {
        c.name: np.ascontiguousarray(np.clip(np.asarray(v, dtype=float), c.lower, c.upper))
        for c, v in zip(COLUMNS, drawn, strict=True)
    }


def design(table: Table) -> FloatArray:
    """(n, q)."""
    return np.column_stack([np.ones(len(table["age"])), table["age"], table["arm"], table["dose"]])


def probabilities(table: Table, family: str) -> FloatArray:
    """(n, K) of the law with the constants above."""
    X = design(table)
    if family == "multinomial":
        odds = np.exp(np.column_stack([np.zeros(len(X)), X @ MULTINOMIAL.T]))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))
    below = expit(THRESHOLDS - (X[:, 1:] @ SLOPES)[:, None])
    return np.diff(np.column_stack([np.zeros(len(X)), below, np.ones(len(X))]), axis=1)


def truth(family: str) -> FloatArray:
    """(D,) of the reported coefficients."""
    return MULTINOMIAL.ravel() if family == "multinomial" else np.append(SLOPES, THRESHOLDS)


def people(rng: np.random.Generator, n: int, family: str) -> Table:
    """A table of the law."""
    table = regressors(rng, n)
    p = np.cumsum(probabilities(table, family), axis=1)
    return {**table, "g": (rng.random(n)[:, None] > p[:, :-1]).sum(axis=1).astype(float)}


def even_people(rng: np.random.Generator, n: int, family: str) -> Table:
    """A table on which a fit of age and arm weighs all records alike: ages uniform within ±√3, no
    dose.
    """
    table = regressors(rng, n)
    table |= {"age": rng.uniform(-1.7, 1.7, n), "dose": np.zeros(n)}
    p = np.cumsum(probabilities(table, family), axis=1)
    return {**table, "g": (rng.random(n)[:, None] > p[:, :-1]).sum(axis=1).astype(float)}


def planned(
    table: Table,
    rho: int,
    family: str,
    formula: str = FORMULA,
    *,
    profile: bool = True,
    where: str | None = None,
    weights: str | None = None,
    **more: Any,
) -> CategoryPlan:
    """A plan on a public profile of the table."""
    known = profile_of(table, COLUMNS, {"g": len(LEVELS)}) if profile else None
    facts = facts_of(len(table["g"]), [*COLUMNS, ANSWER], known, **more)
    made, axis = level_design(facts, formula, where)
    made = weighted_design(made, facts.schema, weights)
    return plan_categories(facts, made, axis, family, 0.95, rho)
