# SPDX-License-Identifier: Apache-2.0
"""What is installed here, and what its ledger says: public facts, no private cell."""

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import reticent_server
from reticent_server.catalog.populations import Population
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.domain.facts import DatasetFacts
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance
from reticent_server.pipeline.books import Books

LIBRARIES = ("opendp", "numpy", "scipy", "sqlalchemy", "pyarrow", "fastapi", "pydantic")
"""What the guarantee rests on: the sampler, exact sums, the ledger, cells, the interface."""


def software() -> Mapping[str, Any]:
    """Versions, and the SHA-256 of the server's source as it is installed."""
    return {
        "reticent-server": version("reticent-server"),
        "source_sha256": source_digest(Path(reticent_server.__file__).parent),
        "python": platform.python_version(),
        "platform": sys.platform,
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def source_digest(folder: Path) -> str:
    """SHA-256 of all Python files below a folder: of their relative names and their contents, in
    order."""
    found = sha256()
    for file in sorted(folder.rglob("*.py")):
        content = file.read_bytes()
        name = file.relative_to(folder).as_posix()
        found.update(f"{name}\x00{len(content)}\x00".encode() + content)
    return found.hexdigest()


def populations(books: Books) -> Sequence[Mapping[str, Any]]:
    """Each population: whom it protects, how many places it has, what may be spent on it in all."""
    caps = {b.population: b for b in books.ledger.all_balances() if b.analyst_id is None}
    tables = books.catalog.list()
    known = books.catalog.populations()
    return [_population(each, caps.get(each.name), list(_of(each, tables))) for each in known]


def _of(population: Population, tables: Sequence[DatasetFacts]) -> Iterator[DatasetFacts]:
    return (table for table in tables if table.population == population.name)


def _population(
    population: Population, cap: Balance | None, tables: Sequence[DatasetFacts]
) -> Mapping[str, Any]:
    return {
        "population": population.name,
        "unit": population.unit_words,
        "places": None if population.spine is None else population.spine.n,
        "cap": None if cap is None else _cap(cap),
        "datasets": [_dataset(table) for table in tables],
    }


def _cap(cap: Balance) -> Mapping[str, Any]:
    return {
        "rule": cap.rule,
        "epsilon": from_units(cap.epsilon, EPSILON_UNITS),
        "delta": from_units(cap.delta, DELTA_UNITS),
        "spent": implied(cap, cap.spent),
    }


def _dataset(facts: DatasetFacts) -> Mapping[str, Any]:
    policy = facts.policy
    return {
        "dataset": facts.name,
        "version": facts.version,
        "n": facts.n,
        "max_rows": facts.schema.unit.max_rows,
        "guarantees": list(policy.tiers),
        "max_epsilon": policy.max_epsilon,
        "second_person": policy.second_person,
        "protocol_required": policy.protocol_required,
    }
