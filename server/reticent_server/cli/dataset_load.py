# SPDX-License-Identifier: Apache-2.0
"""`dataset load`: opens what the load needs, with the schema of a file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reticent_server.catalog.repository import Catalog
from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli.common import user
from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.domain.schema import Schema
from reticent_server.intake.apart import OWN_LIMITS, LoadApart, loaded_apart
from reticent_server.intake.loading import FileToLoad, load_file
from reticent_server.intake.versions import LoadedVersion, Named, approve_version, checked
from reticent_server.opening import open_approvals, open_catalog
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.files import reader_of


def approve_load(
    settings: Settings,
    catalog: Catalog,
    named: Named,
    schema: Schema,
    n: int,
) -> None:
    """As approve_version, by whoever runs the command."""
    with open_approvals(settings) as approvals:
        approve_version(catalog, approvals, named, schema, n, by=user())


def checked_schema(path: Path) -> Schema:
    """The schema of a file, whose features of a person can be read. Raises CuratorError."""
    return checked(read_schema(path))


def load_dataset(
    settings: Settings,
    name: str,
    file: Path,
    schema_file: Path,
    *,
    population: str | None = None,
    separate: str | None = None,
    publishes: bool = False,
    reading: Reading = UNSAID,
    strict: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Loads `file` with the schema of `schema_file`, as load_file does. reading: how the file is
    read, over what the schema says.

    A file that a library of another format takes apart is loaded in a cell (intake.cell).
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    schema = checked_schema(schema_file)
    schema = replace(schema, reading=reading.over(schema.reading))
    named = Named(name, population, separate, publishes)
    wanted = FileToLoad(named, file, schema, strict)
    if reader_of(file, schema.reading).is_foreign:
        return _loaded_in_cell(settings, wanted)
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        return load_file(settings, catalog, approvals, wanted, by=user(), progress=progress)


def _loaded_in_cell(settings: Settings, wanted: FileToLoad) -> LoadedVersion:
    stored = loaded_apart(LoadApart(settings, wanted, stays=False, by=user()), OWN_LIMITS)
    with open_catalog(settings) as catalog:
        facts = catalog.facts_of(stored.version_id)
    return LoadedVersion(facts, stored.clipped, stored.left_out, stored.outside)
