# SPDX-License-Identifier: Apache-2.0
"""What every way to a new version shares: its schema, a second person's approval, the naming of
persons."""

from collections.abc import Mapping
from dataclasses import dataclass

from reticent_server.access.approvals import Approvals
from reticent_server.access.secret_places import persons_key, place_of
from reticent_server.catalog.json_values import schema_to_json
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Schema
from reticent_server.errors import CuratorError, InvalidRequest
from reticent_server.formula.derived import with_derived
from reticent_server.formula.features import parse_view
from reticent_server.pipeline.second_person import require
from reticent_server.settings import Settings


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """For the curator's eyes only: clipped, by column, how many values were outside the bounds;
    left_out, how many rows beyond `max_rows` of a person; outside, how many persons have no place
    in the population."""

    facts: DatasetFacts
    clipped: Mapping[str, int]
    left_out: int = 0
    outside: int = 0


@dataclass(frozen=True, slots=True)
class Named:
    """Which data set, and whose budget; population None: the one that the name has, else the name.

    separate: a reason why the population is kept separate from others about some of the same
    persons; None: it has none. publishes: whether the curator has agreed that a number of persons
    is published which is not declared."""

    name: str
    population: str | None = None
    separate: str | None = None
    publishes: bool = False


def checked(schema: Schema) -> Schema:
    """The schema with its derived columns, if these and its features of a person can be read.
    Raises CuratorError."""
    try:
        schema = with_derived(schema)
    except InvalidRequest as error:
        raise CuratorError(f"`derive`: {error.detail}") from None
    try:
        if schema.features:
            parse_view({}, schema)
    except InvalidRequest as error:
        raise CuratorError(f"`persons`: {error.detail}") from None
    return schema


def naming_key(settings: Settings, schema: Schema) -> bytes:
    """The key under which the vault names persons and files; empty where rows are nobody's and
    secrets cannot be written."""
    try:
        return persons_key(place_of(settings))
    except CuratorError:
        if schema.unit.column is None:
            return b""
        raise


def approve_version(
    catalog: Catalog, approvals: Approvals, named: Named, schema: Schema, n: int, *, by: str
) -> None:
    """Before a version is made: passes where no second person is asked for, or one has approved
    this schema and number of records. Raises SecondPerson, PolicyRefused."""
    population = catalog.population_for(named.name, named.population)
    wish = {"name": named.name, "n": n, "schema": schema_to_json(schema)}
    wish |= {"separate": named.separate} if named.separate else {}
    require(catalog, approvals, "load", population, wish, by=by)
