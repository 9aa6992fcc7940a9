# SPDX-License-Identifier: Apache-2.0
"""The kinds by name, and by question. The list is kinds.KINDS; nothing else knows which kinds there
are."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from reticent_server import kinds
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.patience import checkpoint
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query, query_json
from reticent_server.errors import InvalidQuery, UnknownColumn
from reticent_server.formula.excluded import restricted
from reticent_server.kinds.base import Kind

ROWS_ALIKE = (
    "Its standard errors would take the rows of one person as independent, and be too small. Ask "
    "about features of persons "
    "instead (`persons`, such as mean(x) or last(x, by=t)): that is a table of one row a person."
)


def by_name() -> Mapping[str, Kind[Any]]:
    """All kinds."""
    return {kind.name: kind for kind in kinds.KINDS}


def kind_of(query: Query) -> Kind[Any]:
    """The kind of a question."""
    return by_name()[query.kind]


def plan(facts: DatasetFacts, query: Query, offer: PrivacyCost) -> Planned:
    """The plan of a question. offer: the (ε, δ) that was asked for, and the ρ that it allows.

    What a question's condition excludes by its text is not in the question: its kind sees the
    columns without (formula.excluded). Raises InvalidQuery for what takes rows as independent,
    where the unit has several.
    """
    checkpoint()
    places = restricted(facts.of_places(), query_json(query).get("where"))
    try:
        planned = kind_of(query).plan(places, query, offer)
    except UnknownColumn as unknown:
        field = _field_with(query, unknown.column) or "The question"
        raise UnknownColumn(unknown.column, field) from None
    if places.persons is not None and not planned.holds_for_persons:
        raise InvalidQuery(ROWS_ALIKE)
    return planned


def _field_with(query: Query, column: str) -> str:
    """The field of a question that names a column; of a question inside it, with a dot; empty:
    none does, since a text names it."""
    for each in fields(query):
        value = getattr(query, each.name)
        if isinstance(value, Query) and (inner := _field_with(value, column)):
            return f"{each.name}.{inner}"
        named = (value,) if isinstance(value, str) else value
        if isinstance(named, tuple) and column in named:
            return each.name
    return ""


def stored_query(fields: Mapping[str, Any]) -> Query:
    """A question as it was stored (domain.query.query_json). It was held to its limits when it was
    asked."""
    values = {name: _stored(value) for name, value in fields.items() if name != "kind"}
    query: Query = by_name()[fields["kind"]].query(**values)
    return query


def _stored(value: Any) -> Any:
    """JSON's lists as tuples, and a question inside a question as a question."""
    if isinstance(value, list):
        return tuple(_stored(each) for each in value)
    if isinstance(value, dict) and value.get("kind") in by_name():
        return stored_query(value)
    return value
