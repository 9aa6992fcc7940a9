# SPDX-License-Identifier: Apache-2.0
"""Makes rows that stay where they are a new version of a data set: the steps behind `dataset
register` and the console."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from reticent_server.access.approvals import Approvals
from reticent_server.catalog.populations import check_unit
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.schema import Schema
from reticent_server.errors import CuratorError
from reticent_server.intake.loading import FileToLoad
from reticent_server.intake.populations import agreed, check_apart, own_population
from reticent_server.intake.versions import LoadedVersion, Named, approve_version
from reticent_server.settings import Settings
from reticent_server.vault.registering import Registration, register_files

_PERSONS = (
    "Rows of persons are kept in the vault, in the order of persons: use `reticent dataset load`."
)
_PLACES = (
    "The population has places for its persons, which rows that stay where they are do not take: "
    "use `reticent dataset load`."
)


def add_registered(
    settings: Settings,
    catalog: Catalog,
    approvals: Approvals,
    named: Named,
    schema: Schema,
    scan: Callable[[], Registration],
    *,
    by: str,
) -> LoadedVersion:
    """Adds what `scan` has found good in every cell, or changes nothing. Raises CuratorError,
    SecondPerson, PolicyRefused, Conflict."""
    if schema.unit.many_rows:
        raise CuratorError(_PERSONS)
    population = own_population(catalog, named)
    check_unit(population, schema.unit, named.name)
    if population.spine is not None and schema.unit.column is not None:
        raise CuratorError(_PLACES)
    registration = scan()
    n = registration.source.n
    agreed(population, named, schema, n, f"This version of {named.name}")
    check_apart(settings, catalog, population, named.separate, registration.source)
    approve_version(catalog, approvals, named, schema, n, by=by)
    facts = catalog.add_version(
        name=named.name,
        population=named.population,
        schema=schema,
        n=n,
        source=registration.source,
        by=by,
        separate=named.separate,
    )
    return LoadedVersion(facts, registration.clipped)


def register_folder(
    settings: Settings, catalog: Catalog, approvals: Approvals, wanted: FileToLoad, *, by: str
) -> LoadedVersion:
    """Registers a folder of Parquet files. Raises as `add_registered`."""
    if _leads_out(wanted.file):
        raise CuratorError(_LINK.format(wanted.file.name))
    scan = partial(register_files, wanted.file, wanted.schema, strict=wanted.strict)
    return add_registered(settings, catalog, approvals, wanted.named, wanted.schema, scan, by=by)


def folders(root: Path | None) -> list[Path]:
    """The folders of Parquet files in `root`, the only ones that a curator may name in a browser;
    None: none."""
    if root is None or not root.is_dir():
        return []
    inside = (each for each in sorted(root.iterdir()) if each.is_dir() and not each.is_symlink())
    return [
        each
        for each in inside
        if next(each.glob("*.parquet"), None) is not None and not _leads_out(each)
    ]


_LINK = (
    "A Parquet file of the folder {} is a link to somewhere else, which is not followed: copy the "
    "file."
)


def _leads_out(folder: Path) -> bool:
    """Whether a file of the folder is a symbolic link that leads out of it."""
    own = folder.resolve()
    return any(own not in file.resolve().parents for file in folder.glob("*.parquet"))
