# SPDX-License-Identifier: Apache-2.0
"""Intervals of studies of persons with several rows, over replications of the whole mechanism.

Tables: three slopes, regressors with AR(.5) correlation of which a person's rows have .3 in common,
AR(.5) errors, and a person's own level, which with person effects goes with the regressors (pooled
least squares is wrong then). Least squares with errors by person on the same table, as
linearmodels' PanelOLS has them, is what errors and widths are relative to. AUDIT_REPLICATIONS (60):
tables of each cell; `-s` shows the table of docs/how-to/panel-data.md. Bounds are broken only
beyond three standard errors of the simulation.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.study.kind import KIND, Study
from support.fits.panels import facts_of, pooled, within
from support.fits.regressions import drive
from support.kinds.studies import offer, persons_block, read
from support.seeds import seeded

REPLICATIONS = int(os.environ.get("AUDIT_REPLICATIONS", "60"))
LEAST = 0.93
"""Coverage of a nominal .95."""
TRUTH = np.array([1.0, 0.5, -0.3, 0.0])
NAMES = ("x0", "x1", "x2")
MAIN = "y ~ x0 + x1 + x2"


@dataclass(frozen=True)
class Cell:
    """uneven: the errors' sd is .5 + |x0|. longer: persons with a higher level have more rows."""

    persons: int
    m: int
    epsilon: float
    effects: bool = False
    balanced: bool = False
    uneven: bool = False
    longer: bool = False


CELLS = [
    Cell(persons, m, epsilon, effects, balanced)
    for effects in (False, True)
    for persons, m, epsilon, balanced in (
        (1_000, 4, 4.0, True),
        (1_000, 8, 4.0, False),
        (5_000, 4, 1.0, True),
        (5_000, 8, 1.0, True),
        (5_000, 8, 1.0, False),
        (5_000, 8, 4.0, False),
        (20_000, 4, 1.0, False),
        (20_000, 8, 1.0, False),
    )
] + [
    Cell(5_000, 8, 4.0, uneven=True),
    Cell(5_000, 8, 4.0, effects=True, uneven=True),
    Cell(5_000, 8, 4.0, effects=True, longer=True),
]


def table(cell: Cell, seed: int) -> Any:
    rng, N, m = seeded(seed), cell.persons, cell.m
    level = rng.normal(size=(N, 1))
    if cell.balanced:
        rows = np.full((N, 1), m)
    elif cell.longer:
        rows = np.clip(np.rint((m + 1) / 2 + 1.5 * level + rng.normal(size=(N, 1))), 1, m)
    else:
        rows = rng.integers(1, m + 1, (N, 1))
    absent = np.arange(m)[None, :] >= rows
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(range(3), range(3))))
    parts = np.sqrt(0.3) * rng.normal(size=(N, 1, 3)) + np.sqrt(0.7) * rng.normal(size=(N, m, 3))
    X = parts @ root.T + (0.6 * level[:, :, None] if cell.effects else 0.0)
    e = rng.normal(size=(N, m))
    for t in range(1, m):
        e[:, t] = 0.5 * e[:, t - 1] + np.sqrt(0.75) * e[:, t]
    e *= 0.5 + np.abs(X[:, :, 0]) if cell.uneven else 0.8
    y = TRUTH[0] + X @ TRUTH[1:] + e + (1.0 if cell.effects else 0.6) * level
    found = {"y": y} | {name: X[:, :, j] for j, name in enumerate(NAMES)}
    return {k: np.where(absent, 0.0, v).ravel() for k, v in found.items()}, absent.ravel()


def inside(intervals: Any, truth: Any) -> Any:
    low, high = np.array(intervals, dtype=float).T
    return (low <= truth) & (high >= truth)


def replications(cell: Cell) -> Iterator[dict[str, Any]]:
    query = Study(("y", *NAMES), main=MAIN, effects="person" if cell.effects else None)
    truth = TRUTH[cell.effects :]
    for seed in range(REPLICATIONS):
        data, absent = table(cell, seed)
        plan = KIND.plan(facts_of(data, absent, cell.m), query, offer(cell.epsilon))
        study = read(query, drive(plan.run(), persons_block(data, absent)).result)
        beta, errors = (within if cell.effects else pooled)(data, absent, cell.m, NAMES)
        main, free = study.main, study.ols(MAIN)
        yield {
            "away": np.asarray(main.params) - truth,
            "exact": beta - truth,
            "bias": (np.asarray(main.params) - beta) / errors,
            "open": all(main.estimable) and all(free.estimable),
            "main": inside(main.conf_int(), truth),
            "free": inside(free.conf_int(), truth),
            "width": np.asarray(main.bse) / errors,
            "free width": np.asarray(free.bse) / errors,
        }


@pytest.mark.audit
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_intervals_of_persons_hold_what_they_promise(cell: Cell) -> None:
    every = {k: np.array(v) for k, v in _columns(replications(cell)).items()}
    used = every["open"]
    error = np.sqrt(np.mean(every["away"] ** 2) / np.mean(every["exact"] ** 2))
    shown = {
        "error": error,
        "width": np.median(every["width"][used]),
        "coverage": np.mean(every["main"][used]),
        "free width": np.median(every["free width"][used]),
        "free coverage": np.mean(every["free"][used]),
        "open": np.mean(used),
        "bias": np.abs(np.mean(every["bias"], axis=0)).max(),
    }
    print(cell, {k: round(float(v), 3) for k, v in shown.items()})
    margin = 3 * np.sqrt(0.05 * 0.95 / used.sum() / every["main"].shape[1])
    assert used.mean() > 0.9
    assert shown["coverage"] >= LEAST - margin
    assert shown["free coverage"] >= LEAST - margin
    assert shown["width"] < 2.5


def _columns(found: Iterator[dict[str, Any]]) -> dict[str, list[Any]]:
    every = list(found)
    return {k: [one[k] for one in every] for k in every[0]}
