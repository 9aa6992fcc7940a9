# SPDX-License-Identifier: Apache-2.0
"""Hazard regressions on real tables: do their intervals hold Cox's coefficients of the whole table,
how wide are they beside Cox's, and which of Cox's significant coefficients are lost?

Tables of R's packages survival, boot and MASS, which Rscript writes (Debian: r-cran-survival,
r-cran-boot, r-cran-mass). A table is sampled with replacement, up to N records where a size is
named; Cox's regression (Breslow's ties) of the whole table is what intervals should hold, that of
the sample what widths are compared with. The profile is the table's own quantiles and counts.

    python -m benchmarks.hazards [table ...]        HAZARD_SAMPLES (20), HAZARD_EPSILONS (1,3,10),
    HAZARD_TARGET (likelihood), HAZARD_N (the table's size), HAZARD_OWN (1: intervals should hold
    what the same question gives on the whole table where ε is 100,000, the target that a robust fit
    has of its own), HAZARD_BY (1: a fit for each stratum, by= in place of strata)

Cox's: what Cox's own intervals hold in the same samples, so what of a coverage is their luck.
given: share of coefficients with an interval. lost: share of Cox's significant ones (p < .05 on the
sample) that have no p-value below .05. forecast: median of the privacy standard errors over those
forecast.
"""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.survival import _of_r
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.kinds.hazard_regression.kind import KIND, HazardRegression
from support.fits.hazards import cox as late_cox
from support.fits.regressions import drive, profile_of, whole

DELTA = 1e-6
Z = 1.96


@dataclass(frozen=True)
class HazardTable:
    """read: an expression of R. time, event: its columns; terms: numeric columns, with bounds where
    they are not 0/1. strata: a column of whole numbers from 0, and how many. start: the column when
    persons come under observation.
    """

    read: str
    time: str
    event: str
    until: float
    terms: dict[str, tuple[float, float] | None]
    size: int | None = None
    strata: tuple[str, int] | None = None
    start: str | None = None


