# SPDX-License-Identifier: Apache-2.0
"""Fits of tables with several rows a person, beside the usual fit with cluster-robust errors; and
how long large ones take.

A line for each model and each law of tables (`PANELS`), one JSON object each:

    error     root mean square distance of the coefficients from those of the law, over that of
              least squares or maximum likelihood on
              the same tables
    width     the median ratio of standard errors to the usual fit's, cluster-robust
    coverage  of 95 % intervals, where there are any; told: the share of coefficients that have one
    bias      the slopes' largest mean error, in the usual standard errors

Tables have N persons of up to m rows, δ = 10⁻⁶ and the profile of another table of the law.
"pooled": 4 slopes; .3 of the regressors' variance is the person's, and .3 of the errors', the rest
of which is AR(.5). "within": 4 slopes, AR(.5) errors, person effects that go with the regressors,
`effects="person"`. Others: 2 slopes; half of the regressors' variance and a third of the errors' is
the person's. sizes: "equal", "mixed" (1 to m rows), "informative" (more rows where the person's own
effect is larger). The law's coefficients are the usual fit's on a table of 400,000 persons where
sizes are informative.

PERSONS_TABLES  tables a line (20)
PERSONS_LINES   lines whose name has one of these texts (all)
PERSONS_PARTS   which of accuracy, time (both)
PERSONS_ROWS    rows of the table of `time`, of 10 a person (1e6; 1e7 takes 5 GB)
PERSONS_REPEATS timed fits of it after a first one (4)
"""

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.signal import lfilter
from scipy.special import expit, ndtr
from scipy.stats import gamma, norm, poisson

from benchmarks.every_kind import answer, ends
from benchmarks.named_tests import offer
from benchmarks.scale import cpu_seconds, engine
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy, Query
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.registry import plan
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.vault.places import ABSENT_MASK

TABLES = int(os.environ.get("PERSONS_TABLES", "20"))
LINES = [text for text in os.environ.get("PERSONS_LINES", "").split(",") if text]
PARTS = os.environ.get("PERSONS_PARTS", "accuracy,time").split(",")
FIRST_SEED = 1_700_000
LARGE = 400_000  # persons, whose usual fit is the law's to a ninth of the standard errors at 5,000
PROFILED = 20_000  # persons of the table that the profile is of
AUTOREGRESSION = 0.5  # of errors from row to row
OWN = 0.3  # of the variance of a linear model's regressors: the person's
INFORMATIVE = 1.5  # of log odds of a row, for each standard deviation of the person's effect
LINEAR = {"pooled", "within"}
ROWS = int(float(os.environ.get("PERSONS_ROWS", "1e6")))
ROWS_EACH, WIDE = 10, 10  # of `time`: rows a person, regressors
REPEATS = int(os.environ.get("PERSONS_REPEATS", "4"))
PIECE = 1_000_000  # rows of a batch, of whole persons


@dataclass(frozen=True)
class Panel:
    """A line. model: pooled, within, median or a family. loss: of linear models. m: most rows a
    person.
    """

    model: str
    persons: int
    m: int
    sizes: str
    epsilon: float
    loss: str = "squared"

    @property
    def name(self) -> str:
        loss = f" {self.loss}" if self.model in LINEAR else ""
        return f"{self.model}{loss} N={self.persons} m={self.m} {self.sizes} eps={self.epsilon:g}"

    @property
    def p(self) -> int:
        return 4 if self.model in LINEAR else 2

    @property
    def query(self) -> Query:
        formula = "y ~ " + " + ".join(f"x{j}" for j in range(self.p))
        if self.model in LINEAR:
            effects: Any = "person" if self.model == "within" else None
            return LinearRegression(formula, loss=self.loss, effects=effects)  # type: ignore[arg-type]
        if self.model == "median":
            return QuantileRegression(formula)
        return Glm(formula, self.model)  # type: ignore[arg-type]

    @property
    def response(self) -> Column:
        if self.model == "binomial":
            return Column("y", ColumnKind.BOOLEAN, 0, 1)
        if self.model == "poisson":
            return Column("y", ColumnKind.INTEGER, 0, 40)
        return Column("y", ColumnKind.NUMERIC, 0.001 if self.model == "gamma" else -60.0, 60.0)

    @property
    def schema(self) -> Schema:
        x = (Column(f"x{j}", ColumnKind.NUMERIC, -20.0, 20.0) for j in range(self.p))
        return Schema((*x, self.response), Unit("person", self.m))


