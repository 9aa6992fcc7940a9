# SPDX-License-Identifier: Apache-2.0
"""Loads a private file as a new version of a data set: the steps behind `dataset load`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reticent_server.access.secret_places import persons_key, place_of
from reticent_server.catalog.json_values import schema_to_json
from reticent_server.catalog.repository import Catalog
from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli.common import user
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Schema
from reticent_server.errors import CuratorError, InvalidRequest
from reticent_server.formula.derived import with_derived
from reticent_server.formula.features import parse_view
from reticent_server.opening import open_approvals, open_catalog
from reticent_server.pipeline.second_person import require as require_second
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.files import FileFormat
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import loading


def approve_load(
    settings: Settings,
    catalog: Catalog,
    named: tuple[str, str | None],
    schema: Schema,
    n: int,
) -> None:
    """Before a version is made: passes where no second person is asked for, or one has approved this
    schema and number of records. named: data set and population. Raises SecondPerson, PolicyRefused."""
    name, asked = named
    population = catalog.population_for(name, asked)
    wish = {"name": name, "n": n, "schema": schema_to_json(schema)}
    with open_approvals(settings) as approvals:
        require_second(catalog, approvals, "load", population, wish, by=user())


def checked_schema(path: Path) -> Schema:
    """The schema of a file, whose features of a person can be read. Raises CuratorError."""
    schema = read_schema(path)
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
    """The key under which the vault names persons; empty where rows are nobody's."""
    return b"" if schema.unit.column is None else persons_key(place_of(settings))


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """For the curator's eyes only: clipped, by column, how many values were outside the bounds; left_out, how many
    rows beyond `max_rows` of a person."""

    facts: DatasetFacts
    clipped: Mapping[str, int]
    left_out: int = 0


def load_dataset(
    settings: Settings,
    name: str,
    file: Path,
    schema_file: Path,
    *,
    population: str | None = None,
    as_format: FileFormat | None = None,
    strict: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Loads `file` and makes it the current version of `name`, or changes nothing.

    population: None keeps the one that the name has (a new name: its own). as_format: None for what the file begins with. strict: refuse values
    outside the bounds instead of clipping them. progress: gets the fraction done, again and again.
    Raises CuratorError, which may name row and column.
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    schema = checked_schema(schema_file)
    with open_catalog(settings) as catalog:
        catalog.population_for(name, population)
        with loading(settings.vault_url, catalog.identity(), catalog.vault_tables) as load:
            loaded = ingest(
                load,
                file,
                schema,
                as_format=as_format,
                strict=strict,
                progress=progress,
                key=naming_key(settings, schema),
            )
            approve_load(settings, catalog, (name, population), schema, loaded.n)
            facts = catalog.add_version(
                name=name,
                population=population,
                schema=schema,
                n=loaded.n,
                source=loaded.source,
                by=user(),
            )
    return LoadedVersion(facts, loaded.clipped, loaded.left_out)
