# SPDX-License-Identifier: Apache-2.0
"""Helpers of the generalised linear models' tests: tables of each family, and plans."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.schema import Column
from reticent_server.kinds.glm.plan import GlmPlan, plan_glm
from reticent_server.kinds.glm.query import Glm
from support.fits.regressions import (
    Table,
    boolean,
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    whole,
)

TOP = 1000.0


def response(family: str) -> Column:
    return boolean("y") if family == "binomial" else numeric("y", 0.0, TOP)


def slopes(p: int) -> list[Column]:
    return [numeric(f"x{j}") for j in range(p)]


def glm_table(
    family: str,
    n: int,
    rng: np.random.Generator,
    *,
    p: int = 3,
    beta: float = 0.4,
    base: float = 0.5,
    phi: float = 0.5,
    shift: float = 0.0,
) -> Table:
    """x of unit variance with AR(.5) correlation, every slope `beta`, intercept `base`.

    shift: what is added to η of the response only: a model that is wrong by a constant.
    """
    correlation = 0.5 ** np.abs(np.subtract.outer(range(p), range(p)))
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(correlation).T
    eta = base + shift + beta * X.sum(axis=1)
    match family:
        case "binomial":
            y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
        case "poisson":
            y = rng.poisson(np.exp(eta)).astype(float)
        case "negative_binomial":
            y = rng.negative_binomial(1 / phi, 1 / (1 + phi * np.exp(eta))).astype(float)
        case _:
            y = rng.gamma(1 / phi, phi * np.exp(eta))
    table = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(p)}
    return {**table, "y": np.minimum(y, TOP)}


def planned(
    table: Table,
    columns: list[Column],
    family: str,
    rho: int,
    *,
    profile: bool = True,
    max_rows: int = 1,
    tuning: Any = None,
    target: Any = "robust",
    link: Any = None,
    **design: Any,
) -> GlmPlan:
    y = response(family)
    every = [*columns, y]
    released = profile_of(table, every) if profile else None
    facts = facts_of(len(table["y"]), every, released, max_rows)
    dispersion = 0.5 if family == "negative_binomial" else None
    asked = Glm("y ~ x", family, tuning=tuning, dispersion=dispersion, link=link, target=target)
    return plan_glm(facts, plain_design(columns, y, **design), asked, rho)


def fitted(
    table: Table,
    columns: list[Column],
    family: str,
    epsilon: float = 1.0,
    *,
    missing: Mapping[str, Any] | None = None,
    **more: Any,
) -> tuple[GlmPlan, Any]:
    """(plan, result) through the real mechanisms."""
    plan = planned(table, columns, family, rho_units(epsilon, 1e-6), **more)
    return plan, drive(plan.run(), whole(table, missing)).result
