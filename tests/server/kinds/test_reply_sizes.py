# SPDX-License-Identifier: Apache-2.0
"""A reply says what was released once: its bytes are bounded by its numbers, for every kind.

A covariance is what an analyst cannot do without, p² numbers of some 20 bytes. Nothing else of a
fit grows as fast, but where some direction is not resolved.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.certificate.pool import table_of
from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Privacy, Query
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.errors import ReticentError
from reticent_server.kinds import KINDS, example
from reticent_server.kinds.did.kind import Did
from reticent_server.pipeline import planning
from support.attacks.seeded_noise import seed_noise
from support.kinds.dearest import FACTS, dear_questions
from support.kinds.recipes import released
from support.kinds.results import replied
from support.seeds import seeded

TEXTS = 6_000
"""Bytes of sentences, the names of fields and of terms' figures that do not grow."""

A_TERM = 400
"""Bytes of a term's name and of some dozen figures about it, of 20 bytes each, and of two warnings
that may name it."""

A_PAIR, OF_UNRESOLVED, OF_STUDY = 24, 48, 96
"""Bytes of two terms' covariance; with a weighting's matrix, and half of directions; and of two
variables of a study: their moment and its noise, of all records and of cells cut narrowly. A
baseline's hazards have covariances, too, with one another and with each term.
"""

A_GROUP = 600
"""Bytes of what a study's group has beside its moments."""

A_NUMBER = 120
"""Bytes of a released number: with its error, interval and bin or level."""

A_CUTOFF = 6
"""Numbers of a cutoff of a score: its two shares, predictive values and likelihood ratios."""

N = 2_000
EXAMPLES = [
    pytest.param(question, id=f"{kind.name}-{number}")
    for kind in KINDS
    if kind.for_analysts
    for number, question in enumerate(kind.examples[:1])
]


def facts_of(schema: Schema) -> DatasetFacts:
    policy = Policy(tiers=("unconditional", "conditional"))
    return DatasetFacts("d", "d", 1, "v", N, schema, None, policy)


def run(planned: Planned, table: Block) -> tuple[dict[str, Any] | None, int]:
    """The result as a reply holds it, and how many numbers were released for it."""
    recipe, numbers = planned.run(), 0
    step = next(recipe)
    while True:
        parts = released(step, table)
        numbers += sum(np.size(part.values) for part in parts)
        try:
            step = recipe.send(parts)
        except StopIteration as stop:
            return replied(stop.value), numbers


def asked(facts: DatasetFacts, query: Query, cells: Mapping[str, FloatArray]) -> tuple[Any, int]:
    plan = planning.plan(facts, query, Privacy(8.0, 1e-6), gaussian=True)
    return run(plan.planned, table_of(facts, cells))


def allowed(result: Mapping[str, Any], numbers: int) -> int:
    """Bytes that a result may have."""
    if "cutoffs" in result:
        return TEXTS + A_NUMBER * A_CUTOFF * len(result["cutoffs"])
    if "terms" not in result:
        return TEXTS + A_NUMBER * numbers
    p = len(result["terms"])
    if "variables" in result:
        groups = len(result.get("groups") or [0])
        return TEXTS + A_TERM * p + groups * (A_GROUP + OF_STUDY * p * p)
    plain = result.get("directions") == [] and not result["weighting"]["matrix"]
    hazards = [len(each["hazards"]) for each in baselines(result)]
    pairs = (A_PAIR if plain else OF_UNRESOLVED) * p * p
    return TEXTS + A_TERM * p + pairs + A_PAIR * sum(J * (J + p) for J in hazards)


def baselines(result: Mapping[str, Any]) -> list[Any]:
    """Of a hazard regression: of all, and of each stratum."""
    one = [result["baseline"]] if "baseline" in result else []
    return one + list((result.get("strata") or {"baselines": ()})["baselines"])


def size(result: Any) -> int:
    return len(json.dumps(result, separators=(",", ":")).encode())


@pytest.mark.sample(8)
@pytest.mark.parametrize("query", EXAMPLES)
def test_a_reply_is_as_long_as_what_it_says(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, repr(query))
    result, numbers = asked(facts_of(example.SCHEMA), query, example.rows(N))
    assert result is None or size(result) <= allowed(result, numbers)


@pytest.mark.audit
@pytest.mark.parametrize("question", dear_questions(), ids=lambda question: question.label)
def test_nor_is_the_longest_reply_of_a_kind_longer(
    question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, question.label)
    rng = seeded(1)
    facts = replace(FACTS, n=N)
    cells = {}
    for column in facts.schema.columns:
        values = rng.uniform(column.lower, min(column.upper, column.lower + 1e4), N)
        cells[column.name] = values if column.kind is ColumnKind.NUMERIC else np.rint(values)
    try:
        result, numbers = asked(facts, question.query, cells)
    except ReticentError:  # refused, which is no longer
        return
    assert result is None or size(result) <= allowed(result, numbers)


PERIODS = Schema(
    (
        Column("y", ColumnKind.NUMERIC, -8, 8),
        Column("treated", ColumnKind.BOOLEAN, 0, 1),
        Column("time", ColumnKind.INTEGER, 0, 50),
    )
)


@pytest.mark.audit
def test_a_fit_of_fifty_periods_is_little_more_than_its_covariance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seed_noise(monkeypatch, "periods")
    monkeypatch.setattr(sys.modules[__name__], "N", 40_000)  # resolves every period
    position = np.arange(N)
    cells = {"y": np.sin(position), "treated": position % 2.0, "time": position % 51.0}
    result, _ = asked(facts_of(PERIODS), Did("y", "treated", "time", start=25.0), cells)
    assert len(result["terms"]) == 53
    assert size(result) - size(result["covariance"]) <= 12_000
    assert size(result) <= 64_000
