# SPDX-License-Identifier: Apache-2.0
"""Fits after a curator's profile with noise, of persons and of wide tables, beside fits with the
exact one and with none.

A JSON object a line: error (root mean square of the slopes' errors, over that of the usual fit on
the same tables), coverage of 95 % intervals where there are any, told: the share of coefficients
that have one, and `resolved`: the share of the columns of which the profile tells the spread.

    persons   5,000 persons of 2 to 8 rows, y = 2a + x1 + x2 + e, x an AR(.5) of its own and a
              normal effect of the person's, bounds ±30;
              `effects="person"`, beside PanelOLS's estimate
    wide      2,000 records, y = x1 − x2/2 + g + e, a factor of 3 levels, and further columns that
              the model does not read

PROFILES_TABLES  tables a line (20)
PROFILES_LINES   lines whose name has one of these texts (all)
"""

import json
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.every_kind import answer
from benchmarks.named_tests import offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.column_measures import is_resolved
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.kinds.registry import plan
from reticent_server.kinds.shared.linear.query import LinearRegression

TABLES = int(os.environ.get("PROFILES_TABLES", "20"))
LINES = [text for text in os.environ.get("PROFILES_LINES", "").split(",") if text]
FIRST_SEED = 2_100_000
PERSONS, MOST_ROWS = 5_000, 8
RECORDS = 2_000
AUTOREGRESSION = 0.5  # of regressors from row to row
BOUND = 30.0  # of every number