TABLES = {
    "flchain": HazardTable(
        "subset(transform(survival::flchain, male = 1 * (sex == 'M')), !is.na(creatinine))",
        "futime", "death", 6000.0,
        {"age": (40, 110), "male": None, "creatinine": (0, 15), "kappa": (0, 30),
         "lambda": (0, 30), "mgus": None},
    ),
    "colon": HazardTable(
        "subset(transform(survival::colon, lev = 1 * (rx == 'Lev'), fu = 1 * (rx == 'Lev+5FU')), "
        "etype == 2 & !is.na(nodes))",
        "time", "status", 4000.0,
        {"lev": None, "fu": None, "sex": None, "age": (15, 100), "obstruct": None,
         "adhere": None, "nodes": (0, 40), "node4": None, "surg": None},
    ),
    "gbsg": HazardTable(
        "survival::gbsg", "rfstime", "status", 3000.0,
        {"age": (18, 100), "meno": None, "size": (0, 150), "nodes": (0, 60), "pgr": (0, 2500),
         "er": (0, 1200), "hormon": None},
    ),
    "rotterdam": HazardTable(
        "survival::rotterdam", "dtime", "death", 8000.0,
        {"age": (18, 100), "meno": None, "grade": (1, 3), "nodes": (0, 40), "pgr": (0, 5100),
         "er": (0, 3500), "hormon": None, "chemo": None},
    ),
    "nwtco": HazardTable(
        "transform(survival::nwtco, hist = histol - 1, stage4 = 1 * (stage == 4))",
        "edrel", "rel", 7000.0, {"hist": None, "stage": (1, 4), "age": (0, 250)},
    ),
    "nafld": HazardTable(
        "subset(transform(survival::nafld1, time = futime), !is.na(bmi) & time > 0)",
        "time", "status", 8000.0, {"age": (18, 100), "male": None, "bmi": (5, 90)},
    ),
    "flchain10k": HazardTable(
        "subset(transform(survival::flchain, male = 1 * (sex == 'M')), !is.na(creatinine))",
        "futime", "death", 6000.0,
        {"age": (40, 110), "male": None, "kappa": (0, 30)}, 10_000,
    ),
    "flchain, logarithms": HazardTable(
        "subset(transform(survival::flchain, male = 1 * (sex == 'M'), lc = log(creatinine), "
        "lk = log(kappa), ll = log(lambda)), !is.na(creatinine))",
        "futime", "death", 6000.0,
        {"age": (40, 110), "male": None, "lc": (-2, 3), "lk": (-5, 4), "ll": (-5, 4),
         "mgus": None},
    ),
    "nwtco by stage": HazardTable(
        "transform(survival::nwtco, hist = histol - 1, stratum = stage - 1)",
        "edrel", "rel", 7000.0, {"hist": None, "age": (0, 250)}, None, ("stratum", 4),
    ),
    "nafld by sex": HazardTable(
        "subset(transform(survival::nafld1, time = futime), !is.na(bmi) & time > 0)",
        "time", "status", 8000.0, {"age": (18, 100), "bmi": (5, 90)}, None, ("male", 2),
    ),
    "flchain by sample": HazardTable(
        "transform(survival::flchain, male = 1 * (sex == 'M'), ll = log(lambda), "
        "period = 1 * (sample.yr > 1995) + 1 * (sample.yr > 1996))",
        "futime", "death", 6000.0,
        {"age": (40, 110), "male": None, "ll": (-5, 5)}, None, ("period", 3),
    ),
    "colon by arm": HazardTable(
        "subset(transform(survival::colon, arm = as.integer(rx) - 1), etype == 2 & !is.na(nodes))",
        "time", "status", 4000.0,
        {"sex": None, "age": (15, 100), "obstruct": None, "node4": None, "surg": None},
        5_000, ("arm", 3),
    ),
    "flchain by age": HazardTable(
        "subset(transform(survival::flchain, male = 1 * (sex == 'M'), lc = log(creatinine), "
        "ll = log(lambda), entry = age, exit = age + futime / 365.25), !is.na(creatinine) & "
        "futime > 0)",
        "exit", "death", 110.0, {"male": None, "lc": (-2, 3), "ll": (-5, 4)}, start="entry",
    ),
    "nafld by age": HazardTable(
        "subset(transform(survival::nafld1, entry = age, exit = age + futime / 365.25), "
        "!is.na(bmi) & futime > 0)",
        "exit", "status", 110.0, {"male": None, "bmi": (5, 90)}, start="entry",
    ),
    "rotterdam by age": HazardTable(
        "transform(survival::rotterdam, entry = age, exit = age + dtime / 365.25, "
        "large = 1 * (size != '<=20'), many = log(1 + nodes))",
        "exit", "death", 110.0, {"large": None, "many": (0, 4), "hormon": None, "chemo": None},
        start="entry",
    ),
    "mgus2": HazardTable(
        "transform(survival::mgus2, male = 1 * (sex == 'M'), lc = log(creat))",
        "futime", "death", 450.0,
        {"age": (20, 100), "male": None, "hgb": (4, 20), "lc": (-2, 4)}, 5_000,
    ),
    "rotterdam by grade": HazardTable(
        "transform(survival::rotterdam, large = 1 * (size != '<=20'), many = log(1 + nodes), "
        "high = grade - 2)",
        "dtime", "death", 8000.0,
        {"age": (18, 100), "large": None, "many": (0, 4), "hormon": None}, 5_000, ("high", 2),
    ),
    "pbc": HazardTable(
        "subset(transform(survival::pbc, lb = log(bili), male = 1 * (sex == 'm'), "
        "died = 1 * (status == 2)), !is.na(protime))",
        "time", "died", 5000.0,
        {"age": (20, 90), "lb": (-2, 4), "albumin": (1, 6), "male": None}, 5_000,
    ),
    "lung": HazardTable(
        "subset(transform(survival::lung, male = 2 - sex, died = status - 1, ecog = ph.ecog, "
        "lost = wt.loss), !is.na(ph.ecog) & !is.na(wt.loss))",
        "time", "died", 1100.0,
        {"age": (30, 90), "male": None, "ecog": (0, 4), "lost": (-30, 80)}, 5_000,
    ),
    "melanoma": HazardTable(
        "transform(boot::melanoma, died = 1 * (status == 1), lt = log(thickness))",
        "time", "died", 6000.0, {"age": (4, 95), "lt": (-3, 4), "ulcer": None}, 5_000,
    ),
    "diabetic": HazardTable(
        "transform(survival::diabetic, argon = 1 * (laser == 'argon'))",
        "time", "status", 80.0,
        {"trt": None, "risk": (5, 13), "age": (0, 70), "argon": None}, 5_000,
    ),
    "Aids2": HazardTable(
        "subset(transform(MASS::Aids2, time = death - diag, died = 1 * (status == 'D'), "
        "male = 1 * (sex == 'M'), nsw = 1 * (state == 'NSW'), hs = 1 * (T.categ == 'hs')), "
        "time > 0)",
        "time", "died", 2500.0, {"age": (0, 100), "male": None, "nsw": None, "hs": None},
    ),
    "veteran": HazardTable(
        "transform(survival::veteran, test = trt - 1, before = prior / 10, "
        "small = 1 * (celltype == 'smallcell'), ld = log(diagtime))",
        "time", "status", 1000.0,
        {"test": None, "karno": (0, 100), "age": (18, 100), "before": None, "small": None,
         "ld": (0, 5)}, 5_000,
    ),
    "mgus": HazardTable(
        "transform(survival::mgus, male = 1 * (sex == 'male'), lc = log(creat))",
        "futime", "death", 15_000.0,
        {"age": (20, 100), "male": None, "hgb": (4, 20), "lc": (-2, 4), "alb": (1, 6)}, 5_000,
    ),
    "transplant": HazardTable(
        "subset(transform(survival::transplant, got = 1 * (event == 'ltx'), "
        "female = 1 * (sex == 'f'), o = 1 * (abo == 'O')), futime > 0 & !is.na(age))",
        "futime", "got", 2200.0,
        {"age": (0, 90), "female": None, "o": None, "year": (1989, 2001)}, 5_000,
    ),
    "stanford": HazardTable(
        "survival::stanford2", "time", "status", 4000.0, {"age": (5, 70), "t5": (0, 4)}, 5_000,
    ),
}  # fmt: skip


