# SPDX-License-Identifier: Apache-2.0
"""Tables whose records share something within a public cluster, and the textbook's errors (CR1)."""

from dataclasses import replace
from typing import Any

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds import registry
from support.fits.regressions import Trace, drive, whole
from support.kinds.named_tests import facts, offer
from support.kinds.recipes import numeric
from support.seeds import seeded

G = 40
T = 12  # of the other column of two
COLUMNS = (
    numeric("y", -10.0, 10.0),
    numeric("x", -5.0, 5.0),
    numeric("z", -5.0, 5.0),
    numeric("w", 0.0, 2.0),
    Column("g", ColumnKind.CATEGORICAL, 0, G - 1, tuple(f"s{k}" for k in range(G))),
    Column("h", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c")),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
    Column("t", ColumnKind.CATEGORICAL, 0, T - 1, tuple(f"y{k}" for k in range(T))),
    numeric("c", 0.0, 40.0),
    numeric("a", 0.0, 60.0),
)


def clustered_table(
    n: int, icc: float, seed: int, *, skewed: bool = False, years: float = 0.0
) -> dict[str, Any]:
    """y = 1 + x + z + error of variance 1, a share `icc` of which is common to a cluster, as is
    half of the variance of x; b: 0/1 of a logit that shares as much, c: counts and a: amounts of a
    log link that do. skewed: exponential errors. years: the share that is common to a level of
    t."""
    rng = seeded(seed)
    g = rng.integers(0, G, n)
    common, own = rng.normal(size=G)[g], rng.normal(size=n)
    x = np.sqrt(0.5) * (rng.normal(size=G)[g] + rng.normal(size=n))
    z = rng.normal(size=n)
    if skewed:
        own = rng.exponential(size=n) - 1
    y = 1 + x + z + np.sqrt(icc) * common + np.sqrt(1 - icc) * own
    more = seeded((seed, 1))
    t = more.integers(0, T, n)
    y += np.sqrt(years) * more.normal(size=T)[t]
    mean = np.exp(0.3 + 0.4 * x + 0.3 * z + np.sqrt(icc) * common)
    eta = 0.5 * x - 0.5 * z - 0.5 + 2 * np.sqrt(icc) * common
    return {
        "y": np.clip(y, -10, 10),
        "x": np.clip(x, -5, 5),
        "z": np.clip(z, -5, 5),
        "w": rng.uniform(0.2, 2.0, n),
        "g": g.astype(float),
        "h": rng.integers(0, 3, n).astype(float),
        "t": t.astype(float),
        "c": np.clip(more.poisson(mean), 0, 40).astype(float),
        "a": np.clip(mean * more.gamma(2, 0.5, n), 0.001, 60),
        "b": (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float),
    }


def clustered_facts(n: int, *, skewed: bool = False, missing: bool = False) -> DatasetFacts:
    """With the profile of another table of the same law. missing: whether clusters may be."""
    table = clustered_table(20_000, 0.02, 10**6, skewed=skewed)
    own = [replace(c, missing=("",)) if missing and c.name == "g" else c for c in COLUMNS]
    return facts(n, own, **{name: table[name] for name in ("y", "x", "z", "w", "c", "a")})


def asked(query: Any, epsilon: float, table: dict[str, Any], **more: Any) -> tuple[Any, Trace]:
    """The plan and its run. more: of clustered_facts."""
    plan = registry.plan(clustered_facts(len(table["y"]), **more), query, offer(epsilon))
    missing = {"g": table["g"] < 0}
    return plan, drive(plan.run(), whole(table, missing))


def cr1(
    X: FloatArray, weights: FloatArray, r: FloatArray, g: FloatArray, levels: int = G
) -> FloatArray:
    """(q,) standard errors between clusters of scores X·r, with the Jacobian XᵀWX."""
    sums = np.zeros((levels, X.shape[1]))
    np.add.at(sums, g.astype(int), X * r[:, None])
    inverse = np.linalg.inv((X.T * weights) @ X)
    present = len(np.unique(g))
    return np.asarray(
        np.sqrt(np.diag(inverse @ (sums.T @ sums) @ inverse) * present / (present - 1))
    )
