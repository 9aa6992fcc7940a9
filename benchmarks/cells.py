# SPDX-License-Identifier: Apache-2.0
"""Accuracy over (p, n) × ε × errors: ours, private peers, and the fits without privacy.

The median over runs of the L2 error of the slopes; `paired` is ours on the tables that the peers
had, which are fewer, and `ahead` compares that. Ours runs through planning, the recipe and the real
mechanisms, standardised by a profile (ε = 1) of a table of the same distribution. Designs:
`designs`; peers: `private_peers` and the server's own noisy gradient descent (`descent`). `tuned`
is a descent that is told the true residual scale, with the best of six settings for each cell,
chosen on other tables: what a private descent could at best be. `biweight` is ours with Tukey's
loss, where errors or designs are not clean. Seeds were not used for tuning.

BENCH_RUNS (100): runs of a clean cell, and of p = 4, n = 20,000 with contamination; others get 20 %
of them. BENCH_PEER_RUNS (16): runs of the peers in these, half as many in others and at n =
100,000. BENCH_CELLS: largest n (default: all). BENCH_PLOT: the file that the plot is written to.
BENCH_ROWS: a file that rows are kept in, and taken from when it is run again.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import designs, private_peers
from benchmarks.accuracy import EPSILONS, BenchTable
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block
from reticent_server.fitting.report import back_transform
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import registry

RUNS = int(os.environ.get("BENCH_RUNS", "100"))
PEER_RUNS = int(os.environ.get("BENCH_PEER_RUNS", "16"))
LARGEST = int(os.environ.get("BENCH_CELLS", "1000000"))
PLOT = Path(os.environ.get("BENCH_PLOT", Path(__file__).parents[1] / "docs/images/accuracy.svg"))
ROWS = os.environ.get("BENCH_ROWS")
FIRST_SEED, TUNING_SEED, TUNING_RUNS, TABLES_OF_A_PROFILE = 810_000, 640_000, 3, 50
FIGURES = {
    (4, 2_000): (0.30, 0.044, 0.026),
    (4, 5_000): (0.078, 0.024, 0.017),
    (4, 20_000): (0.020, 0.011, 0.011),
    (4, 100_000): (0.005, 0.0037, 0.0038),
    (10, 2_000): (1.0, 0.13, 0.054),
    (10, 5_000): (0.33, 0.038, 0.031),
    (10, 20_000): (0.039, 0.017, 0.016),
    (10, 100_000): (0.010, 0.008, 0.008),
}
CONTAMINATION_FIGURES = {(4, 20_000): (0.031, 0.027, 0.027)}
PAPER_SIZES = (5_000, 20_000)
PRIVATE = ("ours", "descent", "tuned", "eq3", "adassp")
PEERS = ("descent", "eq3", "adassp")


def columns(p):
    bounded = [Column(f"x{j}", ColumnKind.NUMERIC, -30.0, 30.0) for j in range(p)]
    return [*bounded, Column("y", ColumnKind.NUMERIC, -200.0, 200.0)]


def released(recipe, block):
    """A recipe's result through the real mechanisms."""
    try:
        step = next(recipe)
        while True:
            sums = registry.encode_all(step.parts, step.map_fn(block), joint=step.joint)
            parts = zip(step.parts, sums, strict=True)
            step = recipe.send(tuple(registry.release(p, Private(s)) for p, s in parts))
    except StopIteration as stop:
        return stop.value


