# SPDX-License-Identifier: Apache-2.0
"""What a planning process is asked for (pipeline.planner): functions of public values.

The module imports no services, tables or accounts: a process takes the memory of all that it
imports, of which it would need nothing, and what it plans with can reach no private cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reticent_server.domain.cost import EPSILON_UNITS, from_units
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.errors import NO_DATASET, ReticentError
from reticent_server.ledger.model import Standing
from reticent_server.pipeline import defaults, planning
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.both_targets import other_target
from reticent_server.pipeline.documents import Json, plan_json
from reticent_server.pipeline.wanted import Wanted, least_plan


def plan_for(facts: DatasetFacts, ask: Ask, standing: Standing, wanted: Wanted | None) -> Plan:
    """The plan of an ask; wanted: of the least ε, up to the ask's, that gives these widths."""

    def planned(epsilon: float) -> Plan:
        privacy = replace(ask.privacy, epsilon=epsilon)
        return defaults.planned(facts, replace(ask, privacy=privacy), standing)[1]

    epsilon = ask.privacy.epsilon
    if wanted is None:
        return planned(epsilon)
    highest = min(epsilon, facts.policy.max_epsilon or epsilon)
    delta = ask.privacy.delta or facts.default_delta
    return least_plan(planned, wanted, delta, highest)


def plan_and_document(
    facts: DatasetFacts, ask: Ask, standing: Standing, wanted: Wanted | None, target: float | None
) -> tuple[Plan, Json]:
    """The plan, and the same as JSON with its forecast, whose target is a ratio."""
    ready = plan_for(facts, ask, standing, wanted)
    other = other_target(ready, partial(defaults.planned_instead, facts, ask, standing))
    return ready, plan_json(ready, standing, target, other)


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A query of a plan that was attached to a request. epsilon: what it would cost; None: it is
    refused, for `refusal`."""

    dataset: str
    query: Mapping[str, Any]
    epsilon: float | None
    refusal: str


def plan_lines(
    items: Sequence[Mapping[str, Any]], facts: Mapping[str, DatasetFacts]
) -> tuple[PlanLine, ...]:
    """What each of the attached queries would cost. facts: by data set."""
    return tuple(_line(item, facts.get(item["dataset"])) for item in items)


def _line(item: Mapping[str, Any], facts: DatasetFacts | None) -> PlanLine:
    if facts is None:
        return PlanLine(item["dataset"], item["query"], None, NO_DATASET)
    try:
        ask = Ask.from_canonical(item)
        cost = planning.plan(facts, ask.query, ask.privacy).cost
    except ReticentError as error:
        return PlanLine(item["dataset"], item["query"], None, error.detail)
    return PlanLine(item["dataset"], item["query"], from_units(cost.epsilon, EPSILON_UNITS), "")
