# SPDX-License-Identifier: Apache-2.0
"""Helpers of the fits' tests: linear plans, any plan's steps along a released path, gaps to a
target.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from benchmarks.noise_free import glm_target

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.design import Design
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.linear_regression import target as linear_target
from reticent_server.kinds.shared.linear.plan import (
    LinearModel,
    LinearRegressionPlan,
    plan_linear_regression,
)
from reticent_server.kinds.shared.target import Target
from support.fits.regressions import (
    HUGE_RHO,
    Table,
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    query,
    whole,
)

Y = numeric("y")


def numerics(p: int) -> list[Column]:
    return [numeric(f"x{j}") for j in range(p)]


def linear_plan(
    table: Table,
    columns: list[Column],
    rho: int = HUGE_RHO,
    *,
    profile: bool = True,
    max_rows: int = 1,
    y: Column = Y,
    design: Design | None = None,
    **more: Any,
) -> LinearRegressionPlan:
    """A planned regression of y on the columns, or of a design; `more`: of the query, or of the
    plain design.
    """
    ours = {k: more.pop(k) for k in ("intercept", "where", "missing_columns") if k in more}
    every = [*columns, y]
    released = profile_of(table, every) if profile else None
    facts = facts_of(len(table["y"]), every, released, max_rows)
    return plan_linear_regression(
        facts, design or plain_design(columns, y, **ours), query(**more), rho
    )


def fitted(
    table: Table,
    columns: list[Column],
    epsilon: float = 1.0,
    *,
    missing: Mapping[str, Any] | None = None,
    **more: Any,
) -> tuple[LinearRegressionPlan, Any]:
    """(plan, result) through the real mechanisms."""
    plan = linear_plan(table, columns, rho_units(epsilon, 1e-6), **more)
    return plan, drive(plan.run(), whole(table, missing)).result


def target_of(plan: Any, block: Block) -> Target:
    """What a plan's fit would be without noise."""
    linear = isinstance(plan.model, LinearModel)
    target: Target = (linear_target if linear else glm_target).noise_free_fit(plan, block)
    return target


def gaps(result: Mapping[str, Any], target: Target) -> tuple[FloatArray, FloatArray]:
    """(q,) a reply's distance from its target in the target's standard errors, and (q,) the ratio
    of both.
    """
    errors = target.standard_errors
    away = (np.array(result["coefficients"]) - target.coefficients) / errors
    return away, np.array(result["standard_errors"]) / errors