def frame(table: HazardTable, folder: Path = Path("/tmp")) -> pd.DataFrame:
    """Complete records of the columns, cached."""
    cached = folder / f"hazards-{table.time}-{len(table.read)}.csv"
    if not cached.exists():
        _of_r(table.read).to_csv(cached, index=False)
    beside = [name for name in (table.strata and table.strata[0], table.start) if name]
    found = pd.read_csv(cached)[[table.time, table.event, *table.terms, *beside]]
    found = found.astype(float).dropna()
    return found[found[table.time] > 0].reset_index(drop=True)


def columns(table: HazardTable) -> list[Column]:
    named = [
        Column(name, ColumnKind.BOOLEAN, 0, 1)
        if b is None
        else Column(name, ColumnKind.NUMERIC, *b)
        for name, b in table.terms.items()
    ]
    time = Column(table.time, ColumnKind.NUMERIC, 0, table.until)
    if table.strata:
        name, k = table.strata
        levels = tuple(f"level {g}" for g in range(k))
        named.append(Column(name, ColumnKind.CATEGORICAL, 0, k - 1, levels))
    if table.start:
        named.append(Column(table.start, ColumnKind.NUMERIC, 0, table.until))
    return [time, Column(table.event, ColumnKind.BOOLEAN, 0, 1), *named]


def profile(block: dict[str, np.ndarray], table: HazardTable) -> Profile:
    known = [c for c in columns(table) if not c.levels]
    return profile_of(block, known, dict([table.strata]) if table.strata else None)


