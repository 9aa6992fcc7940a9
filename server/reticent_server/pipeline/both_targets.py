# SPDX-License-Identifier: Apache-2.0
"""The forecast of a question's other target beside its own: least squares beside robust, maximum
likelihood beside robust.

A second plan at the same (ε, δ), from public facts, within the same piece of free work as the
first. Where it cannot be made (the other target has no such mechanism, or time is up) there is
none, and the first is as it would be without.
"""

from collections.abc import Callable
from typing import Any

from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy, Query, query_json
from reticent_server.errors import InvalidFormula, InvalidPrivacy, InvalidQuery, PolicyRefused
from reticent_server.pipeline.wanted import precision_json

_NOT_PLANNED = (InvalidQuery, InvalidFormula, InvalidPrivacy, PolicyRefused)


def other_target(ready: Plan, planned: Callable[[Query, Privacy], Plan]) -> Plan | None:
    """The plan of the same model with the other target; None where the kind has one only."""
    other = ready.query.other_target()
    if other is None:
        return None
    try:
        return planned(other, Privacy(ready.epsilon, ready.delta))
    except _NOT_PLANNED:
        return None


def other_target_json(other: Plan | None) -> dict[str, Any] | None:
    """As it stands in a plan's document."""
    if other is None:
        return None
    return {
        "answers": other.planned.answers,
        "query": query_json(other.query),
        "precision": precision_json(other),
    }
