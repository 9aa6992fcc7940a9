# SPDX-License-Identifier: Apache-2.0
"""Helpers of the hypothesis tests' tests: plans of every model, on tables of every model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent_server.accounting.conversions import rho_units
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.formula import parse_hypothesis
from reticent_server.kinds.hypothesis_test.plan import HypothesisTestPlan, TestName
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from support.fits.glm import glm_table
from support.fits.glm import planned as planned_glm
from support.fits.regressions import (
    Table,
    drive,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    query,
    whole,
)

COLUMNS = [numeric(f"x{j}") for j in range(3)]


def table_of(
    family: str,
    n: int,
    rng: np.random.Generator,
    slopes: Sequence[float] = (0.4, 0.4, 0.0),
) -> Table:
    """Slopes as given, x0 and x1 correlated with x2."""
    if family == "linear":
        table = linear_table(n, 3, rng)
        table["y"] += sum((b - 1) * table[f"x{j}"] for j, b in enumerate(slopes))
        return table
    table = glm_table(family, n, rng, beta=0.0)
    eta = 0.5 + sum(b * table[f"x{j}"] for j, b in enumerate(slopes))
    match family:
        case "binomial":
            table["y"] = (rng.random(n) < 1 / (1 + 2.718281828 ** (-eta))).astype(float)
        case "poisson":
            table["y"] = rng.poisson(2.718281828**eta).clip(0, 1000).astype(float)
        case _:
            table["y"] = rng.gamma(2, 2.718281828**eta / 2)
    return table


def planned(
    table: Table,
    family: str,
    test: TestName,
    texts: Any,
    epsilon: float = 1.0,
    *,
    rho: int | None = None,
    profile: bool = True,
    max_rows: int = 1,
) -> HypothesisTestPlan:
    rho = rho or rho_units(epsilon, 1e-6)
    model: FitPlan[Any]
    if family == "linear":
        every = [*COLUMNS, numeric("y")]
        released = profile_of(table, every) if profile else None
        facts = facts_of(len(table["y"]), every, released, max_rows)
        model = plan_linear_regression(facts, plain_design(COLUMNS, numeric("y")), query(), rho)
    else:
        model = planned_glm(table, COLUMNS, family, rho, profile=profile, max_rows=max_rows)
    names = model.design.names
    hypothesis = None if texts is None else parse_hypothesis(texts, names)
    return HypothesisTestPlan(model, test, hypothesis)


def outcome_of(
    table: Table, family: str, test: TestName, texts: Any, epsilon: float = 1.0, **more: Any
) -> Any:
    plan = planned(table, family, test, texts, epsilon, **more)
    return drive(plan.run(), whole(table)).result