class Cell:
    """One (design, p, n): a plan for each ε, and a profile that new tables take up in turn."""

    def __init__(self, errors, p, n) -> None:
        self.errors, self.p, self.n = errors, designs.size(errors, p), n
        self.truth = designs.slopes(errors, self.p)
        self.query = LinearRegression("y ~ " + " + ".join(f"x{j}" for j in range(self.p)))
        self.plans, self.biweight_plans, self.descent_plans = (), (), ()

    def draw(self, seed):
        return designs.draw(self.errors, self.p, self.n, seed)

    def arrays(self, X, y):
        return {**{f"x{j}": np.ascontiguousarray(x) for j, x in enumerate(X.T)}, "y": y}

    def take_profile(self, X, y):
        table = BenchTable(self.arrays(X, y), columns(self.p)).profiled()
        biweight = replace(self.query, loss="tukey")
        descent = replace(self.query, mechanism="gradient_descent")
        self.plans, self.biweight_plans, self.descent_plans = (
            [table.plan(query, epsilon).planned for epsilon in EPSILONS]
            for query in (self.query, biweight, descent)
        )
        table.close()

    def ours(self, X, y):
        """Errors (ε,) of the recipe."""
        return self._errors(self.plans, X, y)

    def biweights(self, X, y):
        """Errors (ε,) of the recipe with the biweight."""
        return self._errors(self.biweight_plans, X, y)

    def _errors(self, plans, X, y):
        block = Block(0, self.n, self.arrays(X, y), {})
        return [
            self.error(self.reported(plan.ground.coding, self.fit(plan, block).theta))
            for plan in plans
        ]

    def fit(self, plan, block):
        return released(plan.newton.fit(), block)

    def reported(self, coding, theta):
        return back_transform(coding).coefficients(theta)[1:]

    def descents(self, X, y):
        """Errors (ε,) of the server's gradient descent."""
        block = Block(0, self.n, self.arrays(X, y), {})
        results = [released(plan.run(), block) for plan in self.descent_plans]
        return [self.error(np.array(result.coefficients)[1:]) for result in results]

    def error(self, coefficients):
        return float(np.linalg.norm(coefficients - self.truth))

    def usable(self):
        """(ε,) whether the plan forecasts privacy standard errors below 3 sampling ones."""
        return [plan.forecast_fit.worst < 3 for plan in self.plans]


def tuned_descents(cell, X, y, scale, rng):
    """Errors (settings, ε) of gradient descent with the true scale."""
    rhos = [rho_units(epsilon, private_peers.DELTA) / RHO_UNITS for epsilon in EPSILONS]
    return [
        [cell.error(private_peers.noisy_descent(X, y, rng, rho, scale, setting)) for rho in rhos]
        for setting in private_peers.DESCENTS
    ]


def peer_runs(cell, runs):
    """Medians by method: (ε,) for private ones, a number for the others."""
    rng = np.random.default_rng(FIRST_SEED)
    tuned = []
    for k in range(TUNING_RUNS):
        X, y = cell.draw(TUNING_SEED + k)
        tuned.append(tuned_descents(cell, X, y, 0.5, rng))
    best = np.argmin(np.median(tuned, axis=0), axis=0)
    found = {name: [] for name in ("descent", "tuned", "eq3", "adassp", "robust")}
    for k in range(runs):
        X, y = cell.draw(FIRST_SEED + k)
        fit = private_peers.huber_mallows(X, y)
        found["robust"].append(cell.error(fit.coefficients[1:]))
        found["descent"].append(cell.descents(X, y))
        found["tuned"].append(tuned_runs(cell, X, y, rng, best))
        found["eq3"].append(
            [cell.error(private_peers.asymptotic_noise(X, y, fit, rng, e)) for e in EPSILONS]
        )
        found["adassp"].append([cell.error(private_peers.ada_ssp(X, y, rng, e)) for e in EPSILONS])
    return {name: np.median(values, axis=0).tolist() for name, values in found.items()}


def tuned_runs(cell, X, y, rng, best):
    """Errors (ε,) with the setting that was best for each ε."""
    found = []
    for epsilon, k in zip(EPSILONS, best, strict=True):
        rho = rho_units(epsilon, private_peers.DELTA) / RHO_UNITS
        slopes = private_peers.noisy_descent(X, y, rng, rho, 0.5, private_peers.DESCENTS[k])
        found.append(cell.error(slopes))
    return found


def kept_rows():
    """Rows of an earlier run by (design, p, n)."""
    lines = Path(ROWS).read_text().splitlines() if ROWS and Path(ROWS).exists() else []
    return {(row["errors"], row["p"], row["n"]): row for row in map(json.loads, lines)}


def run_cell(errors, p, n, runs, figures=None):
    """A row of the table for one design."""
    row = kept_rows().get((errors, designs.size(errors, p), n))
    if row is None:
        row = new_row(errors, p, n, runs, figures)
        if ROWS:
            with Path(ROWS).open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(line(row), flush=True)
    return row


