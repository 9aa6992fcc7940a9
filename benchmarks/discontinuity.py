# SPDX-License-Identifier: Apache-2.0
"""The jump at a cut-off on real tables, beside local least squares: `python -m
benchmarks.discontinuity DIR`.

DIR holds senate.csv (rdrobust_RDsenate of R's and Python's rdrobust: margin, vote, population;
1,297 elections), elections.csv (close_elections_lmb of causaldata: demvoteshare, score,
lagdemvoteshare; 13,566 complete) and mortgages.csv (mortgages of causaldata: qob_minus_kw,
home_ownership, vet_wwko; 214,144 men). Each sample draws as many records as the line says, with
replacement; what an interval has to hold is the jump by local least squares on the whole table, at
the same bandwidth and order (without a bandwidth of its own for the bias: rdrobust's h = b). Prints
what the textbook's intervals of the same samples cover, and of the answers with a profile at ε the
share given, coverage, and the median width over the textbook's. DISCONTINUITY_SAMPLES (24) a line.
"""

import os
import sys
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.named_tests import offer
from reticent_server.kinds.discontinuity.kind import KIND, Discontinuity
from support.fits.regressions import drive, facts_of, numeric, profile_of, whole

SAMPLES = int(os.environ.get("DISCONTINUITY_SAMPLES", "24"))
Z = 1.96


@dataclass(frozen=True, slots=True)
class JumpCase:
    """A question of a table. bounds: of the response, then of the running column."""

    table: str
    y: str
    running: str
    cutoff: float
    bandwidth: float
    bounds: tuple[float, float]
    ends: tuple[float, float]
    n: int
    order: int = 1


ELECTIONS = ("elections", "score", "demvoteshare", 0.5)
MARGIN = ("senate", "vote", "margin", 0.0)
CASES = (
    JumpCase(*ELECTIONS, 0.1, (0.0, 130.0), (0.0, 1.0), 13_577),
    JumpCase(*ELECTIONS, 0.25, (0.0, 130.0), (0.0, 1.0), 13_577),
    JumpCase(*ELECTIONS, 0.25, (0.0, 130.0), (0.0, 1.0), 13_577, 2),
    JumpCase(
        "elections", "lagdemvoteshare", "demvoteshare", 0.5, 0.25, (0.0, 1.0), (0.0, 1.0), 13_577
    ),
    JumpCase(*MARGIN, 20.0, (0.0, 100.0), (-100.0, 100.0), 1_297),
    JumpCase(*MARGIN, 20.0, (0.0, 100.0), (-100.0, 100.0), 10_000),
    JumpCase("senate", "population", "margin", 0.0, 20.0, (0.0, 4e7), (-100.0, 100.0), 10_000),
    JumpCase("mortgages", "vet_wwko", "qob_minus_kw", 0.0, 12.0, (0.0, 1.0), (-55.0, 29.0), 20_000),
    JumpCase(
        "mortgages", "home_ownership", "qob_minus_kw", 0.0, 12.0, (0.0, 1.0), (-55.0, 29.0), 20_000
    ),
    JumpCase(
        "mortgages", "home_ownership", "qob_minus_kw", 0.0, 12.0, (0.0, 1.0), (-55.0, 29.0), 200_000
    ),
)


def textbook(case: JumpCase, x, y):
    """The jump and its error (HC0), by least squares with triangular weights."""
    a = np.clip(1 - np.abs(x - case.cutoff) / case.bandwidth, 0, 1)
    x, y, a = x[a > 0] - case.cutoff, y[a > 0], a[a > 0]
    sides = [x**k * (x >= 0) for k in range(case.order + 1)]
    X = np.column_stack([*(x**k for k in range(case.order + 1)), *sides])
    X = X / np.abs(X).max(axis=0)
    B = np.linalg.inv(X.T @ (X * a[:, None]))
    beta = B @ X.T @ (a * y)
    scores = X * (a * (y - X @ beta))[:, None]
    place = case.order + 1
    return beta[place], sqrt((B @ scores.T @ scores @ B)[place, place])


def line(case: JumpCase, frame: pd.DataFrame) -> str:
    """A row of the table."""
    x, y = (frame[name].to_numpy(float) for name in (case.running, case.y))
    truth = textbook(case, x, y)[0]
    columns = [numeric("x", *case.ends), numeric("y", *case.bounds)]
    rng = np.random.default_rng(5)
    usual, held, widths = [], {1.0: [], 4.0: []}, {1.0: [], 4.0: []}
    for _ in range(SAMPLES):
        drawn = rng.integers(0, len(x), case.n)
        data = {"x": x[drawn], "y": y[drawn]}
        jump, error = textbook(case, data["x"], data["y"])
        usual.append(abs(jump - truth) <= Z * error)
        facts = facts_of(case.n, columns, profile_of(data, columns), 1)
        query = Discontinuity("y", "x", case.cutoff, case.bandwidth, order=case.order)
        for epsilon, found in held.items():
            result = drive(KIND.plan(facts, query, offer(epsilon)).run(), whole(data)).result
            low, high = result["confidence_intervals"][1]
            if low is not None:
                found.append(low <= truth <= high)
                widths[epsilon].append((high - low) / (2 * Z * error))
    cells = [
        f"{len(held[e]) / SAMPLES:.2f} | {np.mean(held[e]):.2f} | {np.median(widths[e]):.2f}"
        if held[e]
        else "0 | – | –"
        for e in held
    ]
    name = f"`{case.y}` at `{case.running}` = {case.cutoff:g} ± {case.bandwidth:g}, {case.table}"
    return f"| {name} | {case.order} | {case.n:,} | {np.mean(usual):.2f} | " + " | ".join(cells)


def main() -> None:
    folder = Path(sys.argv[1])
    print(
        "| jump | order | n | textbook's | ε = 1: given | covered | width | ε = 4: given |", end=""
    )
    print(" covered | width |\n|---|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        print(line(case, pd.read_csv(folder / f"{case.table}.csv")) + " |", flush=True)


if __name__ == "__main__":
    main()
