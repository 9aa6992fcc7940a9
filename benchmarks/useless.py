# SPDX-License-Identifier: Apache-2.0
"""From which forecast on are intervals useless? Of a slope of .2, Cohen's small effect, what
intervals say beside how far a plan says that privacy noise alone will make them reach.

`python -m benchmarks useless`: linear regressions of normal columns, of 200 to 5,000 records, two
or five terms, Huber's loss and least squares by turns, and ε from .3 to 7, REPEATS releases each,
in standard deviations of response and terms. `finds`: intervals of the slope that are above 0;
`wrong`: below 0; `none`: no interval.
"""

import os
from collections.abc import Iterator
from itertools import pairwise, product
from math import inf, sqrt

import numpy as np

from benchmarks.gauntlet.frame import Frame
from benchmarks.real_tables.fast import numpy_noise
from reticent_server.kinds.shared.linear.query import LinearRegression

REPEATS = int(os.environ.get("USELESS_REPEATS", "40"))
EFFECT = 0.2
SIZES, TERMS = (200, 400, 800, 1600, 5000), (2, 5)
EPSILONS = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0)
EDGES = (0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.2, 0.25, 0.3, inf)  # of the forecast reach
TWO_SIDED = 1.96
LOSSES = ("huber", "squared")


def frame(rng: np.random.Generator, n: int, terms: int) -> Frame:
    x = rng.normal(size=(terms, n))
    found = Frame().put("y", EFFECT * x[0] + sqrt(1 - EFFECT**2) * rng.normal(size=n), -6, 6)
    for k, each in enumerate(x):
        found.put(f"x{k}", each, -6, 6)
    return found


def intervals(n: int, terms: int, epsilon: float) -> Iterator[tuple[float, float, float]]:
    """(forecast reach, lower, upper end) of each release; NaN without an interval."""
    formula = "y ~ " + " + ".join(f"x{k}" for k in range(terms))
    for k in range(REPEATS):
        query = LinearRegression(formula, loss=LOSSES[k % 2])
        rng = np.random.default_rng((n, terms, int(100 * epsilon), k))
        with numpy_noise(rng, on=True):
            table = frame(rng, n, terms).rows(np.arange(n))
            plan = table.plan(query, epsilon)
            result = table.reply(plan)
            table.close()
        reach = TWO_SIDED * plan.planned.forecast["relative_error"] / sqrt(terms + 1)
        low, high = (None, None) if result is None else result["confidence_intervals"][1]
        yield reach, np.nan if low is None else low, np.nan if high is None else high


def main() -> None:
    found = np.array([row for at in product(SIZES, TERMS, EPSILONS) for row in intervals(*at)])
    reach, low, high = found.T
    print("reach     releases  finds  wrong  covered  none  half-width")
    for least, most in pairwise(EDGES):
        here = (reach >= least) & (reach < most)
        if not here.any():
            continue
        a, b = low[here], high[here]
        given = np.isfinite(a)
        covered = np.mean((a[given] <= EFFECT) & (b[given] >= EFFECT)) if given.any() else np.nan
        half = np.median((b - a)[given] / 2) if given.any() else np.nan
        print(
            f"{least:.2f}-{most:.2f}  {here.sum():6d}  {np.mean(a > 0):.2f}   {np.mean(b < 0):.3f}"
            f"  {covered:.3f}    {np.mean(~given):.2f}  {half:.2f}"
        )


if __name__ == "__main__":
    main()