def _panels() -> Iterator[Panel]:
    for persons, m, sizes, epsilon in (
        (5000, 8, "equal", 1), (5000, 8, "mixed", 1), (5000, 8, "equal", 0.5),
        (20_000, 8, "mixed", 1), (1000, 4, "equal", 4),
        (1000, 8, "equal", 4),
    ):  # fmt: skip
        yield Panel("pooled", persons, m, sizes, epsilon)
        yield Panel("pooled", persons, m, sizes, epsilon, "huber")
    yield Panel("within", 5000, 8, "equal", 1, "huber")
    for persons, m, sizes, epsilon in (
        (5000, 8, "equal", 1), (5000, 4, "equal", 1), (5000, 20, "equal", 1), (5000, 4, "mixed", 1),
        (5000, 8, "mixed", 1), (5000, 20, "mixed", 1),
        (5000, 8, "informative", 1), (5000, 8, "equal", 0.5), (1000, 8, "equal", 1),
        (1000, 8, "equal", 4), (20_000, 8, "equal", 1),
        (20_000, 8, "mixed", 1), (20_000, 4, "mixed", 1),
    ):  # fmt: skip
        yield Panel("within", persons, m, sizes, epsilon)
    for model in ("binomial", "poisson", "gamma", "median"):
        for persons, m, epsilon in ((5000, 8, 1), (5000, 8, 4), (1000, 8, 4), (20_000, 4, 1)):
            yield Panel(model, persons, m, "mixed", epsilon)
    for model in ("binomial", "poisson"):
        for persons, epsilon in ((5000, 1), (5000, 4), (20_000, 1)):
            yield Panel(model, persons, 8, "informative", epsilon)


PANELS = tuple(_panels())


def table(panel: Panel, persons: int, seed: int) -> tuple[dict[str, FloatArray], Any]:
    """Columns of persons · m places, and which of them have no row."""
    rng, shape = np.random.default_rng(seed), (persons, panel.m)
    own = rng.normal(size=(persons, 1))

    def normal(share: float, person: Any = None) -> Any:
        shared = rng.normal(size=(persons, 1)) if person is None else person
        return np.sqrt(share) * shared + np.sqrt(1 - share) * rng.normal(size=shape)

    linear = panel.model in LINEAR
    goes = own if panel.model == "within" else None
    x = [normal(OWN if linear else 0.5, goes) for _ in range(panel.p)]
    if linear:
        rows = rng.normal(size=shape)
        rows[:, 1:] *= np.sqrt(1 - AUTOREGRESSION**2)
        rows = lfilter([1], [1, -AUTOREGRESSION], rows, axis=1)
        y = sum(x) * 0.5 + (
            own + rows if goes is not None else np.sqrt(0.3) * own + np.sqrt(0.7) * rows
        )
    else:
        y = _response(panel.model, 0.5 * x[0] - 0.3 * x[1], normal(1 / 3, own))
    absent = np.arange(panel.m)[None, :] >= _sizes(panel, own, rng)
    columns = {f"x{j}": each for j, each in enumerate(x)} | {"y": y}
    bounds = {c.name: c for c in panel.schema.columns}
    return {
        k: np.where(absent, 0.0, np.clip(v, bounds[k].lower, bounds[k].upper)).ravel()
        for k, v in columns.items()
    }, absent.ravel()


def _sizes(panel: Panel, own: Any, rng: np.random.Generator) -> Any:
    """(persons, 1) numbers of rows."""
    if panel.sizes == "equal":
        return np.full(own.shape, panel.m)
    if panel.sizes == "mixed":
        return rng.integers(1, panel.m + 1, own.shape)
    return 1 + rng.binomial(panel.m - 1, expit(INFORMATIVE * own))


def _response(model: str, eta: Any, error: Any) -> Any:
    """Of a law with this predictor, larger where the normal error is."""
    if model == "median":
        return 1 + eta + error
    u = np.clip(ndtr(error), 1e-12, 1 - 1e-12)
    if model == "binomial":
        return (u > 1 - expit(0.3 + eta)) * 1.0
    if model == "poisson":
        return poisson.ppf(u, np.exp(0.5 + eta / 2))
    return gamma.ppf(u, 2, scale=np.exp(0.5 + eta / 2) / 2)


@lru_cache(maxsize=4)
def facts(panel: Panel) -> DatasetFacts:
    columns, absent = table(panel, PROFILED, FIRST_SEED - 1)
    known = {}
    for c in panel.schema.columns:
        values = columns[c.name][~absent]
        if c.kind is ColumnKind.BOOLEAN:
            known[c.name] = ColumnProfile(
                counts=tuple(np.bincount(values.astype(int), minlength=2) * 1.0)
            )
        else:
            known[c.name] = ColumnProfile(
                quantiles=tuple(np.quantile(values, PROFILE_PROBABILITIES))
            )
    return DatasetFacts("b", "b", 1, "v", panel.persons, panel.schema, Profile(known))


