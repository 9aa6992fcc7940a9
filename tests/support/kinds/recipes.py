"""Runs a planned recipe on one block through the real mechanisms, whole columns included."""

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, ColumnStep
from reticent_server.mechanisms import column_registry, registry
from support.kinds.results import replied


def answer(plan, block):
    """The result, or None for No Reply."""
    recipe = plan.run()
    step = next(recipe)
    while True:
        try:
            step = recipe.send(released(step, block))
        except StopIteration as stop:
            return replied(stop.value)


def released(step, block):
    """The released parts of one step."""
    values = [Private(v) for v in step.map_fn(block)]
    if isinstance(step, ColumnStep):
        return tuple(map(column_registry.release, step.parts, values))
    totals = [
        Private(registry.encode(p, v.unwrap())) for p, v in zip(step.parts, values, strict=True)
    ]
    return tuple(map(registry.release, step.parts, totals))


def numeric(name, lower=-100.0, upper=100.0, missing=()):
    return Column(name, ColumnKind.NUMERIC, lower, upper, (), missing)


def facts_of(n, columns, max_rows=1, quartiles=None):
    """Public facts; quartiles: {column: (q1, q2, q3)} makes a profile that is linear between them."""
    unit = Unit("person", max_rows) if max_rows > 1 else Unit()
    profile = None
    if quartiles:
        profile = Profile(
            {k: ColumnProfile(quantiles=_stretched(*q)) for k, q in quartiles.items()}
        )
    return DatasetFacts("t", "t", 1, "v", n, Schema(tuple(columns), unit), profile)


def _stretched(first, middle, third):
    """Quantiles at the profile's probabilities through three quartiles."""
    return tuple(
        middle + 4 * (p - 0.5) * ((third - middle) if p > 0.5 else (middle - first))
        for p in PROFILE_PROBABILITIES
    )


def block_of(missing=None, **columns):
    return Block(0, len(next(iter(columns.values()))), columns, missing or {})
