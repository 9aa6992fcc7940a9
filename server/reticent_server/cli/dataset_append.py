# SPDX-License-Identifier: Apache-2.0
"""Appends a new wave of rows to a data set: the steps behind `dataset append`."""

from collections.abc import Callable
from pathlib import Path

from reticent_server.cli.common import user
from reticent_server.cli.dataset_load import approve_load
from reticent_server.domain.source import VaultTable
from reticent_server.errors import CuratorError
from reticent_server.intake.populations import agreed, check_apart, own_population, placed
from reticent_server.intake.versions import LoadedVersion, Named, naming_key
from reticent_server.opening import open_catalog
from reticent_server.settings import Settings
from reticent_server.vault.adbc import refuse_shared_file
from reticent_server.vault.appending import Wave, append
from reticent_server.vault.loading import loading

_NOT_LOADED = (
    "Only rows that `reticent dataset load` has put into the vault are appended to; register or "
    "link the data set again."
)


def append_dataset(
    settings: Settings,
    name: str,
    file: Path,
    *,
    separate: str | None = None,
    publishes: bool = False,
    strict: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> LoadedVersion:
    """Makes the current version's rows and those of `file` the next version, or changes nothing.

    The schema and the population stay. Options and errors as in load_dataset.
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    with open_catalog(settings) as catalog:
        now = catalog.facts(name)
        source = catalog.source(now.version_id)
        if not isinstance(source, VaultTable):
            raise CuratorError(_NOT_LOADED)
        named = Named(name, None, separate, publishes)
        population = own_population(catalog, named)
        key = naming_key(settings, now.schema)
        with loading(settings.vault_url, catalog.identity(), catalog.vault_tables) as load:
            schema, places = placed(settings, catalog, named, now.schema, key)
            loaded = append(load, source, schema, Wave(file, strict, key, progress, places))
            agreed(population, named, schema, loaded.n, f"The next version of {name}")
            check_apart(settings, catalog, population, named.separate, loaded.source)
            approve_load(settings, catalog, named, schema, loaded.n)
            facts = catalog.add_version(
                name=name,
                population=None,
                schema=schema,
                n=loaded.n,
                source=loaded.source,
                by=user(),
                separate=separate,
            )
    return LoadedVersion(facts, loaded.clipped, loaded.left_out, loaded.outside)