def new_row(errors, p, n, runs, figures):
    cell, ours, biweight, ols = Cell(errors, p, n), [], [], []
    for k in range(runs):
        X, y = cell.draw(FIRST_SEED + k)
        if k % TABLES_OF_A_PROFILE == 0:
            cell.take_profile(*cell.draw(TUNING_SEED - 1 - k))
        ours.append(cell.ours(X, y))
        if errors != "clean":
            biweight.append(cell.biweights(X, y))
        ols.append(cell.error(private_peers.least_squares(X, y)))
    row = {"errors": errors, "p": cell.p, "n": n, "runs": runs, "epsilons": EPSILONS}
    row |= {"ours": np.median(ours, axis=0).tolist(), "ols": float(np.median(ols))}
    if biweight:
        row["biweight"] = np.median(biweight, axis=0).tolist()
    peers = max(1, min(runs, PEER_RUNS if n < 100_000 and figures else PEER_RUNS // 2))
    row |= {"peer_runs": peers, **peer_runs(cell, peers), "usable": cell.usable()}
    if figures:
        row["figures"] = figures
        row["ratios"] = [o / f for o, f in zip(row["ours"], figures, strict=True)]
    row["paired"] = np.median(ours[:peers], axis=0).tolist()
    row["ahead"] = [
        all(row["paired"][k] <= row[peer][k] for peer in PEERS) for k in range(len(EPSILONS))
    ]
    return row


def line(row) -> str:
    values = "".join(
        "  | "
        + " ".join(f"{row[m][k]:.4f}" for m in PRIVATE)
        + (f" biweight {row['biweight'][k]:.4f}" if "biweight" in row else "")
        + (f" x{row['ratios'][k]:.2f}" if "ratios" in row else "")
        + ("" if row["ahead"][k] else " behind")
        + ("" if row["usable"][k] else " (unusable)")
        for k in range(len(row["epsilons"]))
    )
    return (
        f"{row['errors']:12} {row['p']:2d} {row['n']:6d} {row['ols']:.4f} "
        f"{row['robust']:.4f}{values}"
    )


def all_cells():
    print(
        "design, p, n, OLS, robust | ours, descent, tuned, eq. (3), AdaSSP at eps = .2 | 1 | 4",
        flush=True,
    )
    few = max(1, int(0.2 * RUNS))
    sizes = [key for key in FIGURES if key[1] <= LARGEST]
    rows = [run_cell("clean", p, n, RUNS, FIGURES[p, n]) for p, n in sizes]
    for (p, n), figures in CONTAMINATION_FIGURES.items():
        rows += [run_cell("contaminated", p, n, RUNS, figures)] if n <= LARGEST else []
    others = [(e, p, n) for p, n in sizes for e in ("t4", "contaminated")]
    others += [(design, 4, n) for design in "abde" for n in PAPER_SIZES if n <= LARGEST]
    done = {("contaminated", *key) for key in CONTAMINATION_FIGURES}
    rest = sorted((c for c in others if c not in done), key=lambda c: c[2])
    return rows + [run_cell(errors, p, n, few) for errors, p, n in rest]


def plot(rows, path) -> None:
    """Error against n: a panel for each p and ε, clean errors."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    names = {
        "ours": "noisy Newton (ours)",
        "descent": "noisy gradient descent",
        "tuned": "the same, told the truth",
        "eq3": "eq. (3)",
        "adassp": "AdaSSP",
        "robust": "robust, not private",
        "ols": "OLS, not private",
    }
    mpl.rcParams["svg.hashsalt"] = "accuracy"
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True)
    for panels, p in zip(axes, (4, 10), strict=True):
        clean = (row for row in rows if row["errors"] == "clean" and row["p"] == p)
        cells = sorted(clean, key=lambda row: row["n"])
        for k, (axis, epsilon) in enumerate(zip(panels, EPSILONS, strict=True)):
            for method, label in names.items():
                values = [r[method][k] if method in PRIVATE else r[method] for r in cells]
                style = {"marker": "o"} if method in PRIVATE else {"linestyle": "--"}
                width = 2.5 if method == "ours" else 1.2
                axis.loglog([r["n"] for r in cells], values, label=label, linewidth=width, **style)
            axis.set_title(f"p = {p}, ε = {epsilon:g}")
            axis.grid(alpha=0.3)
    axes[1, 1].set_xlabel("records n")
    for panels in axes:
        panels[0].set_ylabel("median L2 error")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def summary(rows):
    ratios = [x for row in rows for x in row.get("ratios", ())]
    behind = [
        (row["errors"], row["p"], row["n"], epsilon)
        for row in rows
        for epsilon, ahead, usable in zip(EPSILONS, row["ahead"], row["usable"], strict=True)
        if usable and not ahead
    ]
    return {
        "largest_ratio": max(ratios, default=None),
        "behind_a_private_peer_where_usable": behind,
    }


def main() -> None:
    rows = all_cells()
    found = summary(rows)
    print(found)
    plot(rows, PLOT)
    print(json.dumps({"benchmark": "cells", **found, "cells": rows}))


if __name__ == "__main__":
    main()
