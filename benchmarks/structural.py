# SPDX-License-Identifier: Apache-2.0
"""Confirmatory factors from released studies: do intervals hold the whole table's parameters, how
wide are they beside those without noise, and does the test of fit keep its level?

Tables, which Rscript writes: HolzingerSwineford1939 of lavaan (301 pupils, nine tests, three
factors) and bfi of psych (2,436 complete persons, 25 items, five factors). Samples are drawn with
replacement; `normal` are samples of the normal law of the three-factor fit, under which the test of
exact fit is right. The whole table's maximum likelihood (lavaan's, to rounding) is what intervals
should hold. The profile is the table's own quantiles.

    python -m benchmarks.structural [table ...]

with the variables SEM_SAMPLES (40), SEM_EPSILONS (1,4) and SEM_N (10000).

given: share of samples with a fit. covered: by free parameters' 95 % intervals (in brackets by
those of the same fit without noise); least: of one parameter; width: median, over that without
noise. rejected: share of tests of exact fit with p < .05, with noise and without. rmsea, cfi:
means, and those of the whole table.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent import NotEstimable
from reticent._study.structural import StructuralFit
from reticent.kinds.study import Study as StudyResults
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.study.kind import Study
from support.client.studies import result_of
from support.fits.regressions import drive
from support.kinds.studies import numeric, planned, read, whole

SAMPLES = int(os.environ.get("SEM_SAMPLES", "40"))
EPSILONS = tuple(float(e) for e in os.environ.get("SEM_EPSILONS", "1,4").split(","))
N = int(os.environ.get("SEM_N", "10000"))
SEED = 5_100
THREE = "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
FIVE = "\n".join(f"f{k} =~ " + " + ".join(f"{k}{i}" for i in range(1, 6)) for k in "ACENO")
TABLES = {
    "pupils": ("lavaan::HolzingerSwineford1939[paste0('x', 1:9)]", THREE, (0.0, 10.0)),
    "bfi": ("na.omit(psych::bfi[, 1:25])", FIVE, (1.0, 6.0)),
    "bfi, two": (
        "na.omit(psych::bfi[, c(1:5, 16:20)])",
        "\n".join(f"f{k} =~ " + " + ".join(f"{k}{i}" for i in range(1, 6)) for k in "AN"),
        (1.0, 6.0),
    ),
    "normal": ("lavaan::HolzingerSwineford1939[paste0('x', 1:9)]", THREE, (-2.0, 12.0)),
}


def of_r(expression: str) -> pd.DataFrame:
    code = f"write.csv({expression}, row.names = FALSE)"
    text = subprocess.run(["Rscript", "-e", code], capture_output=True, check=True, text=True)
    return pd.read_csv(StringIO(text.stdout))


def exact(table: Mapping[str, FloatArray], model: str) -> StructuralFit:
    names = tuple(table)
    values = np.column_stack(list(table.values()))
    return read(Study(names), result_of(values, 0.0, 0, names)).sem(model)


def released(
    table: Mapping[str, FloatArray], bounds: tuple[float, float], epsilon: float
) -> StudyResults:
    columns = [numeric(name, *bounds) for name in table]
    query = Study(tuple(table))
    plan = planned(table, columns, query, epsilon)
    return read(query, drive(plan.run(), whole(table)).result)


def drawn(frame: pd.DataFrame, name: str, fit: StructuralFit, seed: int) -> dict[str, FloatArray]:
    rng = np.random.default_rng(SEED + seed)
    if name != "normal":
        rows = frame.to_numpy(float)[rng.integers(0, len(frame), N)]
    else:
        values = frame.to_numpy(float)
        rows = rng.multivariate_normal(values.mean(0), implied(fit), N)
        rows = np.clip(rows, -2.0, 12.0)
    return {column: rows[:, k].copy() for k, column in enumerate(frame.columns)}


def implied(fit: StructuralFit) -> FloatArray:
    """Of simple structure."""
    factors = list(fit.loadings)
    L = np.array([[fit.loadings[f].get(c, 0.0) for f in factors] for c in fit.columns])
    F = np.array(
        [
            [fit[f"{a} ~~ {b}" if (a, b) in pairs(factors) else f"{b} ~~ {a}"].est for b in factors]
            for a in factors
        ]
    )  # fmt: skip
    return L @ F @ L.T + fit.residual_covariance


def pairs(factors: list[str]) -> set[tuple[str, str]]:
    return {(a, b) for i, a in enumerate(factors) for b in factors[i:]}


def compare(name: str, epsilon: float) -> str:
    expression, model, bounds = TABLES[name]
    frame = of_r(expression)
    truth = exact({c: frame[c].to_numpy(float) for c in frame}, model)
    target = np.array([e.est for e in truth.estimates])
    free = np.array([e.se > 0 for e in truth.estimates])
    covered, bare, widths, tests, plain, rmsea, cfi, given = [], [], [], [], [], [], [], 0
    for seed in range(SAMPLES):
        table = drawn(frame, name, truth, seed)
        without = exact(table, model)
        bare.append(_holds(without, target)[free])
        plain.append(without.fit_indices["pvalue"] < 0.05)
        try:
            fit = released(table, bounds, epsilon).sem(model)
        except NotEstimable:
            continue
        given += 1
        covered.append(_holds(fit, target)[free])
        ours, theirs = (np.array([e.se for e in each.estimates])[free] for each in (fit, without))
        widths.append(ours / theirs)
        if fit.fit_indices:
            tests.append(fit.fit_indices["pvalue"] < 0.05)
            rmsea.append(fit.fit_indices["rmsea"])
            cfi.append(fit.fit_indices["cfi"])
    if not given:
        return f"{name:8} {epsilon:4g} given 0"
    by = np.mean(covered, axis=0)
    at = (0.0, 1.0).__getitem__ if name == "normal" else _population(frame, model).__getitem__
    return (
        f"{name:8} {epsilon:4g} given {given / SAMPLES:.2f} covered {np.mean(covered):.3f} "
        f"({np.mean(bare):.3f}) least {by.min():.2f} width {np.median(widths):.2f} rejected "
        f"{np.mean(tests):.2f} ({np.mean(plain):.2f}) rmsea {np.mean(rmsea):.3f} ({at(0):.3f}) "
        f"cfi {np.mean(cfi):.3f} ({at(1):.3f})"
    )


def _population(frame: pd.DataFrame, model: str) -> tuple[float, float]:
    """RMSEA and CFI of the table's own misfit, as a population has them: of many copies of it."""
    many = pd.concat([frame] * 200)
    found = exact({c: many[c].to_numpy(float) for c in many}, model).fit_indices
    return found["rmsea"], found["cfi"]


def _holds(fit: StructuralFit, target: FloatArray) -> NDArray[np.bool_]:
    ends = np.array([e.conf_int() for e in fit.estimates])
    return np.asarray((ends[:, 0] <= target) & (target <= ends[:, 1]))


def main() -> None:
    for name in [each for each in sys.argv[1:] if each in TABLES] or TABLES:
        for epsilon in EPSILONS:
            print(compare(name, epsilon), flush=True)


if __name__ == "__main__":
    main()
