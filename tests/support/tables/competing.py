# SPDX-License-Identifier: Apache-2.0
"""Persons with two competing events in whole weeks, in three ordered groups within two strata."""

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block, FloatArray
from support.kinds.recipes import block_of, facts_of

COLUMNS = (
    Column("t", ColumnKind.INTEGER, 0.0, 120.0),
    Column("cause", ColumnKind.CATEGORICAL, 0.0, 2.0, ("relapse", "none", "death")),
    Column("e", ColumnKind.BOOLEAN, 0.0, 1.0),
    Column("g", ColumnKind.CATEGORICAL, 0.0, 2.0, ("low", "mid", "high")),
    Column("s", ColumnKind.CATEGORICAL, 0.0, 1.0, ("x", "y")),
)
RELAPSE, NONE, DEATH = 0.0, 1.0, 2.0  # codes of `cause`
WEEKS = (26.0, 52.0, 78.0, 104.0)


def facts(n: int, max_rows: int = 1) -> DatasetFacts:
    return facts_of(n, COLUMNS, max_rows)


def competing(
    rng: np.random.Generator, n: int, *, slope: float = 0.3, spread: float = 1.0
) -> dict[str, FloatArray]:
    """Columns. slope: log hazard ratio of relapse from one group to the next; the groups' shares
    depend on the stratum, whose log hazard ratio is `spread`.
    """
    s = rng.integers(2, size=n)
    g = (rng.random(n)[:, None] > np.array([[0.5, 0.8], [0.2, 0.5]])[s]).sum(axis=1)
    relapse = 90 * rng.weibull(1.2, n) * np.exp(-(slope * g + spread * s) / 1.2)
    death = rng.exponential(200, n) * np.exp(-spread * s)
    left = np.minimum(rng.uniform(30, 180, n), 110)
    t = np.ceil(np.minimum(np.minimum(relapse, death), left))
    cause = np.where(
        left <= np.minimum(relapse, death), NONE, np.where(relapse < death, RELAPSE, DEATH)
    )
    columns = {"t": t, "cause": cause, "e": cause == RELAPSE, "g": g, "s": s}
    return {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}


def block(rng: np.random.Generator, n: int, **more: float) -> Block:
    return block_of({}, **competing(rng, n, **more))


def given_to_r() -> Block:
    """The 1,500 persons that R was given for fixtures/r_competing.json."""
    return block(np.random.default_rng(20), 1500)  # fixed: R's numbers are of this table
