# SPDX-License-Identifier: Apache-2.0
"""What the demonstration's curator could compute: the same estimating equation without noise."""

import csv
from pathlib import Path

import numpy as np

from reticent_server.domain.plan import Plan
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.steps import Block
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.kinds.linear_regression.target import noise_free_fit
from reticent_server.kinds.shared.target import Target


def curator_fit(plan: Plan, table: Path) -> Target:
    """The noise-free fit of a planned regression (with a profile) on a CSV file that has no missing
    cells; coded, weighted and tuned as in the plan. Private: for the curator.
    """
    estimator = plan.planned
    if not isinstance(estimator, FitPlan) or estimator.own_profile is not None:
        raise TypeError("a planned regression, with a profile")
    return noise_free_fit(estimator, _read(table, plan.facts.schema))


def _read(path: Path, schema: Schema) -> Block:
    """The table as the engine sees it: levels are codes."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {c.name: np.array([_value(c, row[c.name]) for row in rows]) for c in schema.columns}
    return Block(start=0, rows=len(rows), columns=columns, missing={})


def _value(column: Column, cell: str) -> float:
    return float(column.levels.index(cell) if column.levels else cell)
