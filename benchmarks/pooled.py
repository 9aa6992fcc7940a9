# SPDX-License-Identifier: Apache-2.0
"""Five sites of 10,000 rows, ε = 1 each: pooled studies beside least squares on all rows.

Sites differ in the mean of x and in their intercepts; the formula has site effects. Each sample
draws new tables, plans and runs a study per site through the real mechanisms, and pools them. By
number of variables and weights: coverage of the true slopes by 95 % intervals, median width over
that of least squares (same sample, same formula), share of slopes with intervals. "unequal" has
sites of 2,000 to 20,000 rows, 50,000 together.

POOLED_RUNS (20): samples.
"""

import os

import numpy as np

from benchmarks.accuracy import BenchTable
from reticent._pooled.study import pool
from reticent.kinds.study import Study as StudyResults
from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.study.kind import Study

RUNS = int(os.environ.get("POOLED_RUNS", "20"))
EPSILON = 1.0
SLOPES = (0.5, -0.3, 0.2, 0.0)
SIZES = {"equal": (10_000,) * 5, "unequal": (20_000, 15_000, 8_000, 5_000, 2_000)}


def tables(p: int, sizes: tuple[int, ...], rng: np.random.Generator) -> list[BenchTable]:
    """A table a site; x1's mean and the intercept differ by site. Profiles are public (ε = .5)."""
    found = []
    for k, n in enumerate(sizes):
        X = rng.normal(size=(n, p))
        X[:, 1:] += 0.4 * X[:, :1]
        X[:, 0] += 0.2 * k
        y = 1 + 0.3 * k + X @ np.array(SLOPES[:p]) + rng.normal(size=n)
        arrays = {"y": y} | {f"x{j + 1}": np.ascontiguousarray(X[:, j]) for j in range(p)}
        columns = [Column(name, ColumnKind.NUMERIC, -10.0, 10.0) for name in arrays]
        found.append(BenchTable(arrays, columns).profiled(0.5))
    return found


def exact(sites: list[BenchTable], p: int) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and standard errors (p,) of least squares on all rows with site effects."""
    rows = [np.column_stack([t.arrays[f"x{j + 1}"] for j in range(p)]) for t in sites]
    X = np.vstack([x - x.mean(axis=0) for x in rows])
    y = np.concatenate([t.arrays["y"] - t.arrays["y"].mean() for t in sites])
    inverse = np.linalg.inv(X.T @ X)
    theta = inverse @ X.T @ y
    variance = float(np.sum((y - X @ theta) ** 2)) / (len(y) - p - len(sites))
    return theta, np.sqrt(variance * np.diag(inverse))


def one_run(p: int, sizes: tuple[int, ...], seed: int) -> dict[str, np.ndarray]:
    """By weights (p, 3): covered (NaN: no interval), width over least squares', has an interval."""
    sites = tables(p, sizes, np.random.default_rng(seed))
    names = ("y", *(f"x{j + 1}" for j in range(p)))
    studies = {}
    for k, site in enumerate(sites):
        result = result_json(site.release(site.plan(Study(names), EPSILON)))
        document = {
            "id": f"r{k}",
            "version": 1,
            "created_at": "",
            "charged": {"epsilon": EPSILON},
            "guarantee": {},
            "query": {"kind": "study"},
            "result": result,
        }
        studies[f"s{k}"] = StudyResults(document)
        site.close()
    _, errors = exact(sites, p)
    formula = f"y ~ {' + '.join(names[1:])} + site"
    return {
        way: _judged(pool(studies, weights=way).ols(formula), errors, p)
        for way in ("people", "precision")
    }


def _judged(fit: object, errors: np.ndarray, p: int) -> np.ndarray:
    ends = np.asarray(fit.conf_int(), dtype=float)[1 : p + 1]
    known = np.isfinite(ends).all(axis=1)
    inside = (ends[:, 0] <= SLOPES[:p]) & (np.array(SLOPES[:p]) <= ends[:, 1])
    width = (ends[:, 1] - ends[:, 0]) / (2 * 1.959964 * errors)
    return np.column_stack([np.where(known, inside, np.nan), width, known])


def main() -> None:
    for p in (2, 3, 4):
        for name, sizes in SIZES.items():
            runs = [one_run(p, sizes, 7_100_000 + 1000 * p + k) for k in range(RUNS)]
            for way in ("people", "precision"):
                found = np.concatenate([run[way] for run in runs])
                covered, width = np.nanmean(found[:, 0]), np.nanmedian(found[:, 1])
                print(
                    f"{p} regressors, {name} sites, weights by {way}: coverage {covered:.3f}, "
                    f"width {width:.2f}, intervals {found[:, 2].mean():.2f} of {len(found)}",
                    flush=True,
                )
