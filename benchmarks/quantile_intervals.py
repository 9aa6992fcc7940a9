# SPDX-License-Identifier: Apache-2.0
"""Intervals of quantiles: how often they hold the law's quantile, how often an end is the column's
bound, and how much wider they are than those of the same records without privacy.

`python -m benchmarks quantile_intervals` prints a line for each law, size and ε: of five quantiles
(10 % to 90 %) of QUANTILE_RUNS tables the least coverage, the largest share of bounds, and the
median of widths over those between the order statistics of ranks np ± 1.96 √(np(1 − p)), where
these differ.
"""

import os
import sys
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.pipeline.planning import plan as planned
from support.kinds.recipes import answer, block_of, facts_of, numeric

RUNS = int(os.environ.get("QUANTILE_RUNS", "40"))
SIZES, EPSILONS, DELTA = (1200, 4000, 20_000), (0.5, 1.0), 1e-6
P = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def shifted(share, law):
    """Quantiles of a law with this share at 0, and the others as the law, beyond 0."""
    return np.where(share >= P, 0.0, law(np.clip((P - share) / (1 - share), 1e-12, 1)))


def pay(p):
    """Wages with a least one: a gap lies below them."""
    return 3000 + np.exp(7 + stats.norm.ppf(p))


WHOLE = Column("x", ColumnKind.INTEGER, 0, 1000, (), ())
LAWS = {
    "normal in ±10⁶": (numeric("x", -1e6, 1e6), 50 + 10 * stats.norm.ppf(P)),
    "log-normal": (numeric("x", 0.0, 1e5), np.exp(3 + stats.norm.ppf(P))),
    "Poisson 3.2": (WHOLE, stats.poisson.ppf(P, 3.2)),
    "40 % zeros": (numeric("x", 0.0, 1e3), shifted(0.4, lambda p: -50 * np.log1p(-p))),
    "53 % zeros, a gap": (numeric("x", 0.0, 1e5), shifted(0.53, pay)),
}


def drawn(name, rng, n):
    """(n,) records of a law."""
    return {
        "normal in ±10⁶": lambda: rng.normal(50, 10, n),
        "log-normal": lambda: rng.lognormal(3, 1, n),
        "Poisson 3.2": lambda: rng.poisson(3.2, n).astype(float),
        "40 % zeros": lambda: np.where(rng.random(n) < 0.4, 0.0, rng.exponential(50, n)),
        "53 % zeros, a gap": lambda: np.where(rng.random(n) < 0.53, 0.0, pay(rng.random(n))),
    }[name]()


def plain(values):
    """(5,) widths of the intervals without privacy."""
    n, ranked = len(values), np.sort(values)
    off = 1.96 * np.sqrt(n * P * (1 - P))
    low, high = (np.clip(n * P + s * off, 0, n - 1).astype(int) for s in (-1, 1))
    return ranked[high] - ranked[low]


def line(name, n, epsilon):
    """The least coverage, the largest share of bounds, the median ratio of widths."""
    column, truth = LAWS[name]
    query = Quantiles("x", tuple(P), intervals=True)
    plan = planned(facts_of(n, (column,)), query, Privacy(epsilon, DELTA)).planned
    rng = np.random.default_rng(1)
    held, bounds, ratios = [], [], []
    for _ in range(RUNS):
        values = drawn(name, rng, n)
        ends = np.array(answer(plan, block_of({}, x=values))["confidence_intervals"])
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        bounds.append(
            ((ends[:, 0] == column.lower) & (truth > column.lower)) | (ends[:, 1] == column.upper)
        )
        widths = plain(values)
        ratios += list((np.diff(ends)[:, 0] / np.where(widths > 0, widths, np.nan))[widths > 0])
    return np.mean(held, 0).min(), np.mean(bounds, 0).max(), np.median(ratios)


def main() -> None:
    print("| law | n | ε | coverage | bounds | width |\n|---|---|---|---|---|---|")
    for name in LAWS:
        for n in SIZES:
            for epsilon in EPSILONS:
                covered, bounds, ratio = line(name, n, epsilon)
                print(
                    f"| {name} | {n:,} | {epsilon:g} | {covered:.2f} | {bounds:.2f} | {ratio:.2f} |"
                )


if __name__ == "__main__":
    main()
