# SPDX-License-Identifier: Apache-2.0
"""Random intercepts and exchangeable rows on real panels.

    python -m benchmarks.random_intercepts DIR

DIR holds wage_panel.csv (545 men, 8 years: linearmodels' data) and gapminder.csv (142 countries, 12
years: causaldata's), each sorted by person with a column `person`. Samples of persons with
replacement; target: generalised least squares of the whole table at its own intraclass correlation,
and its variance components, of the restricted likelihood. In brackets: covered without
privacy. Width: over the same estimate of the sample without privacy (errors by
person for `gee`, the model's for `mixedlm`).
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.named_tests import offer
from reticent import NotEstimable
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.kinds.linear_regression.kind import KIND as REGRESSION
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.study.kind import KIND as STUDY
from reticent_server.kinds.study.kind import Study
from support.fits.regressions import drive
from support.kinds.studies import read

REPS = 20  # a coverage of .95 over 4 coefficients has the standard error .025
SIZES, EPSILONS = (5000,), (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class PanelTable:
    """A table's response, terms and those of them that vary within persons; bounds by column."""

    file: str
    rows: int
    response: str
    varying: tuple[str, ...]
    constant: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]

    @property
    def terms(self) -> tuple[str, ...]:
        return (*self.varying, *self.constant)


PANELS = (
    PanelTable(
        "wage_panel", 8, "lwage", ("union", "married", "exper"), ("educ",),
        {"lwage": (-4.0, 5.0), "union": (0.0, 1.0), "married": (0.0, 1.0), "exper": (0.0, 20.0),
            "educ": (0.0, 20.0)},
    ),
    PanelTable(
        "gapminder", 12, "life", ("income", "year"), ("africa",),
        {"life": (20.0, 90.0), "income": (4.0, 13.0), "year": (0.0, 60.0), "africa": (0.0, 1.0)},
    ),
)  # fmt: skip


def exact(panel: PanelTable, table: dict[str, Any], rho: float | None = None) -> dict[str, Any]:
    """Of equally many rows: components, coefficients, the model's errors and errors by person."""
    T = panel.rows
    Z = np.column_stack([table[panel.response], np.ones(len(table["person"]))])
    Z = np.column_stack([Z, *(table[k] for k in panel.terms)])
    means = Z.reshape(-1, T, Z.shape[1]).mean(axis=1)
    B, W = T * means.T @ means, Z.T @ Z - T * means.T @ means
    lam, persons = 1.0, len(means)
    for _ in range(100):
        G = W + lam * B
        r = np.append(1.0, -np.linalg.solve(G[1:, 1:], G[1:, 0]))
        sigma2 = float(r @ W @ r) / (len(Z) - persons)
        tau2 = (float(r @ B @ r) - persons * sigma2) / len(Z)
        lam = sigma2 / (sigma2 + T * max(tau2, 0.0))
    icc = tau2 / (tau2 + sigma2)
    used = icc if rho is None else rho
    theta = 1 - np.sqrt((1 - used) / (1 - used + T * used))
    quasi = Z - theta * np.repeat(means, T, axis=0)
    y, X = quasi[:, 0], quasi[:, 1:]
    A = np.linalg.inv(X.T @ X)
    beta = A @ X.T @ y
    scores = (X * (y - X @ beta)[:, None]).reshape(-1, T, X.shape[1]).sum(axis=1)
    return {
        "beta": beta,
        "model": np.sqrt(np.diag(A) * sigma2),
        "robust": np.sqrt(np.diag(A @ scores.T @ scores @ A)),
        "icc": icc,
    }


def facts_of(panel: PanelTable, whole: dict[str, Any], n: int) -> DatasetFacts:
    """With the whole table's quantiles as its profile."""
    columns = tuple(Column(k, ColumnKind.NUMERIC, *ends) for k, ends in panel.bounds.items())
    known = {
        k: ColumnProfile(quantiles=tuple(np.quantile(whole[k], PROFILE_PROBABILITIES)))
        for k in panel.bounds
    }
    schema = Schema(columns, Unit("person", panel.rows))
    return DatasetFacts("t", "t", 1, "v", n, schema, Profile(known)).of_places()


