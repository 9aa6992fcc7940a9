# SPDX-License-Identifier: Apache-2.0
"""Generalised linear models and location–scale on simulations, beside the non-private fits.

Poisson and Gamma: n = 20,000, p = 4, ε = 1; x of unit variance with AR(.5) correlation, slopes .3.
The median over tables of the L2 error of the coefficients, and its ratio to maximum likelihood's.
Location–scale: normal, n = 10,000, ε = .5; the root mean squared error in sampling standard errors
of the non-private fit. Everything runs through planning, the engine and the mechanisms; tables are
standardised by a released profile of their own at ε = 1. Seeds were not used for tuning.
"""

import json

import numpy as np

from benchmarks.accuracy import BenchTable
from benchmarks.noise_free.glm_robust import fit_glm
from benchmarks.noise_free.proposal2 import fit_proposal2
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.numerics.families import Binomial, Gamma, Poisson

TABLES, FIRST_SEED = 20, 80_000
P, N, SLOPE, INTERCEPT = 4, 20_000, 0.3, 1.0
FAMILIES = {"binomial": Binomial(), "poisson": Poisson(), "gamma": Gamma(0.5)}


def main() -> None:
    rows = [model(family) for family in FAMILIES]
    found = location_scale()
    print(f"location-scale: {found[0]:.3f} and {found[1]:.3f} times the non-private error")
    print(json.dumps({"benchmark": "glm", "models": rows, "location_scale": found}))


def model(family: str) -> dict:
    """Median errors of one family."""
    errors = np.median([one_table(family, FIRST_SEED + k) for k in range(TABLES)], axis=0)
    ratio = float(errors[1] / errors[0])
    print(f"{family:9} maximum likelihood {errors[0]:.4f}   private {errors[1]:.4f}   {ratio:.2f}")
    return {"family": family, "likelihood": errors[0], "private": errors[1], "ratio": ratio}


def one_table(family: str, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    correlation = 0.5 ** np.abs(np.subtract.outer(range(P), range(P)))
    X = rng.normal(size=(N, P)) @ np.linalg.cholesky(correlation).T
    beta = np.array([INTERCEPT, *[SLOPE] * P])
    mu = FAMILIES[family].mean(beta[0] + X @ beta[1:])
    draws = {
        "binomial": lambda: (rng.random(N) < mu).astype(float),
        "poisson": lambda: rng.poisson(mu).clip(0, 1000).astype(float),
        "gamma": lambda: rng.gamma(2, mu / 2).clip(0, 1000),
    }
    arrays = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(P)}
    arrays["y"] = draws[family]()
    y = Column("y", ColumnKind.NUMERIC, 0.0, 1000.0)
    if family == "binomial":
        y = Column("y", ColumnKind.BOOLEAN, 0.0, 1.0)
    table = BenchTable(
        arrays, [*(Column(f"x{j}", ColumnKind.NUMERIC, -10, 10) for j in range(P)), y]
    )
    query = Glm("y ~ " + " + ".join(f"x{j}" for j in range(P)), family)
    private = table.profiled().release(table.plan(query, 1.0))["coefficients"]
    table.close()
    fit = fit_glm(np.column_stack([np.ones(N), X]), arrays["y"], FAMILIES[family])
    errors = [np.linalg.norm(np.asarray(b) - beta) for b in (fit.coefficients, private)]
    return float(errors[0]), float(errors[1])


def location_scale() -> list[float]:
    """Error ratios of location and scale."""
    gaps = []
    for k in range(4 * TABLES):
        y = np.random.default_rng(FIRST_SEED + k).normal(3, 2, 10_000)
        table = BenchTable({"y": y}, [Column("y", ColumnKind.NUMERIC, -100.0, 100.0)]).profiled()
        result = table.release(table.plan(LocationScale("y"), 0.5))
        table.close()
        fit = fit_proposal2(y, result["tuning"])
        gap = np.array([result["location"] - fit.location, result["scale"] - fit.scale])
        gaps.append(gap / np.sqrt(np.diag(fit.covariance)))
    return [float(v) for v in np.sqrt(1 + np.mean(np.square(gaps), axis=0))]


if __name__ == "__main__":
    main()
