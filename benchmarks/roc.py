# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of a ROC curve's intervals on real tables: `python -m benchmarks.roc DIR`
(`models` behind it: of released models' predictors).

DIR holds default.csv (ISLR's Default: 10,000 cards) and churn.csv (modeldata's mlc_churn of
telephone customers: 7,032). Of each, bootstrap samples of the sizes below with the profile of the
table's own quantiles (a profile's quartiles suffice for the edges); target: the exact area and
measures of the whole table at a threshold. Width: over DeLong's (areas) and Wilson's (shares)
intervals without noise. Planned and released by the server's own code.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from benchmarks.named_tests import answer, offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds.roc.kind import KIND, Roc

REPS = 200  # a coverage of .95 has the standard error .015
SIZES = (2000, 20_000)
EPSILONS = (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class RocCase:
    """A score, an outcome, a threshold, and bounds from common knowledge."""

    file: str
    score: str
    outcome: str
    threshold: float
    upper: float
    positive: Literal["high", "low"]


CASES = (
    RocCase("default", "balance", "default", 1500.0, 10_000.0, "high"),
    RocCase("churn", "tenure", "churn", 12.0, 100.0, "low"),
)


def delong(x: Any, y: Any) -> tuple[float, float]:
    """The area and its standard error."""
    area = stats.mannwhitneyu(x, y).statistic / len(x) / len(y)
    both = stats.rankdata(np.append(x, y))
    v = (both[: len(x)] - stats.rankdata(x)) / len(y)
    w = (both[len(x) :] - stats.rankdata(y)) / len(x)
    return float(area), float(np.sqrt(v.var(ddof=1) / len(x) + w.var(ddof=1) / len(y)))


def measured(case: RocCase, table: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """(value, width without noise) of the area, sensitivity, specificity and the positive
    predictive value."""
    score, ill = table[case.score], table[case.outcome] == 1
    sign = -1.0 if case.positive == "low" else 1.0
    said = score < case.threshold if case.positive == "low" else score >= case.threshold
    area, error = delong(sign * score[ill], sign * score[~ill])
    found = {"area": (area, 2 * 1.96 * error)}
    for name, hits in (
        ("sensitivity", said[ill]),
        ("specificity", ~said[~ill]),
        ("positive_predictive_value", ill[said]),
    ):
        low, high = proportion_confint(int(hits.sum()), len(hits), method="wilson")
        found[name] = (float(hits.mean()), float(high - low))
    return found


def line(case: RocCase, whole: dict[str, Any], n: int, epsilon: float) -> str:
    """Coverage and relative width of each measure."""
    rng = np.random.default_rng(n)
    truth = {k: v for k, (v, _) in measured(case, whole).items()}
    columns = (
        Column(case.score, ColumnKind.NUMERIC, 0.0, case.upper),
        Column(case.outcome, ColumnKind.BOOLEAN, 0.0, 1.0),
    )
    quantiles = tuple(np.quantile(whole[case.score], PROFILE_PROBABILITIES))
    profile = Profile({case.score: ColumnProfile(quantiles=quantiles)})
    facts = DatasetFacts("t", "t", 1, "v", n, Schema(columns), profile)
    query = Roc(case.score, case.outcome, (case.threshold,), positive=case.positive)
    plan = KIND.plan(facts, query, offer(epsilon))
    held: dict[str, list[bool]] = {k: [] for k in truth}
    widths: dict[str, list[float]] = {k: [] for k in truth}
    for _ in range(REPS):
        rows = rng.integers(len(whole[case.score]), size=n)
        table = {k: v[rows] for k, v in whole.items()}
        found, plain = answer(plan, table), measured(case, table)
        (row,) = (c for c in found.cutoffs if c.threshold == case.threshold)
        for name, value in truth.items():
            low, high = found.auc_interval if name == "area" else getattr(row, f"{name}_interval")
            held[name].append(low <= value <= high)
            widths[name].append((high - low) / plain[name][1])
    cells = [f"{np.mean(held[k]):.2f}, {np.median(widths[k]):.2f} ×" for k in truth]
    return f"| {case.file} | {n:,} | {epsilon:g} | {' | '.join(cells)} |"


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A logit's outcome and terms, with bounds from common knowledge."""

    file: str
    outcome: str
    terms: dict[str, float]


MODELS = (
    ModelCase("default", "default", {"balance": 10_000.0, "income": 200_000.0}),
    ModelCase("churn", "churn", {"tenure": 100.0, "monthly_charges": 200.0}),
)


def model_line(case: ModelCase, whole: dict[str, Any], n: int, epsilon: float) -> str:
    """Of the whole table's logit: coverage of its exact area, and relative width."""
    X = np.column_stack([np.ones(len(whole[case.outcome])), *(whole[k] for k in case.terms)])
    fit = sm.Logit(whole[case.outcome], X).fit(disp=0)
    eta, ill = X @ fit.params, whole[case.outcome] == 1
    truth, _ = delong(eta[ill], eta[~ill])
    columns = (
        *(Column(k, ColumnKind.NUMERIC, 0.0, upper) for k, upper in case.terms.items()),
        Column(case.outcome, ColumnKind.BOOLEAN, 0.0, 1.0),
    )
    known = {k: tuple(np.quantile(whole[k], PROFILE_PROBABILITIES)) for k in case.terms}
    profile = Profile({k: ColumnProfile(quantiles=q) for k, q in known.items()})
    facts = DatasetFacts("t", "t", 1, "v", n, Schema(columns), profile)
    coefficients = tuple(fit.params.tolist())
    query = Roc(" + ".join(case.terms), case.outcome, coefficients=coefficients)
    plan = KIND.plan(facts, query, offer(epsilon))
    rng, held, widths, errors = np.random.default_rng(n), [], [], []
    for _ in range(REPS):
        rows = rng.integers(len(eta), size=n)
        found = answer(plan, {k: v[rows] for k, v in whole.items()})
        _, error = delong(eta[rows][ill[rows]], eta[rows][~ill[rows]])
        low, high = found.auc_interval
        held.append(low <= truth <= high)
        widths.append((high - low) / (2 * 1.96 * error))
        errors.append(found.auc - truth)
    return (
        f"| {case.file} | {truth:.3f} | {n:,} | {epsilon:g} | {np.mean(held):.2f} | "
        f"{np.median(widths):.2f} × | {np.mean(errors):+.4f} |"
    )


def models(directory: Path) -> None:
    """Prints a table of the models' areas."""
    print("| table | area | n | ε | covered | width | bias |\n|---|---|---|---|---|---|---|")
    for case in MODELS:
        rows = pd.read_csv(directory / f"{case.file}.csv")
        whole = {k: rows[k].to_numpy(np.float64) for k in case.terms}
        whole[case.outcome] = (rows[case.outcome] == "Yes").to_numpy(np.float64)
        for n in SIZES:
            for epsilon in EPSILONS:
                print(model_line(case, whole, n, epsilon), flush=True)


def main() -> None:
    directory = Path(sys.argv[1])
    if "models" in sys.argv[2:]:
        models(directory)
        return
    print(
        "| table | n | ε | area | sensitivity | specificity | PPV |\n|---|---|---|---|---|---|---|"
    )
    for case in CASES:
        rows = pd.read_csv(directory / f"{case.file}.csv")
        whole = {
            case.score: rows[case.score].to_numpy(np.float64),
            case.outcome: (rows[case.outcome] == "Yes").to_numpy(np.float64),
        }
        for name, (value, _) in measured(case, whole).items():
            print(f"<!-- {case.file}: {name} {value:.3f} -->")
        for n in SIZES:
            for epsilon in EPSILONS:
                print(line(case, whole, n, epsilon), flush=True)


if __name__ == "__main__":
    main()
