# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of a data set with what was recorded when they were loaded or registered: the
steps behind `dataset check`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from reticent_server.access.secret_places import place_of, source_url
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.source import LinkedTables, ParquetFiles, Source, SqlTable, VaultTable
from reticent_server.engine.sources import Sources
from reticent_server.errors import CuratorError, SourceAway, Unavailable
from reticent_server.opening import open_catalog
from reticent_server.settings import Settings
from reticent_server.vault import sql_probe
from reticent_server.vault.adbc import Permits
from reticent_server.vault.ingest import wanted_columns
from reticent_server.vault.object_store import store_of
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.parquet_source import pin_files
from reticent_server.vault.sql_source import source_url as read_only

CAUSES = {
    "no_answer": "its database does not answer",
    "no_such_table": "its table, or a column of it, is not there",
    "no_right_to_read": "the role may not read its table",
    "no_such_file": "its files are not all there",
    "not_readable": "its files cannot be opened",
    "no_url_in_the_secrets": "the secrets lack the URL of its database",
}
"""Each cause of errors.SourceAway in words."""


@dataclass(slots=True)
class DatasetCheck:
    """What was found. cause: why the rows cannot be read, in words; empty: they can. rows: how many
    there are now, None where that was not counted. differences: from what was recorded, in
    sentences. bad_cells: by column, how many cells of the recorded rows do not fit the schema; such
    a record contributes nothing to an answer (private)."""

    facts: DatasetFacts
    recorded: int
    cause: str = ""
    rows: int | None = None
    differences: list[str] = field(default_factory=list)
    bad_cells: Counter[str] = field(default_factory=Counter)


def cause_of(sources: Sources, version_id: str) -> str:
    """Why the rows of a version cannot be read now, in words; empty: they can."""
    try:
        sources.probe(version_id)
    except SourceAway as away:
        return CAUSES[away.cause]
    return ""


def sources_of(settings: Settings, catalog: Catalog) -> Sources:
    """The sources of the catalogue's versions, for a command."""
    secrets = place_of(settings)
    return Sources(
        settings.vault_url,
        catalog.source,
        lambda version_id: catalog.facts_of(version_id).schema,
        lambda name: source_url(secrets, name),
        Permits(settings.vault_connections),
        store_of(settings),
    )


def check_dataset(settings: Settings, name: str, progress: Callable[[float], None]) -> DatasetCheck:
    """Opens, counts and compares the current version of a data set. Raises NotFound."""
    with open_catalog(settings) as catalog:
        facts = catalog.facts(name)
        source, sources = catalog.source(facts.version_id), sources_of(settings, catalog)
        found = DatasetCheck(facts, source.n, cause_of(sources, facts.version_id))
        if not found.cause:
            try:
                _compare(found, source, sources, settings)
                if not isinstance(source, LinkedTables):  # whose tables are data sets of their own
                    names = [column.name for column in facts.schema.columns]
                    found.bad_cells = sources.bad_cells(facts.version_id, names, progress)
            except (CuratorError, Unavailable) as error:
                found.differences.append(error.detail)
    return found


def _compare(found: DatasetCheck, source: Source, sources: Sources, settings: Settings) -> None:
    """Compares sizes, files and types of a registered source. Raises CuratorError."""
    wanted = wanted_columns(found.facts.schema)
    match source:
        case ParquetFiles():
            now = pin_files(folder_at(source.directory, store_of(settings)), wanted)
            found.rows = now.n
            added = len({f.name for f in now.files} - {f.name for f in source.files})
            if added:
                found.differences.append(f"{added} files were added later; they are not read.")
        case SqlTable():
            place = read_only(sources.url_of(source.connection))
            now_there = sql_probe.probe(
                place, source.table, source.order, wanted, found.facts.schema
            )
            found.rows = now_there.rows
            forms = {column.name: column.form for column in now_there.columns}
            found.differences += [
                f"Column {column.name} was registered as {column.form} and holds "
                f"{forms[column.name]} now; register the table again."
                for column in source.columns
                if forms[column.name] is not column.form
            ]
        case VaultTable() | LinkedTables():
            found.rows = source.n
    if found.rows != found.recorded:
        words = "more rows than were registered, which are not read"
        fewer = "fewer rows than were registered; the others count as rows without a value"
        found.differences.append(
            f"There are {words if (found.rows or 0) > found.recorded else fewer}."
        )
