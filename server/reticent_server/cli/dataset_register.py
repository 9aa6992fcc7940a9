# SPDX-License-Identifier: Apache-2.0
"""Registers rows that stay where they are: the steps behind `dataset register`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reticent_server.access.secret_places import add_source, place_of
from reticent_server.cli.common import user
from reticent_server.cli.dataset_load import checked_schema
from reticent_server.domain.schema import Schema
from reticent_server.errors import CuratorError
from reticent_server.intake.registering import add_registered
from reticent_server.intake.versions import LoadedVersion, Named
from reticent_server.opening import open_approvals, open_catalog
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.object_store import store_of
from reticent_server.vault.registering import Registration, register_files, register_table
from reticent_server.vault.sql_source import source_url

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where the rows are: a URL and a table, or a directory of Parquet files, also
    s3://BUCKET/PREFIX.
    """

    url: str | None = None
    table: str | None = None
    order: Sequence[str] = ()
    parquet: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is a table. Raises CuratorError where it is neither, or both."""
        files, table = self.parquet is not None, bool(self.url and self.table)
        half = table != bool(self.url or self.table)
        if files == table or half or (files and self.order):
            raise CuratorError("Give either --url and --table (perhaps --order), or --parquet.")
        return table


def register_dataset(
    settings: Settings,
    name: str,
    place: SourcePlace,
    schema_file: Path,
    *,
    population: str | None = None,
    separate: str | None = None,
    publishes: bool = False,
    strict: bool = False,
    progress: Progress = lambda _: None,
) -> LoadedVersion:
    """Makes the rows at `place` the current version of `name`, or changes nothing.

    Options and errors as in load_dataset; no error repeats the URL.
    """
    is_table = place.is_table
    schema = checked_schema(schema_file)
    if any(column.recode.derived for column in schema.columns):
        raise CuratorError(
            "Derived columns are computed when a table is loaded: use `reticent dataset load`, "
            "or a view that has them."
        )
    register = _register_table if is_table else _register_files
    scan = partial(register, settings, place, schema, strict, progress)
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        named = Named(name, population, separate, publishes)
        return add_registered(settings, catalog, approvals, named, schema, scan, by=user())


def _register_files(
    settings: Settings, place: SourcePlace, schema: Schema, strict: bool, progress: Progress
) -> Registration:
    address = place.parquet or ""
    return register_files(address, schema, store_of(settings), strict=strict, progress=progress)


def _register_table(
    settings: Settings, place: SourcePlace, schema: Schema, strict: bool, progress: Progress
) -> Registration:
    secrets = place_of(settings)
    secrets.load()  # before a long scan, after which the URL is kept there
    return register_table(
        lambda url: add_source(secrets, url),
        _absolute(settings, place.url or ""),
        place.table or "",
        schema,
        order=place.order,
        strict=strict,
        progress=progress,
    )


def _absolute(settings: Settings, url: str) -> str:
    """The URL, not relative to the working directory. Raises CuratorError."""
    file = source_url(url).file
    if file is None:
        return url
    try:
        refuse_shared_file(settings.database_url, url)
    except CuratorError:
        raise CuratorError("--url must not be the file at RETICENT_DATABASE_URL.") from None
    return f"sqlite:///{file.resolve()}"
