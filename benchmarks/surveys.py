# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of a survey's means, totals and regressions: `python -m benchmarks.surveys
DIR`.

DIR holds any of nhanes.csv (nhanes of R's survey without missing cholesterol: 7,846 people, 31
units in 15 strata: SDMVPSU, SDMVSTRA, WTMEC2YR, chol, race, age, female), nhanes2.csv (nhanes2 of
PyPI's samplics, the survey of 1976 to 1980, without missing zinc and diabetes: 9,188 people, 62
units in 31 strata: psuid, stratid, finalwgt, zinc, highbp, diabetes) and apipop.csv (apipop of R's
survey: 6,194 schools in 57 counties, which are the units; without strata and weights: api00, meals,
ell, enroll, cnum). A sample draws as many units as there are in each stratum, with replacement; the
target is the whole table's estimate. Beside it the textbook's interval on the same sample (svymean,
svytotal, svyglm with degf(design) degrees of freedom). Width: median over the textbook's.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.named_tests import offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds import registry
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.sum.kind import Sum
from support.fits.regressions import drive, whole

REPS = 40  # a coverage of .95 has the standard error .03
EPSILONS = (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class Survey:
    """A table; its unit, stratum and weight columns; bounds of the others."""

    name: str
    unit: str
    strata: str | None
    weight: str | None
    bounds: dict[str, tuple[float, float]]
    questions: tuple[Query, ...]


def designed(unit: str, strata: str | None, weight: str | None) -> dict[str, Any]:
    return {"weights": weight, "cluster": unit, "strata": strata}


NHANES: dict[str, Any] = designed("SDMVPSU", "SDMVSTRA", "WTMEC2YR")
API: dict[str, Any] = designed("cnum", None, None)
NHANES2: dict[str, Any] = designed("psuid", "stratid", "finalwgt")
SURVEYS = (
    Survey(
        "nhanes",
        "SDMVPSU",
        "SDMVSTRA",
        "WTMEC2YR",
        {"chol": (0, 1), "female": (0, 1), "age": (1, 4), "WTMEC2YR": (0, 160_000)},
        (
            Mean("chol", **NHANES),
            Mean("age", **NHANES),
            Mean("chol", "female == 1", **NHANES),
            Sum("chol", **NHANES),
            LinearRegression("chol ~ age + female", loss="squared", **NHANES),
        ),
    ),
    Survey(
        "nhanes2",
        "psuid",
        "stratid",
        "finalwgt",
        {"zinc": (30, 200), "highbp": (0, 1), "diabetes": (0, 1), "finalwgt": (0, 80_000)},
        (
            Mean("highbp", **NHANES2),
            Mean("zinc", **NHANES2),
            Sum("highbp", **NHANES2),
            LinearRegression("zinc ~ highbp + diabetes", loss="squared", **NHANES2),
            LinearRegression("highbp ~ diabetes", loss="squared", **NHANES2),
        ),
    ),
    Survey(
        "apipop",
        "cnum",
        None,
        None,
        {"api00": (200, 1000), "meals": (0, 100), "ell": (0, 100)},
        (
            Mean("api00", **API),
            Mean("meals", **API),
            LinearRegression("api00 ~ meals + ell", loss="squared", **API),
        ),
    ),
)


def facts_of(survey: Survey, table: dict[str, Any], n: int) -> DatasetFacts:
    columns = [
        Column(name, ColumnKind.BOOLEAN if ends == (0, 1) else ColumnKind.NUMERIC, *ends)
        for name, ends in survey.bounds.items()
    ]
    for name in filter(None, (survey.unit, survey.strata)):
        size = int(table[name].max()) + 1
        levels = tuple(f"c{k}" for k in range(size))
        columns.append(Column(name, ColumnKind.CATEGORICAL, 0, size - 1, levels))
    profile = {
        name: ColumnProfile(counts=(float(np.sum(table[name] == 0)), float(table[name].sum())))
        if ends == (0, 1)
        else ColumnProfile(quantiles=tuple(np.quantile(table[name], PROFILE_PROBABILITIES)))
        for name, ends in survey.bounds.items()
    }
    return DatasetFacts("t", "t", 1, "version", n, Schema(tuple(columns)), Profile(profile))


def resampled(survey: Survey, table: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """As many units of each stratum, drawn with replacement and numbered anew."""
    strata = table[survey.strata] if survey.strata else np.zeros(len(table[survey.unit]))
    index, names = [], []
    for h in np.unique(strata):
        units = np.unique(table[survey.unit][strata == h])
        for k, unit in enumerate(rng.choice(units, len(units))):
            rows = np.flatnonzero((strata == h) & (table[survey.unit] == unit))
            index.append(rows)
            names.append(np.full(len(rows), float(k)))
    drawn = np.concatenate(index)
    return {name: v[drawn] for name, v in table.items()} | {survey.unit: np.concatenate(names)}


def meat(survey: Survey, table: dict[str, Any], z: Any) -> tuple[Any, int]:
    """(p, p) Σ_h n_h/(n_h − 1) Σ (T_hi − T̄_h)(T_hi − T̄_h)ᵀ of values z (n, p), and its
    degrees."""
    strata = table[survey.strata] if survey.strata else np.zeros(len(z))
    total, freedom = np.zeros((z.shape[1], z.shape[1])), 0
    for h in np.unique(strata):
        inside = strata == h
        codes = np.unique(table[survey.unit][inside], return_inverse=True)[1]
        sums = np.stack([np.bincount(codes, column) for column in z[inside].T], axis=1)
        off = sums - sums.mean(axis=0)
        total += len(sums) / max(len(sums) - 1, 1) * off.T @ off
        freedom += len(sums) - 1
    return total, freedom


def textbook(survey: Survey, query: Any, table: dict[str, Any]) -> tuple[Any, Any]:
    """Estimates and half widths."""
    w = table[survey.weight] if survey.weight else np.ones(len(table[survey.unit]))
    if isinstance(query, LinearRegression):
        left, right = query.formula.split(" ~ ")
        X = np.column_stack([np.ones(len(w)), *(table[name] for name in right.split(" + "))])
        y = table[left]
    else:
        if query.where:
            w = w * table["female"]
        X, y = np.ones((len(w), 1)), table[query.column]
    if isinstance(query, Sum):
        value, z = np.array([w @ y]), (w * y)[:, None]
    else:
        inverse = np.linalg.inv((X.T * w) @ X)
        value = inverse @ (X.T * w) @ y
        z = X * (w * (y - X @ value))[:, None] @ inverse
    V, freedom = meat(survey, table, z)
    return value, student.ppf(0.975, freedom) * np.sqrt(np.diag(V))


def released(survey: Survey, query: Any, table: dict[str, Any], public: Any, epsilon: float) -> Any:
    facts = facts_of(survey, public, len(table[survey.unit]))
    result = drive(registry.plan(facts, query, offer(epsilon)).run(), whole(table)).result
    if "confidence_intervals" in result:
        return [ends if ends[0] is not None else None for ends in result["confidence_intervals"]]
    return [None if result["warnings"] else result["confidence_interval"]]


def measured(survey: Survey, table: dict[str, Any], rng: np.random.Generator) -> None:
    samples = [resampled(survey, table, rng) for _ in range(REPS)]
    for query in survey.questions:
        truth, _ = textbook(survey, query, table)
        books = [textbook(survey, query, sample) for sample in samples]
        own = np.mean([np.abs(value - truth) < half for value, half in books])
        asked = getattr(query, "formula", None) or f"{query.kind} {query.column}"  # type: ignore[attr-defined]
        print(survey.name, asked, getattr(query, "where", None) or "", f"textbook {own:.2f}")
        for epsilon in EPSILONS:
            hits, widths, given = [], [], []
            for sample, (_, half) in zip(samples, books, strict=True):
                for k, ends in enumerate(released(survey, query, sample, table, epsilon)):
                    given.append(ends is not None)
                    if ends is not None:
                        hits.append(ends[0] <= truth[k] <= ends[1])
                        widths.append((ends[1] - ends[0]) / 2 / half[k])
            print(
                f"  epsilon {epsilon:g}: covered {np.mean(hits):.2f}, given {np.mean(given):.2f},",
                f"width {np.median(widths):.2f}",
                flush=True,
            )


def main() -> None:
    rng = np.random.default_rng(1)
    folder = Path(sys.argv[1])
    for survey in (each for each in SURVEYS if (folder / f"{each.name}.csv").exists()):
        frame = pd.read_csv(folder / f"{survey.name}.csv")
        codes = {
            name: pd.factorize(frame[name], sort=True)[0]
            for name in (survey.unit, survey.strata)
            if name
        }
        table = {
            name: np.clip(frame[name].to_numpy(float), *ends)
            for name, ends in survey.bounds.items()
        }
        table |= {name: code.astype(float) for name, code in codes.items()}
        for query in survey.questions:
            value, half = textbook(survey, query, table)
            print(survey.name, query.kind, "whole table:", np.round(value, 5), np.round(half, 5))
        measured(survey, table, rng)


if __name__ == "__main__":
    main()
