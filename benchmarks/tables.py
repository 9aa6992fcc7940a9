"""A linear model's table as a directory of Parquet files, written in pieces, and its public facts."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import norm

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.plan import Reservation
from reticent_server.domain.query import LinearRegression, Privacy
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.pipeline import planning
from reticent_server.vault.parquet_source import ParquetReader, pin_files

PIECE = 1 << 20


def names(p):
    return [f"x{j}" for j in range(p)]


def slopes(p):
    return np.linspace(1, 0.1, p)


def write_table(folder: Path, n: int, p: int) -> Path:
    """y = Xβ + e in files of a million rows: never more than one of them in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, start in enumerate(range(0, n, PIECE)):
        rng = np.random.default_rng((2026, k))
        x = rng.normal(size=(p, min(PIECE, n - start)))
        y = slopes(p) @ x + rng.normal(scale=0.5, size=x.shape[1])
        table = pa.table(dict(zip([*names(p), "y"], [*x, y], strict=True)))
        pq.write_table(table, folder / f"part-{k:04d}.parquet", row_group_size=1 << 17)
    return folder


def schema(p):
    return Schema(tuple(Column(k, ColumnKind.NUMERIC, -20.0, 20.0) for k in [*names(p), "y"]))


def facts(n, p):
    """With the exact quantiles of the normal distributions as a profile."""
    sds = [1.0] * p + [float(np.sqrt((slopes(p) ** 2).sum() + 0.25))]
    quantiles = [tuple(sd * norm.ppf(PROFILE_PROBABILITIES)) for sd in sds]
    profile = {
        k: ColumnProfile(quantiles=q) for k, q in zip([*names(p), "y"], quantiles, strict=True)
    }
    return DatasetFacts("bench", "bench", 1, f"v{n}-{p}", n, schema(p), Profile(profile))


def reader(folder, p):
    return ParquetReader(schema(p), pin_files(Path(folder), [*names(p), "y"]))


def planned(n, p):
    """(plan, reservation) of the regression on all columns at ε = 1."""
    query = LinearRegression("y ~ " + " + ".join(names(p)))
    plan = planning.plan(facts(n, p), query, Privacy(1.0, 1e-6))
    return plan, Reservation("rel_bench", plan.facts.version_id, plan.cost, "")


class AnyReservation:
    def confirm(self, _reservation):
        return True