def drawn(panel: PanelTable, whole: dict[str, Any], n: int, rng: Any) -> dict[str, Any]:
    """n persons with replacement."""
    persons = rng.integers(len(whole["person"]) // panel.rows, size=n)
    rows = (persons[:, None] * panel.rows + np.arange(panel.rows)).ravel()
    return {k: v[rows] for k, v in whole.items()}


def line(panel: PanelTable, whole: dict[str, Any], n: int, epsilon: float) -> list[str]:
    """Coverage and width of both methods."""
    truth, rng = exact(panel, whole), np.random.default_rng(n)
    facts = facts_of(panel, whole, n)
    formula = f"{panel.response} ~ {' + '.join(panel.terms)}"
    rho = round(float(truth["icc"]), 2)
    own = exact(panel, whole, rho)
    asked = LinearRegression(formula, loss="squared", working_correlation=min(rho, 0.95))
    within = (panel.response, *panel.varying)
    variables = (*within, *(f"mean({k})" for k in within), *panel.constant)
    gee: dict[str, list[Any]] = {"held": [], "width": [], "plain": []}
    mixed: dict[str, list[Any]] = {"held": [], "width": [], "icc": [], "refused": [], "plain": []}
    for _ in range(REPS):
        table = drawn(panel, whole, n, rng)
        block = Block(0, len(table["person"]), table, {ABSENT: np.zeros(n * panel.rows, bool)})
        plain = exact(panel, table, rho)
        plan = REGRESSION.plan(facts, asked, offer(epsilon))
        found = drive(plan.run(), block).result
        ends = np.array(found["confidence_intervals"], float)
        gee["plain"] += _held(plain["beta"], plain["robust"], own["beta"])
        _counted(gee, ends, own["beta"], found["standard_errors"], plain["robust"])
        query = Study(variables)
        study = drive(STUDY.plan(facts, query, offer(epsilon)).run(), block).result
        fit = _mixed(query, study, formula, panel.constant)
        mixed["refused"].append(fit is None)
        if fit is not None:
            own_fit = exact(panel, table)
            _counted(mixed, fit.conf_int(), truth["beta"], fit.bse, own_fit["model"])
            mixed["plain"] += _held(own_fit["beta"], own_fit["model"], truth["beta"])
            low, high = fit.components_conf_int()["icc"]
            mixed["icc"].append(low <= truth["icc"] <= high)
    head = f"| {panel.file} | {n:,} | {epsilon:g} |"
    refused = f"{np.mean(mixed['refused']):.0%}"
    return [
        (
            f"{head} gee, ρ = {rho:g} | {np.nanmean(gee['held']):.2f} ({_mean(gee['plain'])}) | "
            f"{np.median(gee['width']):.2f} × | |"
        ),
        (
            f"{head} mixedlm ({refused} refused) | {_mean(mixed['held'])} "
            f"({_mean(mixed['plain'])}) | {_mean(mixed['width'])} × | {_mean(mixed['icc'])} |"
        ),
    ]


def _held(beta: Any, errors: Any, truth: Any) -> list[bool]:
    """Of the slopes, without privacy."""
    return list((np.abs(beta - truth) <= 1.96 * errors)[1:].tolist())


def _mean(values: list[Any]) -> str:
    return f"{np.mean(values):.2f}" if values else "–"


def _counted(into: dict[str, list[Any]], ends: Any, truth: Any, errors: Any, plain: Any) -> None:
    ends = np.asarray(ends, float)
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    into["held"] += np.where(np.isnan(ends[:, 0]), np.nan, held).tolist()[1:]
    into["width"] += (np.asarray(errors) / plain).tolist()[1:]


def _mixed(query: Study, result: Any, formula: str, constant: tuple[str, ...]) -> Any:
    """The client's fit; None where it is declined."""
    try:
        return read(query, result).mixedlm(formula, constant=constant)
    except NotEstimable:
        return None


def main() -> None:
    directory = Path(sys.argv[1])
    print(
        "| table | persons | ε | method | covered | width | ICC covered "
        "|\n|---|---|---|---|---|---|---|"
    )
    for panel in PANELS:
        rows = pd.read_csv(directory / f"{panel.file}.csv")
        whole = {k: rows[k].to_numpy(np.float64) for k in ("person", *panel.bounds)}
        for n in SIZES:
            for epsilon in EPSILONS:
                for each in line(panel, whole, n, epsilon):
                    print(each, flush=True)


if __name__ == "__main__":
    main()
