# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of weighted regression quantiles.

`python -m benchmarks.weighted_quantiles CSV`, or without CSV of simulated tables alone.

CSV: cps_asec_2024_wages.csv, 54,875 wage earners of the Current Population Survey with their final
weights, declared up to the largest. Bootstrap samples; the target is the check loss's solution with
weights on the whole table (statsmodels' QuantReg of wy on wX, that of quantreg::rq with weights).
Width: over 1.96 times the standard deviation of that solution over the samples. And simulated
tables in which heavy records have another slope.
"""

import sys
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm

from benchmarks.named_tests import offer
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.kinds import registry
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from support.fits.regressions import drive, facts_of, numeric, profile_of, whole

REPS = 40  # a coverage of .95 has the standard error .03, over three slopes .02
TAUS = (0.25, 0.5, 0.9)
CPS = {
    "log_wage": (0.0, 15.0),
    "educ_years": (0.0, 21.0),
    "experience": (0.0, 80.0),
    "female": (0.0, 1.0),
    "w": (0.0, 0.0),  # up to the largest
}


def solved(table: dict[str, Any], y: str, terms: list[str], tau: float) -> Any:
    """The weighted check loss's coefficients."""
    w = table["w"]
    X = np.column_stack([np.ones(len(w)), *(table[name] for name in terms)])
    return sm.QuantReg(w * table[y], X * w[:, None]).fit(q=tau).params


def measured(
    name: str, facts: DatasetFacts, samples: list[Any], y: str, terms: list[str], truths: Any
) -> None:
    """Prints a line for each τ and ε."""
    for tau in TAUS:
        own = np.array([solved(sample, y, terms, tau) for sample in samples])
        spread = own.std(axis=0, ddof=1)
        for epsilon in (1.0, 4.0):
            hits, widths, given, warned = [], [], [], []
            for sample in samples:
                query = QuantileRegression(f"{y} ~ {' + '.join(terms)}", tau, weights="w")
                plan = registry.plan(facts, query, offer(epsilon))
                fit = drive(plan.run(), whole(sample)).result["fits"][0]
                warned.append(any("count less" in said for said in fit["warnings"]))
                for k, (low, high) in enumerate(fit["confidence_intervals"]):
                    given.append(low is not None)
                    if low is not None:
                        hits.append((k > 0, warned[-1], low <= truths[tau][k] <= high))
                        widths.append((high - low) / (2 * 1.96 * spread[k]))
            told = [hit for _, warning, hit in hits if not warning]
            slopes, level = ([hit for s, _, hit in hits if s == slope] for slope in (True, False))
            print(
                f"{name} n = {len(sample[y]):,} tau {tau:g} epsilon {epsilon:g}: slopes covered "
                f"{np.mean(slopes):.2f}, intercept {np.mean(level):.2f}; warned that the target "
                f"moves {np.mean(warned):.2f}, all covered where not "
                f"{np.mean(told) if told else np.nan:.2f};",
                f"given {np.mean(given):.2f}, width {np.median(widths):.2f}",
                flush=True,
            )


def cps(path: str, rng: np.random.Generator) -> None:
    frame = pd.read_csv(path).rename(columns={"A_FNLWGT": "w"})
    most = float(np.ceil(frame["w"].max() / 1000) * 1000)
    bounds = CPS | {"w": (0.0, most)}
    table = {name: np.clip(frame[name].to_numpy(float), *ends) for name, ends in bounds.items()}
    columns = [numeric(name, *ends) for name, ends in bounds.items()]
    terms = ["educ_years", "experience", "female"]
    truths = {tau: solved(table, "log_wage", terms, tau) for tau in TAUS}
    for n in (5_000, 20_000):
        draws = [rng.integers(0, len(frame), n) for _ in range(REPS)]
        samples = [{name: v[i] for name, v in table.items()} for i in draws]
        facts = facts_of(n, columns, profile_of(table, columns))
        measured("wages", facts, samples, "log_wage", terms, truths)


def simulated(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """y = 1 + x(1 + v) + e/2, v = w/5, w uniform from .5 to 5: a slope that grows with the weight,
    and of the weighted population median about 1 + E w²/(5 E w)."""
    x, w = rng.normal(size=n), rng.uniform(0.5, 5.0, n)
    y = 1 + x * (1 + w / 5) + rng.normal(size=n) / 2
    return {"x": np.clip(x, -6, 6), "y": np.clip(y, -20, 20), "w": w}


SIMULATED: list[Column] = [numeric("x", -6, 6), numeric("y", -20, 20), numeric("w", 0, 5)]


def main() -> None:
    rng = np.random.default_rng(1)
    if len(sys.argv) > 1:
        cps(sys.argv[1], rng)
    population = simulated(100_000, rng)
    truths = {tau: solved(population, "y", ["x"], tau) for tau in TAUS}
    for n in (5_000, 20_000):
        samples = [simulated(n, rng) for _ in range(REPS)]
        facts = facts_of(n, SIMULATED, profile_of(population, SIMULATED))
        measured("simulated", facts, samples, "y", ["x"], truths)


if __name__ == "__main__":
    main()
