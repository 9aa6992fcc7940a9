# SPDX-License-Identifier: Apache-2.0
"""One study for twenty formulas, on four real tables, beside noisy sufficient statistics and a fit
for each formula.

Tables: wages (Current Population Survey, March 2024), house sales (King County), the RAND
experiment, census incomes (Adult); those that are not at hand are skipped and said so. Samples of n
records are drawn with replacement from a table, each with a released profile (ε = .5) for ours.
Every method answers twenty formulas with the ε that is shown:

- study: one release, and `ols` of each formula; errors of one variance. `study, main` is the
  declared formula alone;
- noisy statistics: one release of unwhitened moments, told the true means, deviations and a bound
  of the norms; its ridge is like AdaSSP's;
- AdaSSP: a release for each formula, at ε/20, told the same; it has no intervals;
- Hessian mixing: Iterative Hessian Mixing for each formula, at ε/20, told the same; it has no
  intervals;
- a fit each: `linear_regression` with loss="squared" at ε/20 (at the smallest and the largest ε,
  STUDY_FITS samples).

By method and ε over all slopes: share with intervals; median error in OLS's standard errors on the
same sample; median ratio of interval widths to OLS's (HC1); coverage of the whole table's OLS
coefficient; of slopes with |t| > 4 in the sample the share whose sign and significance (5 %) agree
with OLS.

STUDY_RUNS (20), STUDY_FITS (2): samples. GAUNTLET_DATA: the folder of the files.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy import BenchTable
from benchmarks.adassp import adassp
from benchmarks.gauntlet.frame import Frame
from benchmarks.gauntlet.replies import estimates
from benchmarks.gauntlet.summary import Z
from benchmarks.gauntlet.tables import AbsentTable, table
from benchmarks.hessian_mixing import hessian_mixing
from benchmarks.noisy_statistics import LinearFit, Told, least_squares, noisy_statistics
from reticent.kinds.study import Study as StudyResults
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.results import result_json
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.study.kind import Study

RUNS, FITS = int(os.environ.get("STUDY_RUNS", "20")), int(os.environ.get("STUDY_FITS", "2"))
FIRST_SEED, FORMULA_SEED = 960_000, 16
EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6
FORMULAS = 20
TOLD_QUANTILE = 0.99  # of the norms, at which the peer's records are scaled down (benchmarks.wages)
CLEAR = 4.0  # |t| of a coefficient whose sign and significance must agree

TABLES = {
    "wages": ("log_wage", ("educ_years", "experience", "experience_sq", "female")),
    "houses": (
        "price",
        ("sqft_living", "sqft_lot", "bathrooms", "floors", "bedrooms", "condition", "grade", "view",
            "yr_built"),
    ),
    "houses, log": ("log_price", ("log_living", "bathrooms", "floors", "condition", "grade", "view",
            "yr_built")),
    "randhie": ("mdvis", ("lncoins", "idp", "lpi", "fmde", "disea", "physlm", "hlthg", "hlthf")),
    "adult, no gains": ("high", ("age", "edu", "hours", "male")),
    "adult": ("high", ("age", "edu", "hours", "male", "gain", "loss")),
}  # fmt: skip


LOGARITHMS = (("log_price", "price", 1e4, 1e7), ("log_living", "sqft_living", 100, 20_000))
"""Columns of houses: new, old, and its declared bounds."""


@dataclass(frozen=True, slots=True)
class StudyProblem:
    """The frame of a table and twenty sets of regressors of one response, all of them first."""

    name: str
    frame: Frame
    response: str
    subsets: tuple[tuple[str, ...], ...]

    @property
    def all(self) -> tuple[str, ...]:
        return self.subsets[0]

    def formula(self, names: Sequence[str]) -> str:
        return f"{self.response} ~ {' + '.join(names)}"


def problem(name: str) -> StudyProblem:
    response, names = TABLES[name]
    rng, chosen = np.random.default_rng(FORMULA_SEED), {tuple(names): None}
    while len(chosen) < min(FORMULAS, 2 ** len(names) - 1):
        keep = rng.random(len(names)) < 0.5
        if keep.any():
            chosen[tuple(n for n, k in zip(names, keep, strict=True) if k)] = None
    frame = table(name.partition(",")[0])
    if name == "houses, log":
        for new, old, low, high in LOGARITHMS:
            frame = frame.put(new, np.log(frame.arrays[old]), np.log(low), np.log(high))
    return StudyProblem(name, frame.of({response, *names}), response, tuple(chosen))


Fits = Mapping[tuple[str, ...], LinearFit]
Method = Callable[[StudyProblem, BenchTable, np.random.Generator], Fits]


def arrays(values: Mapping[str, FloatArray], names: Sequence[str]) -> FloatArray:
    return np.column_stack([values[k] for k in names])


def exact(one: StudyProblem, values: Mapping[str, FloatArray]) -> Fits:
    y = values[one.response]
    return {names: least_squares(arrays(values, names), y) for names in one.subsets}


def studied(epsilon: float, *, main: bool = False) -> Method:
    def fit(one: StudyProblem, sample: BenchTable, _rng: np.random.Generator) -> Fits:
        formula = one.formula(one.all) if main else None
        query = Study((one.response, *one.all), main=formula)
        result = result_json(sample.release(sample.plan(query, epsilon)))
        study = StudyResults({"query": {"kind": "study"}, "result": result})
        if main:
            return {one.all: _ours(study.main)}
        return {names: _ours(study.ols(one.formula(names))) for names in one.subsets}

    return fit


def _ours(fit: object) -> LinearFit:
    errors = np.where(fit.estimable, np.asarray(fit.bse), np.inf)
    return LinearFit(np.asarray(fit.params), errors)


def noisy(epsilon: float) -> Method:
    rho = rho_units(epsilon, DELTA) / RHO_UNITS

    def fit(one: StudyProblem, sample: BenchTable, rng: np.random.Generator) -> Fits:
        """The bound is that of all columns: one release answers every formula."""
        values, found = sample.arrays, {}
        whole = Told.of(
            arrays(one.frame.arrays, one.all), one.frame.arrays[one.response], TOLD_QUANTILE
        )
        for names in one.subsets:
            at = [*(one.all.index(k) for k in names), len(one.all)]
            told = Told(whole.means[at], whole.deviations[at], whole.bound)
            X = arrays(values, names)
            found[names] = noisy_statistics(X, values[one.response], told, rho, rng)
        return found

    return fit


def adaptive(epsilon: float) -> Method:
    rho = rho_units(epsilon / FORMULAS, DELTA) / RHO_UNITS

    def fit(one: StudyProblem, sample: BenchTable, rng: np.random.Generator) -> Fits:
        values, found = sample.arrays, {}
        for names in one.subsets:
            told = Told.of(
                arrays(one.frame.arrays, names), one.frame.arrays[one.response], TOLD_QUANTILE
            )
            found[names] = adassp(arrays(values, names), values[one.response], told, rho, rng)
        return found

    return fit


def mixed(epsilon: float) -> Method:
    def fit(one: StudyProblem, sample: BenchTable, rng: np.random.Generator) -> Fits:
        values, found, y = sample.arrays, {}, one.frame.arrays[one.response]
        for names in one.subsets:
            told = Told.of(arrays(one.frame.arrays, names), y, TOLD_QUANTILE)
            X, share = arrays(values, names), epsilon / FORMULAS
            found[names] = hessian_mixing(X, values[one.response], told, share, DELTA, rng)
        return found

    return fit


def separate(epsilon: float) -> Method:
    def fit(one: StudyProblem, sample: BenchTable, _rng: np.random.Generator) -> Fits:
        found = {}
        for names in one.subsets:
            query = LinearRegression(one.formula(names), loss="squared")
            plan = sample.plan(query, epsilon / len(one.subsets))
            reply = estimates(result_json(sample.release(plan)))
            errors = np.where(reply.estimable, reply.errors, np.inf)
            found[names] = LinearFit(reply.coefficients, errors)
        return found

    return fit


def compared(found: Fits, here: Fits, whole: Fits) -> FloatArray:
    """(6, slopes): error and ratio, whether there is an interval, covers, is clear, agrees."""
    rows = []
    for names, fit in found.items():
        ols, truth = here[names], whole[names]
        b, se = fit.coefficients[1:], fit.standard_errors[1:]
        exact_b, exact_se = ols.coefficients[1:], ols.standard_errors[1:]
        t = exact_b / exact_se
        agrees = (np.sign(b) == np.sign(exact_b)) & (np.abs(b) > Z * se)
        covers = np.abs(b - truth.coefficients[1:]) <= Z * se
        rows.append(
            [
                np.abs(b - exact_b) / exact_se,
                se / exact_se,
                np.isfinite(se),
                covers,
                np.abs(t) > CLEAR,
                agrees,
            ]
        )
    return np.concatenate([np.array(r, dtype=float) for r in rows], axis=1)


def summary(values: FloatArray) -> dict[str, float]:
    error, ratio, given, covers, clear, agrees = values
    ok = given > 0
    both = ok & (clear > 0)
    return {
        "with_interval": float(ok.mean()),
        "error": float(np.median(error)),
        "ratio": float(np.median(ratio[ok])) if ok.any() else float("inf"),
        "coverage": float(covers[ok].mean()) if ok.any() else float("nan"),
        "agreement": float(agrees[both].mean()) if both.any() else float("nan"),
    }


def methods() -> dict[tuple[str, float], tuple[Method, int]]:
    """Each with its number of samples."""
    found: dict[tuple[str, float], tuple[Method, int]] = {}
    for epsilon in EPSILONS:
        found["study", epsilon] = studied(epsilon), RUNS
        found["study, main", epsilon] = studied(epsilon, main=True), RUNS
        found["noisy statistics", epsilon] = noisy(epsilon), RUNS
        found["AdaSSP", epsilon] = adaptive(epsilon), RUNS
        found["Hessian mixing", epsilon] = mixed(epsilon), RUNS
    for epsilon in (EPSILONS[0], EPSILONS[-1]) if FITS else ():
        found["a fit each", epsilon] = separate(epsilon), FITS
    return found


def run(one: StudyProblem) -> list[dict[str, Any]]:
    used, whole = methods(), exact(one, one.frame.arrays)
    rows: dict[tuple[str, float], list[FloatArray]] = {key: [] for key in used}
    for k in range(RUNS):
        rng = np.random.default_rng(FIRST_SEED + k)
        sample = one.frame.sample(rng, one.frame.n)
        here = exact(one, sample.arrays)
        for key, (method, runs) in used.items():
            if k < runs:
                rows[key].append(compared(method(one, sample, rng), here, whole))
        sample.close()
    found = []
    for (name, epsilon), values in rows.items():
        row = summary(np.concatenate(values, axis=1))
        found.append({"table": one.name, "method": name, "epsilon": epsilon, **row})
        texts = " | ".join(f"{k} {v:.3g}" for k, v in row.items())
        print(f"{one.name:8} {name:17} eps={epsilon:<4g} {texts}", flush=True)
    return found


def main() -> None:
    found = []
    for name in TABLES:
        try:
            one = problem(name)
        except AbsentTable as error:
            print(f"{name}: SKIPPED, {error}")
            continue
        print(
            f"-- {name}: n = {one.frame.n}, {len(one.subsets)} formulas, {RUNS} samples", flush=True
        )
        found += run(one)
    rows = [
        {k: v if isinstance(v, str) or np.isfinite(v) else None for k, v in row.items()}
        for row in found
    ]
    print(json.dumps({"benchmark": "study", "runs": RUNS, "rows": rows}))


if __name__ == "__main__":
    main()
