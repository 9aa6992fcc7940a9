# SPDX-License-Identifier: Apache-2.0
"""Wages on schooling and experience (Current Population Survey, March 2024; n = 54,875): Mincer's
regression, at ε = 1 and .2, beside OLS and noisy sufficient statistics in one run.

Samples of n records drawn with replacement from the table, each with a released profile (ε = .5)
for ours; the peer is told means, deviations and a bound of the table itself (`noisy_statistics`).
By coefficient: the ratio of interval widths to OLS's on the same sample; how many intervals hold
the whole table's coefficient, as OLS has it and as the method has it without noise; how often sign
and significance (5 %) differ from OLS on the same sample. The Urban Institute asks for a ratio of
at most 1.25, and mismatches of at most 5 % in sign and 10 % in significance.

WAGES_RUNS (200): samples. GAUNTLET_DATA: the folder of cps_asec_2024_wages.csv.
Heteroscedasticity-consistent errors throughout.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy import BenchTable
from benchmarks.gauntlet.frame import Frame
from benchmarks.gauntlet.models import MINCER
from benchmarks.gauntlet.replies import estimates
from benchmarks.gauntlet.summary import Z
from benchmarks.gauntlet.tables import AbsentTable, table
from benchmarks.gauntlet.targets import LEAST_WHOLE, noise_free
from benchmarks.noisy_statistics import LinearFit, Told, least_squares, noisy_statistics
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.linear_regression.target import noise_free_fit
from reticent_server.kinds.shared.linear.query import LinearRegression

RUNS = int(os.environ.get("WAGES_RUNS", "200"))
FIRST_SEED = 930_000
EPSILONS, DELTA = (1.0, 0.2), 1e-6
# of the norms, at which the peer's records are scaled down: the best of 1, .999, .99 and .95
TOLD_QUANTILE = 0.99
QUERIES = {
    "Huber": LinearRegression(MINCER),
    "least squares": LinearRegression(MINCER, loss="squared"),
}
PEER = "noisy statistics"
X_NAMES, Y_NAME = ("educ_years", "experience", "experience_sq", "female"), "log_wage"
RATIO, SIGN, SIGNIFICANCE = 1.25, 0.05, 0.10  # the Urban Institute's


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Of one method at one ε over R samples: all (R, q). ratio: of widths; ols, own: whether the
    interval holds the whole table's coefficient; sign, significance: whether they differ from
    OLS's.
    """

    ratio: FloatArray
    ols: FloatArray
    own: FloatArray
    sign: FloatArray
    significance: FloatArray

    def row(self) -> dict[str, list[float]]:
        """By coefficient: the median ratio, and shares."""
        shares = {
            name: np.mean(getattr(self, name), axis=0).tolist()
            for name in ("ols", "own", "sign", "significance")
        }
        return {"ratio": np.median(self.ratio, axis=0).tolist(), **shares}


Method = Callable[[BenchTable, FloatArray, FloatArray, np.random.Generator], LinearFit]


def ours(query: LinearRegression, epsilon: float) -> Method:
    def fit(sample: BenchTable, *_: object) -> LinearFit:
        found = estimates(sample.release(sample.plan(query, epsilon)))
        return LinearFit(found.coefficients, np.where(found.estimable, found.errors, np.inf))

    return fit


def peer(told: Told, epsilon: float) -> Method:
    rho = rho_units(epsilon, DELTA) / RHO_UNITS
    return lambda _, X, y, rng: noisy_statistics(X, y, told, rho, rng)


def arrays(sample: Frame | BenchTable) -> tuple[FloatArray, FloatArray]:
    return np.column_stack([sample.arrays[k] for k in X_NAMES]), sample.arrays[Y_NAME]


def methods(whole: Frame) -> dict[tuple[str, float], tuple[Method, FloatArray]]:
    """Each with its own coefficients on the whole table."""
    X, y = arrays(whole)
    told, ols, found = Told.of(X, y, TOLD_QUANTILE), least_squares(X, y), {}
    profiled = whole.repeated(LEAST_WHOLE)
    targets = {
        name: noise_free(profiled, query, whole.n, noise_free_fit).coefficients
        for name, query in QUERIES.items()
    }
    profiled.close()
    for epsilon in EPSILONS:
        for name, query in QUERIES.items():
            found[name, epsilon] = ours(query, epsilon), targets[name]
        found[PEER, epsilon] = peer(told, epsilon), ols.coefficients
    return found


def compared(
    fit: LinearFit, ols: LinearFit, whole: LinearFit, own: FloatArray
) -> tuple[FloatArray, ...]:
    """The fields of a comparison, of one sample."""
    b, se = fit.coefficients, fit.standard_errors
    significant = [np.abs(f.coefficients) > Z * f.standard_errors for f in (fit, ols)]
    return (
        se / ols.standard_errors,
        np.abs(b - whole.coefficients) <= Z * se,
        np.abs(b - own) <= Z * se,
        np.sign(b) != np.sign(ols.coefficients),
        significant[0] != significant[1],
    )


def comparisons(whole: Frame) -> dict[tuple[str, float], Comparison]:
    used, ols = methods(whole), least_squares(*arrays(whole))
    rows: dict[tuple[str, float], list[tuple[FloatArray, ...]]] = {key: [] for key in used}
    for k in range(RUNS):
        rng = np.random.default_rng(FIRST_SEED + k)
        sample = whole.sample(rng, whole.n)
        X, y = arrays(sample)
        here = least_squares(X, y)
        for key, (method, own) in used.items():
            rows[key].append(compared(method(sample, X, y, rng), here, ols, own))
        sample.close()
    return {
        key: Comparison(*(np.array(x) for x in zip(*found, strict=True)))
        for key, found in rows.items()
    }


def meets(row: dict[str, list[float]]) -> bool:
    """The Urban Institute's criteria, for every coefficient."""
    limits = {"ratio": RATIO, "sign": SIGN, "significance": SIGNIFICANCE}
    return all(max(row[name]) <= limit for name, limit in limits.items())


def main() -> None:
    try:
        whole = table("wages").of({*X_NAMES, Y_NAME})
    except AbsentTable as error:
        print(f"wages: SKIPPED, {error}")
        return
    found = []
    for (name, epsilon), comparison in comparisons(whole).items():
        row = comparison.row()
        found.append({"method": name, "epsilon": epsilon, **row, "meets": meets(row)})
        texts = (f"{k} " + " ".join(f"{v:.3g}" for v in values) for k, values in row.items())
        print(f"{name:17} eps={epsilon:<4g}" + " | ".join(texts), flush=True)
    print(json.dumps({"benchmark": "wages", "n": whole.n, "runs": RUNS, "methods": found}))


if __name__ == "__main__":
    main()
