# SPDX-License-Identifier: Apache-2.0
"""Simulated panels whose person effects go with the regressors, and the within estimator of
them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Schema, Unit
from support.fits.regressions import numeric, profile_of
from support.seeds import seeded

SLOPES = (0.5, -0.3)


def panel(
    seed: Any,
    persons: int,
    m: int,
    *,
    balanced: bool = False,
    correlation: float = 0.5,
    levels: bool = True,
) -> Any:
    """(table, absent): y = 1 + Σ slope·x_j + effect + error, of one person's successive rows with
    this correlation; unbalanced: 1 to m rows a person. levels: whether regressors go with the
    effect, so that pooled least squares is off.
    """
    rng = seeded(seed)
    rows = np.full((persons, 1), m) if balanced else rng.integers(1, m + 1, (persons, 1))
    absent = np.arange(m)[None, :] >= rows
    effect = rng.normal(size=(persons, 1))
    X = [0.6 * levels * effect + rng.normal(size=(persons, m)) for _ in SLOPES]
    error = rng.normal(size=(persons, m))
    for t in range(1, m):
        error[:, t] *= np.sqrt(1 - correlation**2)
        error[:, t] += correlation * error[:, t - 1]
    y = 1 + effect + error + sum(b * x for b, x in zip(SLOPES, X, strict=True))
    table = {f"x{j}": x for j, x in enumerate(X)} | {"y": y}
    return {k: np.where(absent, 0.0, v).ravel() for k, v in table.items()}, absent.ravel()


def facts_of(table: Any, absent: Any, m: int) -> DatasetFacts:
    """Of a panel of columns within ±20 (y ±60), with its exact quantiles as its profile."""
    columns = [numeric(k, *((-60, 60) if k == "y" else (-20, 20))) for k in table]
    present = {k: v[~absent] for k, v in table.items()}
    schema = Schema(tuple(columns), Unit("person", m))
    profile = profile_of(present, columns)
    return DatasetFacts("t", "t", 1, "v", len(absent) // m, schema, profile).of_places()


def within(table: Any, absent: Any, m: int, names: Sequence[str]) -> Any:
    """(coefficients, cluster-robust standard errors) of least squares with person effects, as
    PanelOLS has them but for factors 1 + O(1/persons).
    """
    used = ~absent.reshape(-1, m)
    T = np.maximum(used.sum(axis=1, keepdims=True), 1)

    def deviations(values: Any) -> Any:
        own = values.reshape(-1, m) * used
        return ((own - own.sum(axis=1, keepdims=True) / T) * used).ravel()

    X = np.column_stack([deviations(table[name]) for name in names])
    y = deviations(table["y"])
    A = np.linalg.inv(X.T @ X)
    beta = A @ X.T @ y
    s = (X * (y - X @ beta)[:, None]).reshape(-1, m, len(names)).sum(axis=1)
    return beta, np.sqrt(np.diag(A @ s.T @ s @ A))


def pooled(table: Any, absent: Any, m: int, names: Sequence[str]) -> Any:
    """(coefficients, cluster-robust standard errors) of least squares with an intercept over all
    rows, as PanelOLS has them but for factors 1 + O(1/persons).
    """
    X = np.column_stack([np.ones(len(absent)), *(table[name] for name in names)])
    X = X * ~absent[:, None]
    A = np.linalg.inv(X.T @ X)
    beta = A @ X.T @ table["y"]
    s = (X * (table["y"] - X @ beta)[:, None]).reshape(-1, m, X.shape[1]).sum(axis=1)
    return beta, np.sqrt(np.diag(A @ s.T @ s @ A))
