# SPDX-License-Identifier: Apache-2.0
"""Links tables about the same persons as one data set: the steps behind `dataset link`."""

import re
from collections.abc import Mapping
from dataclasses import replace

from reticent_server.catalog.populations import Population
from reticent_server.catalog.repository import Catalog
from reticent_server.cli.common import user
from reticent_server.cli.dataset_load import approve_load
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import LinkedTable, Schema, Unit
from reticent_server.domain.source import LinkedTables, NamedTable, VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.intake.populations import agreed, own_population
from reticent_server.intake.versions import LoadedVersion, Named
from reticent_server.opening import open_catalog
from reticent_server.settings import Settings
from reticent_server.vault.adbc import parse_url
from reticent_server.vault.person_tables import number_of_persons

MOST_TABLES = 16
"""Each is read whole for the places of its persons."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")
_BAD_NAMES = (
    f"Give 2 to {MOST_TABLES} tables as --table NAME=DATASET, each name once: a letter or _ "
    "followed by up to 30 letters, "
    "digits or _."
)


def link_datasets(
    settings: Settings, name: str, tables: Mapping[str, str], *, publishes: bool = False
) -> LoadedVersion:
    """Makes the current versions of `tables` (data sets by their names in the link) the next
    version of `name`.

    publishes: whether the number of persons in any of the tables may be published, where the
    population declares no places. Raises CuratorError where they are not loaded tables of one
    population, whose unit is the same column.
    """
    if not (2 <= len(tables) <= MOST_TABLES and all(map(_NAME.fullmatch, tables))):
        raise CuratorError(_BAD_NAMES)
    with open_catalog(settings) as catalog:
        facts = {alias: catalog.facts(dataset) for alias, dataset in tables.items()}
        parts = tuple(_named(catalog, alias, found) for alias, found in facts.items())
        population = _population(facts, parts)
        schema = _schema(facts)
        named = Named(name, population, publishes=publishes)
        own = own_population(catalog, named)
        source = _source(settings, own, parts)
        agreed(own, named, schema, source.n, f"Linked as {name}, the tables")
        approve_load(settings, catalog, named, schema, source.n)
        made = catalog.add_version(
            name=name,
            population=population,
            schema=schema,
            n=source.n,
            source=source,
            by=user(),
        )
    return LoadedVersion(made, {})


def _named(catalog: Catalog, alias: str, facts: DatasetFacts) -> NamedTable:
    source = catalog.source(facts.version_id)
    if not isinstance(source, VaultTable) or not source.names:
        raise CuratorError(
            f"{facts.name} cannot be linked: load it with `reticent dataset load` and a unit "
            "that is a column."
        )
    return NamedTable(alias, facts.name, facts.version, source)


def _population(facts: Mapping[str, DatasetFacts], parts: tuple[NamedTable, ...]) -> str:
    """The one population of all. Raises CuratorError."""
    populations = {found.population for found in facts.values()}
    units = {found.schema.unit.column for found in facts.values()}
    if len(populations) > 1 or len(units) > 1:
        raise CuratorError(
            "Linked tables are about the same persons: load them with the same --population, and "
            "with the same "
            "column as unit."
        )
    if len({part.table.names for part in parts}) > 1:
        raise CuratorError(
            "The tables' persons are named under different keys; load them again, with one "
            "secrets file."
        )
    return populations.pop()


def _schema(facts: Mapping[str, DatasetFacts]) -> Schema:
    """All columns, named `table.column`; m is the largest of a table."""
    units = {alias: found.schema.unit for alias, found in facts.items()}
    columns = tuple(
        replace(column, name=f"{alias}.{column.name}")
        for alias, found in facts.items()
        for column in found.schema.columns
    )
    described = "; ".join(f"{a}: {f.schema.description or f.name}" for a, f in facts.items())
    key = next(iter(units.values())).column
    return Schema(
        columns,
        Unit(key, max(unit.max_rows for unit in units.values())),
        described,
        tables=tuple(LinkedTable(alias, unit.max_rows) for alias, unit in units.items()),
    )


def _source(
    settings: Settings, population: Population, parts: tuple[NamedTable, ...]
) -> LinkedTables:
    """The tables in the population's places, or with the persons of all, where it declares none.
    Raises CuratorError.
    """
    spine = population.spine
    if spine is None:
        return LinkedTables(_persons(settings, parts), parts)
    for part in parts:
        if spine.grows and part.table.spine != spine.id:
            raise CuratorError(
                f"{part.dataset} was loaded before the population had places; load it again, "
                "then link."
            )
    return LinkedTables(spine.n, parts, spine)


def _persons(settings: Settings, parts: tuple[NamedTable, ...]) -> int:
    """N: how many persons there are in any of the tables."""
    vault = parse_url(settings.vault_url)
    try:
        return number_of_persons(vault, [part.table for part in parts])
    except Unavailable:
        raise CuratorError("The tables cannot be read; nothing was linked.") from None
