# SPDX-License-Identifier: Apache-2.0
"""Questions about features of persons: from a query's `persons` to the public facts of a table with
one row a person.

Free, and reads no private cell.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.persons import PersonView
from reticent_server.domain.query import Query, query_json
from reticent_server.errors import InvalidQuery
from reticent_server.formula.features import parse_view

_LINKED = (
    "This data set links several tables: ask about features of a person, with `persons`, such as "
    "count(visits)."
)
_OUTSIDE = "Give `persons` beside the question's kind, not inside its model."
_ROW_NANOSECONDS = 1_000
"""Of a row for one feature: measured 90 to 410 for reading, sorting and adding; twice the most for
a busy machine."""


def view_of(facts: DatasetFacts, query: Query) -> PersonView | None:
    """The view that a query asks about; None for one about rows. Raises InvalidQuery,
    InvalidFormula."""
    asked = query_json(query)
    inner = [value for value in asked.values() if isinstance(value, dict) and "kind" in value]
    if any("persons" in value for value in inner if value is not asked.get("persons")):
        raise InvalidQuery(_OUTSIDE)
    if query.persons is not None:
        return parse_view(query.persons, facts.schema)
    if facts.schema.tables:
        raise InvalidQuery(_LINKED)
    return None


def facts_of_persons(facts: DatasetFacts, view: PersonView) -> DatasetFacts:
    """The same version's facts as a table with one row a person; the profile is of rows, so there
    is none."""
    return replace(facts, schema=view.schema, profile=None)


def reading_ms(facts: DatasetFacts, view: PersonView) -> int:
    """The planned time of making the view, from N and the largest number of rows a person."""
    named = sum(table.max_rows for table in facts.schema.tables)  # whose persons are looked up
    rows = facts.n * (named + sum(_rows(facts, f.table) for f in view.features))
    return ceil(rows * _ROW_NANOSECONDS / 10**6)


def _rows(facts: DatasetFacts, table: str | None) -> int:
    of: Mapping[str | None, int] = {t.name: t.max_rows for t in facts.schema.tables}
    return of.get(table, facts.schema.unit.max_rows)
