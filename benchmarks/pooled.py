# SPDX-License-Identifier: Apache-2.0
"""Five sites of 10,000 rows, ε = 1 each: pooled studies beside least squares on all rows.

Sites differ in the mean of x and in their intercepts; the formula has site effects. Each sample
draws new tables, plans and runs a study per site through the real mechanisms, and pools them. By
number of variables and weights: coverage of the true slopes by 95 % intervals, median width over
that of least squares (same sample, same formula), share of slopes with intervals. "unequal" has
sites of 2,000 to 20,000 rows, 50,000 together; "bounds" has declared bounds of ±10 to ±80 on all
columns, which differ by site; "missing" has two sites without the last regressor: that slope is of
the three sites that have it (`pooled.of`), beside least squares on their rows, and the others are
also of all five without it, where their true values are those of the shorter formula.

POOLED_RUNS (20): samples. POOLED_CASES: some of the four, between blanks.
"""

import os
from dataclasses import dataclass

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
TIED = 0.4  # slope of every other regressor on x1


@dataclass(frozen=True, slots=True)
class Sites:
    """sizes, bounds: of each site. without: those that lack the last regressor."""

    sizes: tuple[int, ...] = (10_000,) * 5
    bounds: tuple[float, ...] = (10.0,) * 5
    without: tuple[int, ...] = ()


CASES = {
    "equal": Sites(),
    "unequal": Sites((20_000, 15_000, 8_000, 5_000, 2_000)),
    "bounds": Sites(bounds=(10.0, 20.0, 40.0, 80.0, 10.0)),
    "missing": Sites(without=(3, 4)),
}
ASKED = os.environ.get("POOLED_CASES", " ".join(CASES)).split()


def tables(p: int, case: Sites, rng: np.random.Generator) -> list[BenchTable]:
    """A table a site; x1's mean and the intercept differ by site. Profiles are public (ε = .5)."""
    found = []
    for k, (n, bound) in enumerate(zip(case.sizes, case.bounds, strict=True)):
        X = rng.normal(size=(n, p))
        X[:, 1:] += TIED * X[:, :1]
        X[:, 0] += 0.2 * k
        y = 1 + 0.3 * k + X @ np.array(SLOPES[:p]) + rng.normal(size=n)
        arrays = {"y": y} | {f"x{j + 1}": np.ascontiguousarray(X[:, j]) for j in range(p)}
        columns = [Column(name, ColumnKind.NUMERIC, -bound, bound) for name in arrays]
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


def one_run(p: int, case: Sites, seed: int) -> dict[str, np.ndarray]:
    """By sites and weights (p, 3): covered (NaN: no interval), width over least squares', has an
    interval.
    """
    sites = tables(p, case, np.random.default_rng(seed))
    names = ("y", *(f"x{j + 1}" for j in range(p)))
    studies = {}
    for k, site in enumerate(sites):
        asked = names[:-1] if k in case.without else names
        result = result_json(site.release(site.plan(Study(asked), EPSILON)))
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
    having = [k for k in range(len(sites)) if k not in case.without]
    which = "sites that have all" if case.without else "all sites"
    found = _fits(which, p, [sites[k] for k in having], _some(studies, having))
    if case.without:
        found |= _fits("all sites, without the last", p - 1, sites, studies, SLOPES[p - 1])
    return found


def _some(studies: dict[str, StudyResults], sites: list[int]) -> dict[str, StudyResults]:
    return {f"s{k}": studies[f"s{k}"] for k in sites}


def _fits(
    which: str,
    p: int,
    sites: list[BenchTable],
    studies: dict[str, StudyResults],
    left_out: float = 0.0,
) -> dict[str, np.ndarray]:
    """left_out: the slope of a regressor that is tied to x1 and not in the formula."""
    _, errors = exact(sites, p)
    truth = np.array(SLOPES[:p])
    truth[0] += TIED * left_out
    formula = f"y ~ {' + '.join(f'x{j + 1}' for j in range(p))} + site"
    return {
        f"{which}, weights by {way}": _judged(
            pool(studies, weights=way).ols(formula), errors, truth
        )
        for way in ("people", "precision")
    }


def _judged(fit: object, errors: np.ndarray, truth: np.ndarray) -> np.ndarray:
    ends = np.asarray(fit.conf_int(), dtype=float)[1 : len(truth) + 1]
    known = np.isfinite(ends).all(axis=1)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    width = (ends[:, 1] - ends[:, 0]) / (2 * 1.959964 * errors)
    return np.column_stack([np.where(known, inside, np.nan), width, known])


def main() -> None:
    for p in (2, 3, 4):
        for name in ASKED:
            runs = [one_run(p, CASES[name], 7_100_000 + 1000 * p + k) for k in range(RUNS)]
            for way in runs[0]:
                found = np.concatenate([run[way] for run in runs])
                covered, width = np.nanmean(found[:, 0]), np.nanmedian(found[:, 1])
                print(
                    f"{p} regressors, {name}: {way}: coverage {covered:.3f}, "
                    f"width {width:.2f}, intervals {found[:, 2].mean():.2f} of {len(found)}",
                    flush=True,
                )
