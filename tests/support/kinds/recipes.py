# SPDX-License-Identifier: Apache-2.0
"""Runs a planned recipe on one block through the real mechanisms, whole columns included."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.plan import Planned
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, ColumnStep, Released, Step
from reticent_server.mechanisms import column_registry, registry
from support.kinds.results import replied


def answer(plan: Planned, block: Block) -> Any:
    """The result as a reply holds it, or None for No Reply."""
    return replied(outcome(plan, block))


def outcome(plan: Planned, block: Block) -> Any:
    """The result as the kind's own value, or None for No Reply."""
    recipe = plan.run()
    step = next(recipe)
    while True:
        try:
            step = recipe.send(released(step, block))
        except StopIteration as stop:
            return stop.value


def released(step: Step, block: Block) -> tuple[Released, ...]:
    """The released parts of one step."""
    values = step.map_fn(block)
    if isinstance(step, ColumnStep):
        columns = [Private(np.asarray(value)) for value in values]
        return tuple(map(column_registry.release, step.parts, columns))
    totals = [Private(registry.encode(p, v)) for p, v in zip(step.parts, values, strict=True)]
    return tuple(map(registry.release, step.parts, totals))


def numeric(
    name: str, lower: float = -100.0, upper: float = 100.0, missing: tuple[str, ...] = ()
) -> Column:
    return Column(name, ColumnKind.NUMERIC, lower, upper, (), missing)


def facts_of(
    n: int,
    columns: Sequence[Column],
    max_rows: int = 1,
    quartiles: Mapping[str, tuple[float, float, float]] | None = None,
) -> DatasetFacts:
    """Public facts; quartiles: {column: (q1, q2, q3)} makes a profile that is linear between
    them.
    """
    unit = Unit("person", max_rows) if max_rows > 1 else Unit()
    profile = None
    if quartiles:
        profile = Profile(
            {k: ColumnProfile(quantiles=_stretched(*q)) for k, q in quartiles.items()}
        )
    return DatasetFacts("t", "t", 1, "v", n, Schema(tuple(columns), unit), profile)


def _stretched(first: float, middle: float, third: float) -> tuple[float, ...]:
    """Quantiles at the profile's probabilities through three quartiles."""
    return tuple(
        middle + 4 * (p - 0.5) * ((third - middle) if p > 0.5 else (middle - first))
        for p in PROFILE_PROBABILITIES
    )


def block_of(missing: Mapping[str, Any] | None = None, **columns: Any) -> Block:
    return Block(0, len(next(iter(columns.values()))), columns, missing or {})
