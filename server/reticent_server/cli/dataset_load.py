# SPDX-License-Identifier: Apache-2.0
"""`dataset load`: opens what the load needs, with the schema of a file."""

from collections.abc import Callable
from pathlib import Path

from reticent_server.catalog.repository import Catalog
from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli.common import user
from reticent_server.domain.schema import Schema
from reticent_server.intake.loading import FileToLoad, load_file
from reticent_server.intake.versions import LoadedVersion, Named, approve_version, checked
from reticent_server.opening import open_approvals, open_catalog
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.files import FileFormat


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
    as_format: FileFormat | None = None,
    strict: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Loads `file` with the schema of `schema_file`, as load_file does."""
    refuse_shared_file(settings.database_url, settings.vault_url)
    schema = checked_schema(schema_file)
    named = Named(name, population, separate, publishes)
    wanted = FileToLoad(named, file, schema, as_format, strict)
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        return load_file(settings, catalog, approvals, wanted, by=user(), progress=progress)
