"""What the demonstration's curator could compute: the same estimating equation without noise."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reticent_server.domain.plan import Plan
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.estimators.newton import LinearRegressionPlan
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.report import back_transform
from reticent_server.numerics.evaluate import evaluate_term
from reticent_server.numerics.huber_mallows import fit_whitened_mallows


@dataclass(frozen=True, slots=True)
class Target:
    """Coefficients and standard errors (p,) in the units of the data. Private: for the curator."""

    coefficients: FloatArray
    standard_errors: FloatArray


def curator_fit(plan: Plan, table: Path) -> Target:
    """The noise-free fit of a planned regression (with a profile, without `where`) on a CSV file that
    has no missing cells; coded, weighted and tuned as in the plan."""
    estimator = plan.estimator
    if not isinstance(estimator, LinearRegressionPlan) or estimator.start is not None:
        raise TypeError("a planned regression, with a profile")
    coding = estimator.coding
    X, y = _standardised(coding, _read(table, plan.facts.schema))
    fitted = fit_whitened_mallows(
        X,
        y,
        estimator.settings.c,
        radius_squared=coding.white_radius_squared,
        mean_norm=estimator.settings.mean_norm,
        whitened=coding.white_size,
    )
    back = back_transform(coding)
    errors = np.sqrt(np.diag(back.covariance(fitted.covariance)))
    return Target(back.coefficients(fitted.coefficients), np.asarray(errors))


def _read(path: Path, schema: Schema) -> Block:
    """The table as the engine sees it: levels are codes."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {c.name: np.array([_value(c, row[c.name]) for row in rows]) for c in schema.columns}
    return Block(start=0, rows=len(rows), columns=columns, missing={})


def _value(column: Column, cell: str) -> float:
    return float(column.levels.index(cell) if column.levels else cell)


def _standardised(coding: Coding, block: Block) -> tuple[FloatArray, FloatArray]:
    """X (n, q) in the coding's internal order, and y (n,)."""
    head = [np.ones(block.rows)] * int(coding.design.intercept)
    terms = [evaluate_term(term, block) for term, _ in coding.columns]
    X = (np.column_stack([*head, *terms]) - coding.centres) / coding.scales
    response = coding.response_location
    return X, (evaluate_term(coding.response, block) - response.centre) / response.scale
