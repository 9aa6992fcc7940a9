# SPDX-License-Identifier: Apache-2.0
"""Tables, facts and offers for the tests that have a name; SciPy's test on the same table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray
from support.kinds.recipes import facts_of, numeric
from support.seeds import seeded

Y = numeric("y", -10.0, 10.0)
X = numeric("x", -5.0, 5.0)
K = Column("k", ColumnKind.INTEGER, 0, 9)
G = Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"))
B = Column("b", ColumnKind.BOOLEAN, 0, 1)
M = numeric("m", 0.0, 1.0, ("",))
PEOPLE = (Y, X, K, G, B, M)


def offer(epsilon: float, delta_inverse: int = 10**6) -> PrivacyCost:
    """What (ε, 10⁻⁶) allows."""
    delta = DELTA_UNITS // delta_inverse
    return PrivacyCost(int(epsilon * EPSILON_UNITS), delta, rho_units(epsilon, 1 / delta_inverse))


def profile_of(**values: FloatArray) -> Profile:
    """A profile with the exact quantiles of some values a column."""
    return Profile(
        {
            name: ColumnProfile(quantiles=tuple(np.quantile(v, PROFILE_PROBABILITIES)))
            for name, v in values.items()
        }
    )


def facts(
    n: int, columns: Sequence[Column] = PEOPLE, max_rows: int = 1, **values: FloatArray
) -> DatasetFacts:
    """Public facts; values: the quantiles of a column's profile are theirs."""
    found = facts_of(n, columns, max_rows)
    return replace(found, profile=profile_of(**values)) if values else found


def people(n: int, seed: int = 0) -> dict[str, FloatArray]:
    """A table of PEOPLE."""
    rng = seeded(seed)
    x = np.clip(rng.normal(size=n), -5, 5)
    return {
        "y": np.clip(1 + x + rng.normal(size=n), -10, 10),
        "x": x,
        "k": rng.integers(0, 10, n).astype(float),
        "g": rng.integers(0, 3, n).astype(float),
        "b": rng.integers(0, 2, n).astype(float),
        "m": rng.random(n),
    }


def people_facts(n: int, max_rows: int = 1) -> DatasetFacts:
    """With a profile of another table of the same law."""
    table = people(20_000, seed=1)
    return facts(n, PEOPLE, max_rows, **{k: table[k] for k in ("y", "x", "k", "m")})