@dataclass(frozen=True)
class ProfiledLine:
    """profile: its ε; 0: none; infinite: the exact one. further: columns that the model does not
    read (of `wide`).
    """

    table: str
    profile: float
    epsilon: float
    further: int = 0
    loss: str = "squared"

    @property
    def name(self) -> str:
        wide = f" further={self.further}" if self.table == "wide" else ""
        return f"{self.table}{wide} {self.loss} profile={self.profile:g} eps={self.epsilon:g}"

    @property
    def query(self) -> LinearRegression:
        if self.table == "persons":
            return LinearRegression("y ~ x1 + x2", loss=self.loss, effects="person")  # type: ignore[arg-type]
        return LinearRegression("y ~ x1 + x2 + g", loss=self.loss)  # type: ignore[arg-type]

    @property
    def schema(self) -> Schema:
        names = ["x1", "x2", "y", *(f"z{k}" for k in range(self.further))]
        numbers = [Column(name, ColumnKind.NUMERIC, -BOUND, BOUND) for name in names]
        if self.table == "persons":
            return Schema(tuple(numbers), Unit("person", MOST_ROWS))
        return Schema((*numbers, Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"))))

    @property
    def slopes(self) -> FloatArray:
        return np.array([1.0, 1.0] if self.table == "persons" else [1.0, -0.5, 0.5, 1.0])


PROFILES = (0.1, 0.5, np.inf, 0.0)
EVERY = (
    *(ProfiledLine("persons", profile, 1.0) for profile in (0.1, 0.5, np.inf, 0.0)),
    *(ProfiledLine("persons", profile, 1.0, loss="huber") for profile in (0.5, np.inf)),
    *(
        ProfiledLine("wide", profile, epsilon, further)
        for further in (20, 40)
        for epsilon in (1.0, 4.0)
        for profile in PROFILES
    ),
)


def table(line: ProfiledLine, seed: int) -> tuple[dict[str, FloatArray], FloatArray]:
    """Columns, of persons by places, and which places have no row."""
    rng = np.random.default_rng(seed)
    if line.table == "wide":
        numbers = {c.name: rng.normal(size=RECORDS) for c in line.schema.columns}
        g = rng.choice(3, size=RECORDS, p=(0.5, 0.3, 0.2))
        x1, x2 = numbers["x1"], numbers["x2"]
        y = x1 - x2 / 2 + g / 2 + rng.normal(size=RECORDS)
        return numbers | {"g": g * 1.0, "y": y}, np.zeros(RECORDS, dtype=bool)
    a = rng.normal(size=(PERSONS, 1))
    x1, x2 = (_series(rng) + rng.normal(size=(PERSONS, 1)) for _ in range(2))
    y = 2 * a + x1 + x2 + rng.normal(size=(PERSONS, MOST_ROWS))
    absent = np.arange(MOST_ROWS) >= rng.integers(2, MOST_ROWS + 1, size=(PERSONS, 1))
    columns = {"x1": x1, "x2": x2, "y": y}
    return {k: np.where(absent, 0.0, v).ravel() for k, v in columns.items()}, absent.ravel()


def _series(rng: np.random.Generator) -> FloatArray:
    """(persons, m) of variance 1."""
    x = rng.normal(size=(PERSONS, MOST_ROWS))
    for t in range(1, MOST_ROWS):
        x[:, t] = AUTOREGRESSION * x[:, t - 1] + np.sqrt(1 - AUTOREGRESSION**2) * x[:, t]
    return x


def facts(line: ProfiledLine, columns: dict[str, FloatArray], absent: FloatArray) -> DatasetFacts:
    """With the curator's profile of this table."""
    n = PERSONS if line.table == "persons" else RECORDS
    public = DatasetFacts("b", "b", 1, "v", n, line.schema)
    if line.profile == 0:
        return public
    if np.isinf(line.profile):
        return replace(public, profile=_exact(line, columns, absent))
    released = answer(plan(public, ProfileQuery(), offer(line.profile)), block(columns, absent))
    return replace(public, profile=profile_of(released, "rel_0"))


def _exact(line: ProfiledLine, columns: dict[str, FloatArray], absent: FloatArray) -> Profile:
    known = {}
    for c in line.schema.columns:
        values = columns[c.name][~absent]
        known[c.name] = (
            ColumnProfile(counts=tuple(np.bincount(values.astype(int), minlength=3) * 1.0))
            if c.levels
            else ColumnProfile(quantiles=tuple(np.quantile(values, PROFILE_PROBABILITIES)))
        )
    return Profile(known)


def block(columns: dict[str, FloatArray], absent: FloatArray) -> Block:
    return Block(0, len(absent), columns, {ABSENT: absent} if absent.any() else {})


def usual(line: ProfiledLine, columns: dict[str, FloatArray], absent: FloatArray) -> FloatArray:
    """Least squares' slopes, of persons as PanelOLS has them."""
    if line.table == "wide":
        g = columns["g"]
        X = np.column_stack([np.ones(len(g)), columns["x1"], columns["x2"], g == 1, g == 2])
        return np.asarray(np.linalg.lstsq(X, columns["y"], rcond=None)[0][1:])
    used = ~absent.reshape(-1, MOST_ROWS)
    rows = used.sum(axis=1, keepdims=True)

    def deviations(values: FloatArray) -> FloatArray:
        own = values.reshape(-1, MOST_ROWS) * used
        return ((own - own.sum(axis=1, keepdims=True) / rows) * used).ravel()

    X = np.column_stack([deviations(columns["x1"]), deviations(columns["x2"])])
    return np.asarray(np.linalg.lstsq(X, deviations(columns["y"]), rcond=None)[0])


def one(line: ProfiledLine, seed: int) -> dict[str, Any] | None:
    columns, absent = table(line, seed)
    known = facts(line, columns, absent)
    planned = plan(known, line.query, offer(line.epsilon))
    result = answer(planned, block(columns, absent))
    slopes, k = line.slopes, len(line.slopes)
    told = np.array(result["estimable"][-k:], dtype=bool)
    ends = np.array(
        [e if e[0] is not None else (np.nan, np.nan) for e in result["confidence_intervals"][-k:]],
        dtype=float,
    )
    profiles = known.profile.columns if known.profile else {}
    return {
        "error": np.array(result["coefficients"][-k:]) - slopes,
        "usual": usual(line, columns, absent) - slopes,
        "told": told,
        "covered": ((ends[:, 0] <= slopes) & (slopes <= ends[:, 1]))[told],
        "forecast": np.array([r is not None for r in planned.forecast["privacy_to_sampling"][-k:]]),
        "resolved": [is_resolved(c, profiles.get(c.name)) for c in line.schema.columns],
    }


def figures(line: ProfiledLine, tables: int = TABLES) -> dict[str, Any]:
    """A line's figures."""
    ones = [one(line, FIRST_SEED + k) for k in range(tables)]
    covered = np.concatenate([x["covered"] for x in ones if x])

    def rms(name: str) -> float:
        return float(np.sqrt(np.mean([np.mean(x[name] ** 2) for x in ones if x])))

    return {
        "line": line.name,
        "error": round(rms("error") / rms("usual"), 2),
        "coverage": round(float(covered.mean()), 3) if len(covered) else None,
        "told": round(float(np.mean([x["told"].mean() for x in ones if x])), 2),
        "forecast": round(float(np.mean([x["forecast"].mean() for x in ones if x])), 2),
        "resolved": round(float(np.mean([x["resolved"] for x in ones if x])), 2),
    }


if __name__ == "__main__":
    for each in EVERY:
        if not LINES or any(text in each.name for text in LINES):
            print(json.dumps(figures(each)), flush=True)
