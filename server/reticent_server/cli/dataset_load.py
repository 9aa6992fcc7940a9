"""Loads a private file as a new version of a data set: the steps behind `dataset load`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reticent_server.app import open_catalog
from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli.common import user
from reticent_server.domain.facts import DatasetFacts
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import loading


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """clipped: by column, how many values were outside the bounds; for the curator's eyes only."""

    facts: DatasetFacts
    clipped: Mapping[str, int]


def load_dataset(
    settings: Settings,
    name: str,
    file: Path,
    schema_file: Path,
    *,
    population: str | None = None,
    strict: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Loads `file` and makes it the current version of `name`, or changes nothing.

    population: None keeps the one that the name has (a new name: its own). strict: refuse values
    outside the bounds instead of clipping them. progress: gets the fraction done, again and again.
    Raises CuratorError, which may name row and column.
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    schema = read_schema(schema_file)
    with open_catalog(settings) as catalog:
        catalog.population_for(name, population)
        with loading(settings.vault_url, catalog.identity(), catalog.vault_tables) as load:
            loaded = ingest(load, file, schema, strict=strict, progress=progress)
            facts = catalog.add_version(
                name=name,
                population=population,
                schema=schema,
                n=loaded.source.n,
                source=loaded.source,
                by=user(),
            )
    return LoadedVersion(facts, loaded.clipped)
