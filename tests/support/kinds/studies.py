"""Studies of plain tables: planned, run through the real mechanisms, read by the client."""

import numpy as np

from reticent.kinds.study import Study as StudyResults
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.kinds.study.kind import KIND

NO_NOISE = 10**9  # ε at which noise is below the lattice's rounding
DELTA = 1e-6


def numeric(name, lower=-1e3, upper=1e3, missing=()):
    return Column(name, ColumnKind.NUMERIC, lower, upper, (), missing)


def boolean(name):
    return Column(name, ColumnKind.BOOLEAN, 0.0, 1.0)


def factor(name, levels):
    return Column(name, ColumnKind.CATEGORICAL, 0.0, len(levels) - 1.0, tuple(levels))


def profile_of(table, columns):
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


def facts_of(table, columns, *, m=1, profile=True):
    n = len(next(iter(table.values())))
    unit = Unit("person", m) if m > 1 else Unit()
    released = profile_of(table, columns) if profile else None
    return DatasetFacts("t", "t", 1, "v", n, Schema(tuple(columns), unit), released)


def offer(epsilon):
    """What (ε, δ) allows; at NO_NOISE far more than that."""
    rho = 10**21 if epsilon == NO_NOISE else rho_units(epsilon, DELTA)
    return PrivacyCost(int(epsilon * EPSILON_UNITS), int(DELTA * DELTA_UNITS), rho)


def planned(table, columns, query, epsilon=1.0, **facts):
    return KIND.plan(facts_of(table, columns, **facts), query, offer(epsilon))


def whole(table, missing=None):
    return Block(0, len(next(iter(table.values()))), table, missing or {})


def read(query, result):
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