def cox(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, strata: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(β, standard errors) by partial likelihood, Breslow's ties, in damped Newton steps; strata:
    (n,) whole numbers."""
    size = X.std(axis=0)
    U, k = (X - X.mean(axis=0)) / size, X.shape[1]
    # Strata one after the other: the sums over a set at risk begin anew in each.
    of = np.zeros(len(X)) if strata is None else strata
    order = np.lexsort((-time, of))
    U, time, event, of = U[order], time[order], event[order], of[order]
    key = of * (2 * time.max() + 1) - time
    last = np.searchsorted(key, key, side="right") - 1
    first = np.searchsorted(of, of, side="left")

    def at_risk(values: np.ndarray) -> np.ndarray:
        running = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
        return running[last + 1] - running[first]

    beta, best = np.zeros(k), -np.inf
    step = np.zeros(k)
    for _ in range(60):
        risk = np.exp(np.clip((U @ (beta + step)), -50, 50))
        sums = at_risk(risk)
        value = float(event @ (U @ (beta + step) - np.log(sums)))
        if value < best - 1e-9:
            step = step / 2
            continue
        beta, best = beta + step, value
        mean = at_risk(risk[:, None] * U) / sums[:, None]
        second = at_risk(risk[:, None, None] * U[:, :, None] * U[:, None, :])
        second = second / sums[:, None, None]
        H = ((second - mean[:, :, None] * mean[:, None, :]) * event[:, None, None]).sum(axis=0)
        step = np.linalg.solve(H + 1e-9 * np.trace(H) * np.eye(k), event @ (U - mean))
        if np.abs(step).max() < 1e-8:
            break
    return beta / size, np.sqrt(np.diag(np.linalg.inv(H))) / size


def facts_of_table(block: dict[str, np.ndarray], table: HazardTable) -> DatasetFacts:
    schema, n = Schema(tuple(columns(table)), Unit()), len(block[table.time])
    return DatasetFacts("t", "t", 1, "v", n, schema, profile(block, table))


def own_target(data: pd.DataFrame, table: HazardTable, query: HazardRegression) -> np.ndarray:
    """What the question gives on the whole table where noise is next to none."""
    block = {c: np.ascontiguousarray(data[c].to_numpy()) for c in data}
    cost = PrivacyCost(0, 0, rho_units(1e5, DELTA))
    plan = KIND.plan(facts_of_table(block, table), query, cost)
    return np.array(drive(plan.run(), whole(block)).result["coefficients"])


def exact(data: Mapping[str, np.ndarray], table: HazardTable) -> tuple[np.ndarray, np.ndarray]:
    """Cox's coefficients of a table, and their standard errors."""
    X = np.column_stack([data[name] for name in table.terms])
    time, event = (np.asarray(data[name]) for name in (table.time, table.event))
    if table.start is None:
        return cox(X, time, event, np.asarray(data[table.strata[0]]) if table.strata else None)
    size = X.std(axis=0)
    start = np.asarray(data[table.start])
    beta, V = late_cox((X - X.mean(axis=0)) / size, start, time, event)
    return beta / size, np.sqrt(np.diag(V)) / size


def cell(name: str, epsilon: float, samples: int, seed: int = 1) -> tuple[str, ...]:
    """One line of the table."""
    table = TABLES[name]
    data = frame(table)
    stratum, levels = table.strata or (None, 0)
    by = stratum if os.environ.get("HAZARD_BY") else None
    groups = range(levels) if by else (None,)
    compared = replace(table, strata=None) if by else table
    rng, size = (
        np.random.default_rng(seed),
        int(os.environ.get("HAZARD_N", table.size or len(data))),
    )
    follow_up = (table.start, table.time, table.event)
    query = HazardRegression(
        f"Surv({', '.join(filter(None, follow_up))}) ~ {' + '.join(table.terms)}",
        target=os.environ.get("HAZARD_TARGET", "likelihood"),
        strata=None if by else stratum,
        by=by,
    )
    own_one = bool(os.environ.get("HAZARD_OWN"))
    truths = [exact(_of_level(data, by, g), compared)[0] for g in groups]
    if own_one:
        truths = [own_target(data, table, query)]
    held, given, widths, lost, forecast, bias = [], [], [], [], [], []
    exactly = []
    for _ in range(samples):
        drawn = data.iloc[rng.integers(len(data), size=size)].reset_index(drop=True)
        block = {c: np.ascontiguousarray(drawn[c].to_numpy()) for c in drawn}
        plan = KIND.plan(
            facts_of_table(block, table), query, PrivacyCost(0, 0, rho_units(epsilon, DELTA))
        )
        result = drive(plan.run(), whole(block)).result
        fits = result["groups"] if by else [result]
        said = [np.nan if r is None else r for r in plan.forecast["privacy_to_sampling"]]
        for g, fit, truth in zip(groups, fits, truths, strict=True):
            own, error = exact(_of_level(drawn, by, g), compared)
            ok = np.array(fit["estimable"])
            b, se = np.array(fit["coefficients"]), np.array(fit["standard_errors"])
            given.append(ok)
            held.append(np.where(ok, np.abs(b - truth) <= Z * se, np.nan))
            bias.append((b - (truth if own_one else own)) / se)
            exactly.append(np.abs(own - truth) <= Z * error)
            widths.append(se / error)
            significant = np.abs(own) > Z * error
            found = np.array([p is not None and p < 0.05 for p in fit["p_values"]])
            lost.append((significant & ~found).sum() / max(significant.sum(), 1))
            if not by or plan.forecast["group"] == f"level {g}":
                promised = np.sqrt(1 + np.array(said, dtype=float) ** 2)
                forecast.append(promised / (se / error))
            if os.environ.get("HAZARD_VERBOSE"):
                ratios = np.round(se / error, 2)
                print(np.round(b, 3), np.round(own, 3), ratios, ok, fit["warnings"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no interval at all: nan says it
        return (
            name, f"{size:,}", f"{epsilon:g}", f"{np.nanmean(held):.2f}",
            f"{np.mean(exactly):.2f}",
            f"{np.nanmedian(np.where(given, widths, np.nan)):.2f}", f"{np.mean(given):.2f}",
            f"{np.mean(lost):.2f}", f"{np.nanmedian(forecast):.2f}",
            f"{np.abs(np.mean(bias, axis=0)).max():.2f}",
        )  # fmt: skip


def _of_level(data: pd.DataFrame, by: str | None, g: int | None) -> dict[str, np.ndarray]:
    """The columns of one group's records, or of all."""
    kept = data if by is None else data[data[by] == g]
    return {c: kept[c].to_numpy() for c in kept}


def main(names: Sequence[str] = ()) -> None:
    samples = int(os.environ.get("HAZARD_SAMPLES", "20"))
    epsilons = [float(x) for x in os.environ.get("HAZARD_EPSILONS", "1,3,10").split(",")]
    header = (
        "table",
        "n",
        "ε",
        "coverage",
        "Cox's",
        "width",
        "given",
        "lost",
        "forecast",
        "worst bias",
    )
    for line in (header, ("---",) * len(header)):
        print("| " + " | ".join(line) + " |", flush=True)
    for name in names or list(TABLES):
        for epsilon in epsilons:
            print("| " + " | ".join(cell(name, epsilon, samples)) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
