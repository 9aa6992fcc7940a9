# SPDX-License-Identifier: Apache-2.0
"""Loads a private file as a new version of a data set: the steps behind `dataset load` and the
console's form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reticent_server.access.approvals import Approvals
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.schema import Schema
from reticent_server.intake.populations import agreed, check_apart, own_population, placed
from reticent_server.intake.versions import LoadedVersion, Named, approve_version, naming_key
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import loading


@dataclass(frozen=True, slots=True)
class FileToLoad:
    """A file and what it is to become. strict: refuse values outside the bounds instead of clipping
    them.
    """

    named: Named
    file: Path
    schema: Schema
    strict: bool = False


def load_file(
    settings: Settings,
    catalog: Catalog,
    approvals: Approvals,
    wanted: FileToLoad,
    *,
    by: str,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Makes the file the current version of its data set, or changes nothing.

    progress: gets the fraction done, again and again. by: who loads it, for the audit trail.
    Raises CuratorError, which may name row and column and quote a cell; SecondPerson,
    PolicyRefused, Conflict.
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    named, schema = wanted.named, wanted.schema
    population = own_population(catalog, named)
    key = naming_key(settings, schema)
    with loading(settings.vault_url, catalog.identity(), catalog.vault_tables) as load:
        schema, places = placed(settings, catalog, named, schema, key)
        loaded = ingest(
            load,
            wanted.file,
            schema,
            strict=wanted.strict,
            progress=progress,
            key=key,
            placing=places,
        )
        agreed(population, named, schema, loaded.n, f"This version of {named.name}")
        check_apart(settings, catalog, population, named.separate, loaded.source)
        approve_version(catalog, approvals, named, schema, loaded.n, by=by)
        facts = catalog.add_version(
            name=named.name,
            population=named.population,
            schema=schema,
            n=loaded.n,
            source=loaded.source,
            by=by,
            separate=named.separate,
        )
    return LoadedVersion(facts, loaded.clipped, loaded.left_out, loaded.outside)