def usual(panel: Panel, columns: dict[str, FloatArray], absent: Any) -> tuple[FloatArray, Any]:
    """Least squares, within persons or pooled, or maximum likelihood, and cluster-robust standard
    errors.
    """
    used, m = ~absent, panel.m
    X = np.column_stack([columns[f"x{j}"] for j in range(panel.p)])
    y = columns["y"]
    if panel.model == "within":
        T = np.maximum(used.reshape(-1, m).sum(axis=1), 1)
        X, y = (_deviations(v, used, T, m) for v in (X, y))
    else:
        X = np.column_stack([np.ones(len(y)), X]) * used[:, None]
    beta = np.zeros(X.shape[1])
    mean = {"binomial": expit, "poisson": np.exp, "gamma": np.exp}.get(panel.model)
    for _ in range(1 if mean is None else 25):
        mu = X @ beta if mean is None else mean(X @ beta)
        scores, curvature = _scores(panel.model, y, mu)
        J = (X * curvature[:, None]).T @ X
        beta = beta + np.linalg.solve(J, X.T @ scores)
    if panel.model in LINEAR:
        scores = (y - X @ beta) * used
    A = np.linalg.inv(J)
    s = (X * scores[:, None]).reshape(-1, m, len(beta)).sum(axis=1)
    N = np.count_nonzero(used.reshape(-1, m).any(axis=1))
    return beta, np.sqrt(np.diag(A @ s.T @ s @ A) * N / (N - 1))


def _deviations(values: Any, used: Any, T: Any, m: int) -> Any:
    cells = (values.T * used).T.reshape(len(T), m, -1)
    within = cells - (cells.sum(axis=1) / T[:, None])[:, None, :]
    return np.squeeze((within.reshape(len(used), -1).T * used).T)


def _scores(model: str, y: Any, mu: Any) -> tuple[Any, Any]:
    if model == "gamma":
        return (y - mu) / mu, np.ones_like(mu)
    return y - mu, mu * (
        1 - mu
    ) if model == "binomial" else mu if model == "poisson" else np.ones_like(mu)


@lru_cache(maxsize=64)
def truth(panel: Panel) -> FloatArray:
    """The law's coefficients."""
    if panel.model in LINEAR:
        return np.array([0.0] * (panel.model == "pooled") + [0.5] * panel.p)
    if panel.model == "median":
        return np.array([1.0, 0.5, -0.3])
    if panel.sizes != "informative":
        slope = 1.0 if panel.model == "binomial" else 0.5
        return np.array([0.3 if panel.model == "binomial" else 0.5, 0.5 * slope, -0.3 * slope])
    return usual(panel, *table(panel, LARGE, FIRST_SEED - 2))[0]


def line(panel: Panel, tables: int) -> dict[str, Any]:
    """A line's figures."""
    rows = [one(panel, FIRST_SEED + k) for k in range(tables)]
    told = np.array([row["told"] for row in rows])
    covered = np.array([row["covered"] for row in rows])[told]
    ours, theirs = (np.array([row[k] for row in rows]) for k in ("ours", "theirs"))
    errors = np.array([row["errors"] for row in rows])
    first = panel.model != "within"  # the intercept is not a slope
    found = {
        "error": float(np.sqrt(np.mean(ours**2) / np.mean(theirs**2))),
        "width": float(np.median([row["width"] for row in rows])),
        "coverage": float(np.mean(covered)) if len(covered) else None,
        "told": float(np.mean(told)),
        "bias": float(np.max(np.abs(np.mean(ours, axis=0) / np.mean(errors, axis=0))[first:])),
        "clipped": float(np.median([row["clipped"] for row in rows])),
    }
    return {k: round(v, 3) if v is not None and np.isfinite(v) else None for k, v in found.items()}


def one(panel: Panel, seed: int) -> dict[str, Any]:
    """One table's."""
    columns, absent = table(panel, panel.persons, seed)
    planned = plan(facts(panel), panel.query, offer(panel.epsilon))
    block = Block(0, len(absent), columns, {ABSENT: absent})
    result = answer(planned, block)
    if panel.model == "median":
        result = result["fits"][0] if "fits" in result else result
        beta = errors = np.full(panel.p + 1, np.nan)  # no usual fit beside it
    else:
        beta, errors = usual(panel, columns, absent)
    law, (low, high) = truth(panel), ends(result["confidence_intervals"])
    return {
        "ours": np.array(result["coefficients"]) - law,
        "theirs": beta - law,
        "errors": errors,
        "width": np.array(result["standard_errors"]) / errors,
        "told": np.isfinite(low),
        "covered": (low <= law) & (law <= high),
        "clipped": result.get("clipped_share", np.nan),
    }


