# SPDX-License-Identifier: Apache-2.0
"""Curves like those of Figures 1, 2 and 3 of Avella-Medina (2021), for the regression of this
server.

Three N(0, 1) terms, slopes (.5, −.25, 0), errors of variance .5 (benchmarks.designs, b);
contaminated: 1 % of the records replaced, y ~ N(12, .1²) and the third term ~ N(5, .1²), the
coefficient that is tested. (The paper's own constants are lost in our copy of it.)

    curves-error   median L2 distance of the slopes from the truth, by n
    curves-level   how often a Wald test of the third slope rejects at 5 %, by n
    curves-power   the same at n = 5,000, by how far the hypothesis is from the truth, in σ/√n

beside least squares and the noise-free robust fit. The power is that of the hypotheses β₃ = −shift
on the same fits: regressions follow a shift of the response, up to how a profile rounds. Everything
runs through planning, the engine and the mechanisms; a profile (ε = 1) is that of the next 20
tables too, which come from the same distribution. BENCH_RUNS: tables of each n (100). Seeds were
not used for tuning.
"""

import json
import os
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from benchmarks.accuracy import BenchTable
from benchmarks.designs import draw, slopes
from benchmarks.figures import panels, save
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block
from reticent_server.kinds.linear_regression.target import noise_free_fit
from reticent_server.kinds.shared.linear.query import LinearRegression

RUNS, FIRST_SEED, KEPT = int(os.environ.get("BENCH_RUNS", "100")), 90_000, 20
SIZES, POWER_SIZE = (1_000, 2_000, 5_000, 10_000, 20_000), 5_000
SHIFTS = np.linspace(0, 6, 25)
OUTLIERS, SD, CRITICAL = 0.01, float(np.sqrt(0.5)), float(ndtri(0.975))
QUERIES = {
    "ε = 0.2": ("huber", 0.2),
    "ε = 1": ("huber", 1.0),
    "ε = 4": ("huber", 4.0),
    "biweight, ε = 1": ("tukey", 1.0),
}
NAMES = ("least squares", "robust, no noise", *QUERIES)
COLUMNS = [
    *(Column(f"x{j}", ColumnKind.NUMERIC, -10.0, 10.0) for j in range(3)),
    Column("y", ColumnKind.NUMERIC, -100.0, 100.0),
]
CLEAN, CONTAMINATED = "clean", "1 % contaminated"


def main() -> None:
    cells = [cell(design, n) for design in (CLEAN, CONTAMINATED) for n in SIZES]
    plot_by_size(cells, "error", "median L2 error", "curves-error")
    plot_by_size(cells, "level", "rejections at 5 %", "curves-level")
    plot_power(cells)
    print(json.dumps({"benchmark": "curves", "runs": RUNS, "cells": cells}))


def cell(design, n):
    """Errors, levels and power of every method at one n."""
    kept = KeptTables()
    runs = [one_table(design, n, k, kept) for k in range(RUNS)]
    errors, found = np.array([r[0] for r in runs]), np.array([r[1] for r in runs])
    rejected = power(found, n)
    row = {
        "design": design,
        "n": n,
        "error": dict(zip(NAMES, np.median(errors, axis=0).tolist(), strict=True)),
        "level": dict(zip(NAMES, rejected[:, 0].tolist(), strict=True)),
        "power": dict(zip(NAMES, rejected.tolist(), strict=True)),
    }
    for name in NAMES:
        half = np.interp(0.5, row["power"][name], SHIFTS)
        level, error = row["level"][name], row["error"][name]
        print(f"{design:17} {n:6d} {name:17} error {error:.4f} level {level:.3f} half {half:.2f}")
    return row


class KeptTables:
    """The profile of each KEPT-th table."""

    profile = None


def one_table(design, n, k, kept):
    """(methods,) errors of the slopes; (methods, 2) estimate and standard error of the third."""
    seed = FIRST_SEED + 1000 * SIZES.index(n) + k
    X, y = draw("b", 3, n, seed)
    if design == CONTAMINATED:
        rng, bad = np.random.default_rng((seed, 1)), round(OUTLIERS * n)
        X[:bad, 2], y[:bad] = rng.normal(5.0, 0.1, bad), rng.normal(12.0, 0.1, bad)
    table = BenchTable(
        {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(3)} | {"y": y}, COLUMNS
    )
    if k % KEPT == 0:
        kept.profile = table.profiled().facts.profile
    table.facts = replace(table.facts, profile=kept.profile)
    fits = [least_squares(X, y), robust(table), *(private(table, q) for q in QUERIES)]
    table.close()
    errors = [float(np.linalg.norm(beta[1:] - slopes("b", 3))) for beta, _ in fits]
    return errors, [(beta[3], se[3]) for beta, se in fits]


def least_squares(X, y):
    X = np.column_stack([np.ones(len(y)), X])
    inverse = np.linalg.inv(X.T @ X)
    beta = inverse @ X.T @ y
    s2 = np.sum((y - X @ beta) ** 2) / (len(y) - 4)
    return beta, np.sqrt(s2 * np.diag(inverse))


def robust(table):
    """The noise-free fit of what is estimated at ε = 4."""
    plan = table.plan(asked("huber"), 4.0).planned
    fit = noise_free_fit(plan, Block(0, table.n, table.arrays, {}))
    return fit.coefficients, fit.standard_errors


def private(table, name):
    loss, epsilon = QUERIES[name]
    result = table.release(table.plan(asked(loss), epsilon))
    return np.array(result["coefficients"]), np.array(result["standard_errors"])


def asked(loss):
    return LinearRegression("y ~ x0 + x1 + x2", loss=loss)


def power(found, n):
    """(methods, shifts): how often β₃ = −shift·σ/√n is rejected."""
    distance = SHIFTS * SD / np.sqrt(n)
    estimates, errors = found[..., 0], found[..., 1]
    z = (estimates[..., None] + distance) / errors[..., None]
    return np.mean(np.abs(z) > CRITICAL, axis=0)


def plot_by_size(cells, value, label, name) -> None:
    figure, axes = panels(1, 2)
    for axis, design in zip(axes[0], (CLEAN, CONTAMINATED), strict=True):
        rows = [c for c in cells if c["design"] == design]
        for method in NAMES:
            axis.plot([c["n"] for c in rows], [c[value][method] for c in rows], **style(method))
        axis.set(title=design, xlabel="n", xscale="log")
        if value == "error":
            axis.set(yscale="log")
        else:
            axis.axhline(0.05, color="grey", lw=0.8, ls=":")
    axes[0][0].set(ylabel=label)
    save(figure, axes, name, columns=3)


def plot_power(cells) -> None:
    figure, axes = panels(1, 2)
    for axis, design in zip(axes[0], (CLEAN, CONTAMINATED), strict=True):
        (row,) = (c for c in cells if (c["design"], c["n"]) == (design, POWER_SIZE))
        for method in NAMES:
            axis.plot(SHIFTS, row["power"][method], **style(method, marker=""))
        axis.axhline(0.05, color="grey", lw=0.8, ls=":")
        axis.set(title=design, xlabel="shift in σ/√n")
    axes[0][0].set(ylabel=f"power at n = {POWER_SIZE:,}")
    save(figure, axes, "curves-power", columns=3)


def style(method, marker="o"):
    """Not private: grey and black, dashed."""
    plain = {"least squares": "tab:grey", "robust, no noise": "black"}
    how = {"label": method, "marker": marker, "ms": 3}
    return how | ({"color": plain[method], "ls": "--"} if method in plain else {})


if __name__ == "__main__":
    main()
