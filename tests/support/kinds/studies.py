# SPDX-License-Identifier: Apache-2.0
"""Studies of plain tables: planned, run through the real mechanisms, read by the client."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reticent.kinds.study import Study as StudyResults
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.plan import Planned
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.study.kind import KIND, Study

NO_NOISE = 10**9  # ε at which noise is below the lattice's rounding
DELTA = 1e-6


def numeric(
    name: str, lower: float = -1e3, upper: float = 1e3, missing: tuple[str, ...] = ()
) -> Column:
    return Column(name, ColumnKind.NUMERIC, lower, upper, (), missing)


def boolean(name: str) -> Column:
    return Column(name, ColumnKind.BOOLEAN, 0.0, 1.0)


def factor(name: str, levels: Sequence[str]) -> Column:
    return Column(name, ColumnKind.CATEGORICAL, 0.0, len(levels) - 1.0, tuple(levels))


def profile_of(table: Mapping[str, FloatArray], columns: Sequence[Column]) -> Profile:
    """Exact quantiles and counts: a stand-in for a released profile."""
    found = {}
    for column in columns:
        values = np.clip(np.nan_to_num(table[column.name]), column.lower, column.upper)
        if column.levels or column.is_dummy:
            bins = len(column.levels) or 2
            counts = np.bincount(values.astype(int), minlength=bins) * 1.0
            found[column.name] = ColumnProfile(counts=tuple(counts), count_sd=5.0)
        else:
            found[column.name] = ColumnProfile(
                quantiles=tuple(np.quantile(values, PROFILE_PROBABILITIES))
            )
    return Profile(found)


def facts_of(
    table: Mapping[str, FloatArray], columns: Sequence[Column], *, m: int = 1, profile: bool = True
) -> DatasetFacts:
    n = len(next(iter(table.values())))
    unit = Unit("person", m) if m > 1 else Unit()
    released = profile_of(table, columns) if profile else None
    return DatasetFacts("t", "t", 1, "v", n, Schema(tuple(columns), unit), released)


def offer(epsilon: float) -> PrivacyCost:
    """What (ε, δ) allows; at NO_NOISE far more than that."""
    rho = 10**21 if epsilon == NO_NOISE else rho_units(epsilon, DELTA)
    return PrivacyCost(int(epsilon * EPSILON_UNITS), int(DELTA * DELTA_UNITS), rho)


def planned(
    table: Mapping[str, FloatArray],
    columns: Sequence[Column],
    query: Study,
    epsilon: float = 1.0,
    **facts: Any,
) -> Planned:
    return KIND.plan(facts_of(table, columns, **facts), query, offer(epsilon))


def whole(table: Mapping[str, FloatArray], missing: Mapping[str, Any] | None = None) -> Block:
    return Block(0, len(next(iter(table.values()))), table, missing or {})


def persons_block(table: Mapping[str, FloatArray], absent: Any) -> Block:
    """Of a table of places, of which some hold no row."""
    return Block(0, len(absent), table, {ABSENT: absent})


def read(query: Study, result: Any) -> StudyResults:
    """The client's study of a result."""
    document = {
        "id": "rel_1",
        "dataset": "t",
        "version": 1,
        "status": "reply",
        "query": {"kind": "study", "variables": list(query.variables)},
        "charged": {"epsilon": 1.0, "delta": DELTA, "rho": 0.02},
        "guarantee": {
            "tier": "unconditional",
            "unit": "row",
            "epsilon": 1.0,
            "delta": DELTA,
            "mechanism": "m",
            "statement": "s",
            "reference": "r",
            "assumptions": [],
        },
        "created_at": "2026-01-01T00:00:00Z",
        "result": result,
    }
    found = StudyResults(document)
    found.check()
    return found
