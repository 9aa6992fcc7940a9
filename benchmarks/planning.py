# SPDX-License-Identifier: Apache-2.0
"""Processor time of the plans that take most: each of a design that was not planned before, and
again at another epsilon, as while one is chosen.

A JSON object a line: `plan` alone, `first` with its forecast and both of its epsilons, `again` the
same at another epsilon; milliseconds of processor time of one thread, the least of
BENCH_PLANNING_REPEATS (3) runs. `wanted`: the search for the widths that epsilon = 100 brings times
1.5, where there is one.
"""

import json
import os
import time

from threadpoolctl import threadpool_limits

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.fitting.public import coordinates, rows
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.pipeline.forecasts import forecast_json
from reticent_server.pipeline.wanted import Wanted, least_plan

REPEATS = int(os.environ.get("BENCH_PLANNING_REPEATS", "3"))
DELTA = 1e-6
NUMBERS = [f"x{i}" for i in range(12)]
COLUMNS = (
    *(Column(name, ColumnKind.NUMERIC, -5, 5) for name in ("y", *NUMBERS)),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
    Column("w", ColumnKind.CATEGORICAL, 0, 1, ("no", "yes")),
    Column("g64", ColumnKind.CATEGORICAL, 0, 63, tuple(f"l{i}" for i in range(64))),
    Column("g250", ColumnKind.CATEGORICAL, 0, 249, tuple(f"l{i}" for i in range(250))),
)
FACTS = DatasetFacts("wide", "wide", 1, "v", 21_613, Schema(COLUMNS))
POLYNOMIALS = "poly(x0, 10)*poly(x1, 10)*C(w)"
KNOTS = ", ".join(f"{-4.5 + 0.45 * i:.2f}" for i in range(20))
SPLINES = " + ".join(f"bs(x{i}, knots=[{KNOTS}])" for i in range(10))
COLLINEAR = f"x0 + poly(x0, 3) + ({' + '.join(NUMBERS[:6])})*({' + '.join(NUMBERS[6:])})*C(w) + g64"
QUESTIONS = {
    "242 columns": LinearRegression(f"y ~ {POLYNOMIALS}"),
    "242 columns, least squares": LinearRegression(f"y ~ {POLYNOMIALS}", loss="squared"),
    "242 columns, logit": Glm(f"b ~ {POLYNOMIALS}", "binomial"),
    "242 columns, a median": QuantileRegression(f"y ~ {POLYNOMIALS}", 0.5),
    "13 columns, nine quantiles": QuantileRegression(
        f"y ~ {' + '.join(NUMBERS)}", tuple(i / 10 for i in range(1, 10))
    ),
    "231 columns of splines": LinearRegression(f"y ~ {SPLINES}"),
    "a factor of 250 levels": LinearRegression("y ~ g250"),
    "collinear terms": LinearRegression(f"y ~ {COLLINEAR}"),
    "64 columns": LinearRegression("y ~ g64"),
}


def forget() -> None:
    """What is kept of designs that were planned."""
    coordinates._coordinates.cache_clear()  # noqa: SLF001 - as a new process would
    rows._drawn.cache_clear()  # noqa: SLF001


def plan(query, epsilon):
    return planning.plan(FACTS, query, Privacy(epsilon, DELTA), gaussian=True)


def milliseconds(call):
    begun = time.process_time()
    found = call()
    return found, 1e3 * (time.process_time() - begun)


def with_forecast(query, epsilon):
    ready = plan(query, epsilon)
    return ready, forecast_json(ready), ready.planned.precision


def once(query):
    forget()
    _, alone = milliseconds(lambda: plan(query, 1.0))
    forget()
    _, first = milliseconds(lambda: with_forecast(query, 1.0))
    _, again = milliseconds(lambda: with_forecast(query, 2.0))
    return {"plan": alone, "first": first, "again": again}


def wanted(query):
    known = plan(query, 100.0).planned.precision
    pairs = zip(known.names, known.ci_ratios, strict=True)
    widths = {n: 1.5 * r for n, r in pairs if r not in (None, float("inf"))}
    if not widths:
        return {}
    forget()
    return {
        "wanted": milliseconds(
            lambda: least_plan(lambda e: plan(query, e), Wanted(ci_ratio=widths), DELTA, 100.0)
        )[1]
    }


def main() -> None:
    threadpool_limits(1)  # as the planner has: threads that wait for each other take processor time
    for name, query in QUESTIONS.items():
        runs = [once(query) for _ in range(REPEATS)]
        least = {part: min(run[part] for run in runs) for part in runs[0]} | wanted(query)
        print(json.dumps({"question": name} | {k: round(v) for k, v in least.items()}), flush=True)


if __name__ == "__main__":
    main()
