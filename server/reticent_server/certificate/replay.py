# SPDX-License-Identifier: Apache-2.0
"""The search over every kind: its examples, sizes of units, and values of ε far apart.

For each step of noisy sums, the two units of an adversarial pool that are the farthest apart must
lose no more than the step is charged. What a kind draws otherwise (a quantile, a candidate, blocks
of a subsample) has no such distance; its steps are counted as `drawn`, and their laws are attacked
by the project's tests.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from reticent_server.certificate.pool import table_of, units
from reticent_server.certificate.search import SearchedStep, searched
from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Unit
from reticent_server.errors import CuratorError, InvalidRequest
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind
from reticent_server.kinds.example import SCHEMA, rows
from reticent_server.pipeline.planning import plan

RECORDS = 300
"""Of the example table: enough for every example to be planned, few enough for a minute in all."""

EPSILONS = (0.1, 1.0, 20.0)
"""Far below, at, and far above what is asked."""

DELTA = 1e-6
"""Of every replayed question: a usual one."""

UNITS = (Unit(), Unit("person", 1, gaps=True), Unit("person", 3))
"""A row; a person with one row or none; a person with up to three."""

POOL = 24
"""Units: their pairs hold the corners that attain the bounds of each kind (the share attained says
how closely)."""

ROOM = 1 + 1e-9
"""Relative: a distance in float64."""


@dataclass(frozen=True, slots=True)
class KindReplay:
    """What the replay found of one kind. plans: examples × units × ε that could be planned;
    refused: that could not, as a kind for one row a person is not for several. steps: of noisy
    sums, each with `pairs` pairs. attained: the largest loss over its charge. drawn: plans with
    parts that are drawn otherwise. beyond: the labels of steps that lose more than they are
    charged."""

    kind: str
    mechanism: str
    reference: str
    plans: int
    refused: int
    steps: int
    pairs: int
    attained: float
    drawn: int
    beyond: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no pair lost more than the charge."""
        return not self.beyond


def kinds_of(names: Sequence[str] | None) -> Sequence[Kind[Any]]:
    """Analysts' kinds of these names; None: all. Raises CuratorError for a name that is none."""
    known = {kind.name: kind for kind in KINDS if kind.for_analysts}
    unknown = sorted(set(names or ()) - known.keys())
    if unknown:
        raise CuratorError(f"No kind is called {unknown[0]}; there are {', '.join(known)}.")
    return [kind for name, kind in known.items() if names is None or name in names]


def replayed(kinds: Sequence[Kind[Any]], size: int = POOL) -> Iterator[KindReplay]:
    """Each kind, searched on this machine's versions. size: of the pool, in units."""
    return (_replay(kind, size) for kind in kinds)


def _replay(kind: Kind[Any], size: int) -> KindReplay:
    plans = [(facts, planned) for facts in map(_facts, UNITS) for planned in _plans(kind, facts)]
    found = [list(steps) for steps in _searched(plans, size)]
    steps = [step for each in found for step in each]
    first = next((planned for _, planned in plans), None)
    return KindReplay(
        kind=kind.name,
        mechanism=first.mechanism if first else "",
        reference=first.reference if first else "",
        plans=len(plans),
        refused=len(kind.examples) * len(UNITS) * len(EPSILONS) - len(plans),
        steps=len(steps),
        pairs=size * (size - 1) // 2,
        attained=max(map(_share, steps), default=0.0),
        drawn=sum(not each for each in found),
        beyond=tuple(sorted({step.label for step in steps if _share(step) > ROOM})),
    )


def _searched(
    plans: Sequence[tuple[DatasetFacts, Planned]], size: int
) -> Iterator[Iterator[SearchedStep]]:
    """Each plan's steps, on the example table of its unit."""
    for facts, planned in plans:
        table, pool = table_of(facts, rows(facts.slots)), units(facts, size, seed=0)
        yield searched(planned, table, pool)


def _share(step: SearchedStep) -> float:
    return step.loss / step.charged if step.charged else 0.0


def _facts(unit: Unit) -> DatasetFacts:
    schema = replace(SCHEMA, unit=unit)
    policy = Policy(tiers=("unconditional", "conditional"))
    return DatasetFacts("example", "example", 1, "example", RECORDS, schema, None, policy)


def _plans(kind: Kind[Any], facts: DatasetFacts) -> Iterator[Planned]:
    """Of each example at each ε; of those that this table is refused, none."""
    for example in kind.examples:
        for epsilon in EPSILONS:
            with suppress(InvalidRequest):
                yield plan(facts, example, Privacy(epsilon, DELTA)).planned