class Stored:
    """A table in memory, as a reader gives it."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches
        self.n = sum(batch.num_rows for batch in batches)

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        for batch in self._batches:
            absent = [ABSENT_MASK] if ABSENT_MASK in batch.schema.names else []
            yield Private(batch.select([*columns, *absent]))


def stored(rows: int, m: int) -> tuple[Stored, DatasetFacts]:
    """y = Σ x + e of 10 regressors; with m > 1 of persons of m rows each, of whom .3 of the
    variance is their own.
    """
    batches, names = [], [f"x{j}" for j in range(WIDE)]
    for k, start in enumerate(range(0, rows, PIECE)):
        rng, n = np.random.default_rng((FIRST_SEED, k)), min(PIECE, rows - start)
        x = rng.normal(size=(WIDE + 1, n))
        if m > 1:
            x = np.sqrt(0.7) * x + np.sqrt(0.3) * np.repeat(
                rng.normal(size=(WIDE + 1, n // m)), m, axis=1
            )
        columns = dict(zip(names, x, strict=False)) | {"y": x.sum(axis=0)}
        if m > 1:
            columns[ABSENT_MASK] = np.zeros(n, np.bool_)
        batches.append(pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in columns.items()}))
    unit = Unit("person", m) if m > 1 else Unit()
    schema = Schema(
        tuple(Column(name, ColumnKind.NUMERIC, -40.0, 40.0) for name in [*names, "y"]), unit
    )
    sds = [1.0] * WIDE + [np.sqrt(WIDE + 1)]
    known = {
        c.name: ColumnProfile(quantiles=tuple(sd * norm.ppf(PROFILE_PROBABILITIES)))
        for c, sd in zip(schema.columns, sds, strict=True)
    }
    return Stored(batches), DatasetFacts("b", "b", 1, f"v{m}", rows // m, schema, Profile(known))


def times(rows: int) -> dict[str, Any]:
    """Seconds of a fit by each loss from memory, two threads: of persons of ROWS_EACH rows over
    those of as many independent rows.

    Alternately, the least of REPEATS after a first one; CPU seconds are of all processes.
    """
    found: dict[str, Any] = {"rows": rows, "persons": rows // ROWS_EACH}
    tables = {name: stored(rows, m) for name, m in (("rows", 1), ("persons", ROWS_EACH))}
    engines = {name: engine(reader, 2 << 30) for name, (reader, _) in tables.items()}
    for loss in ("squared", "huber"):
        query = LinearRegression("y ~ " + " + ".join(f"x{j}" for j in range(WIDE)), loss=loss)  # type: ignore[arg-type]
        plans = {
            name: planning.plan(public, query, Privacy(1.0, 1e-6))
            for name, (_, public) in tables.items()
        }
        clocks: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
        for _ in range(REPEATS + 1):
            for name, asked in plans.items():
                reservation = Reservation("rel_bench", asked.facts.version_id, asked.cost, "")
                before, start = cpu_seconds(), time.perf_counter()
                assert engines[name].execute(asked, reservation).status == "reply"
                clocks[name].append((time.perf_counter() - start, cpu_seconds() - before))
        least = {name: np.min(each[1:], axis=0) for name, each in clocks.items()}
        ratio = least["persons"] / least["rows"]
        found[loss] = {
            "passes": {name: asked.planned.passes for name, asked in plans.items()},
            "seconds": {name: round(float(t[0]), 3) for name, t in least.items()},
            "cpu_seconds": {name: round(float(t[1]), 3) for name, t in least.items()},
            "ratio": round(float(ratio[0]), 3),
            "cpu_ratio": round(float(ratio[1]), 3),
        }
    for each in engines.values():
        each.close()
    return found


def main() -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    for panel in PANELS if "accuracy" in PARTS else ():
        if not LINES or any(text in panel.name for text in LINES):
            found = {"benchmark": "persons", "line": panel.name, "tables": TABLES}
            print(json.dumps(found | line(panel, TABLES)), flush=True)
    if "time" in PARTS:
        print(json.dumps({"benchmark": "persons", "machine": machine} | times(ROWS)), flush=True)


if __name__ == "__main__":
    main()
