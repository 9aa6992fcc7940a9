# SPDX-License-Identifier: Apache-2.0
"""A linear model's table as a directory of Parquet files, written in pieces, and its public
facts.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import norm

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.formula import parse_formula
from reticent_server.formula.limits import Limits
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.parquet_source import ParquetReader, pin_files

PIECE = 1 << 20


def names(p):
    return [f"x{j}" for j in range(p)]


def slopes(p):
    return np.linspace(1, 0.1, p)


def write_table(folder: Path, n: int, p: int, *, binary: bool = False) -> Path:
    """y = Xβ + e in files of a million rows: never more than one of them in memory.

    binary: with a column "positive", the response of a logistic model with the same slopes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for k, start in enumerate(range(0, n, PIECE)):
        rng = np.random.default_rng((2026, k))
        x = rng.normal(size=(p, min(PIECE, n - start)))
        y = slopes(p) @ x + rng.normal(scale=0.5, size=x.shape[1])
        table = pa.table(dict(zip([*names(p), "y"], [*x, y], strict=True)))
        if binary:
            positive = pa.array(slopes(p) @ x + rng.logistic(size=x.shape[1]) > 0)
            table = table.append_column("positive", positive)
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
    return ParquetReader(schema(p), pin_files(folder_at(folder), [*names(p), "y"]))


def planned(n, p):
    """(plan, reservation) of the regression on all columns at ε = 1.

    A plan for more columns than a formula may have is made without that limit.
    """
    query = LinearRegression("y ~ " + " + ".join(names(p)))
    public, privacy = facts(n, p), Privacy(1.0, 1e-6)
    if p < Limits().max_columns:
        plan = planning.plan(public, query, privacy)
    else:
        plan = planning.plan(public, Count(), privacy)
        limits = Limits(max_columns=p + 1)
        design = parse_formula(query.formula, public.schema, None, limits=limits)
        rho = plan.cost.rho
        plan = replace(plan, estimator=plan_linear_regression(public, design, query, rho))
    return plan, Reservation("rel_bench", plan.facts.version_id, plan.cost, "")


class AnyReservation:
    def confirm(self, _reservation) -> bool:
        return True
