# SPDX-License-Identifier: Apache-2.0
"""What every way to a new version asks of its population: its unit, its places, and whose persons
they are elsewhere."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reticent_server.access.secret_places import place_of
from reticent_server.catalog.populations import Population, check_unit
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.schema import Schema
from reticent_server.domain.source import ParquetFiles, Source, SqlTable, VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.intake.versions import Named
from reticent_server.settings import Settings
from reticent_server.vault.adbc import VaultUrl, parse_url
from reticent_server.vault.names import fingerprint
from reticent_server.vault.placing import Placing, persons_of, placing

MOST_REASON = 950
"""Characters of a reason: some sentences, in a column of 1,000 with its salt."""

_OTHER_KEY = (
    "The population's persons are named under another key than the secrets file's, so that their "
    "places cannot be found. Restore the key; if it is lost, declare the places anew with "
    "`reticent population renew`, which frees no budget."
)
_UNREADABLE = (
    "The rows of another population cannot be read, so that persons of both cannot be found; "
    "nothing was loaded."
)


def own_population(catalog: Catalog, named: Named) -> Population:
    """The population that a load belongs to, made or not. Raises CuratorError."""
    check_reason(named.separate)
    return catalog.population(catalog.population_for(named.name, named.population))


def check_reason(reason: str | None) -> None:
    """Raises CuratorError for one that says nothing, or is too long to be kept."""
    if reason is not None and not 1 <= len(reason.strip()) <= MOST_REASON:
        raise CuratorError(
            f"A reason to keep a population separate has 1 to {MOST_REASON} characters."
        )


def placed(
    settings: Settings, catalog: Catalog, named: Named, schema: Schema, key: bytes
) -> tuple[Schema, Placing | None]:
    """The schema as the population's places make it, and these; None where the table has an order
    of its own.

    Raises CuratorError for another unit than the population's, or places that cannot be read.
    """
    population = own_population(catalog, named)
    check_unit(population, schema.unit, named.name)
    spine = population.spine
    if schema.unit.column is None or spine is None:
        return schema, None
    one_row = not schema.unit.several_rows
    is_complete = one_row and not spine.grows and spine.dataset == named.name
    vault, tables = parse_url(settings.vault_url), _vault_tables(catalog, population.name)
    named_so = [
        t.names for t in (*tables, *([spine.table] if spine.table else [])) if t.spine == spine.id
    ]
    if set(named_so) - {fingerprint(key)}:
        raise CuratorError(_OTHER_KEY)
    found = placing(vault, spine, tables, is_complete=is_complete)
    unit = replace(schema.unit, gaps=one_row and not is_complete)
    return replace(schema, unit=unit), found


def agreed(population: Population, named: Named, schema: Schema, n: int, what: str) -> None:
    """Passes where `n` is declared, or is the first number that is published of the population's
    persons, or the curator has agreed to publish it. Raises CuratorError, which says what would be
    published."""
    if schema.unit.column is None or population.spine is not None or named.publishes:
        return
    if not population.datasets:
        return
    raise CuratorError(
        f"{what} would publish n = {n}, a number of persons that is not declared: beside the "
        "sizes of the other tables and "
        f"versions of population {population.name} it says how many persons are in one and not "
        "in another, exactly. Declare the "
        f"population's places (`reticent population add {population.name} --table DATASET`, "
        "--register or --capacity), "
        "or agree with --publish-count. Nothing was changed."
    )


def check_apart(
    settings: Settings, catalog: Catalog, own: Population, reason: str | None, source: Source
) -> None:
    """Raises CuratorError, for the curator alone, where persons or the file are in another
    population, or may be, as they are named there under a key that is lost, and there is no reason
    why `own` is kept separate. What may be the same needs a reason for each table."""
    if reason:
        return
    lost = catalog.has_renewed_secrets()
    known_urls = frozenset(place_of(settings).load().sources)
    for other, sources in catalog.sources_by_population().items():
        if other != own.name:
            shared = _maybe_shared(source, sources, known_urls, lost=lost)
            if not shared and not own.separate:
                shared = _shared(parse_url(settings.vault_url), source, sources)
            if shared:
                raise CuratorError(
                    f"{shared} in population {other}, too (private: for the curator only), and a "
                    "population of its own would give "
                    f"them a second budget. Use --population {other}, or say with "
                    "--overlap-reason why they are kept separate; the "
                    "reason is kept with the population, for curators alone. Nothing was changed."
                )


def _maybe_shared(
    source: Source, others: Iterable[Source], known_urls: Collection[str], *, lost: bool
) -> str:
    """What a source may share with those of another population, as nobody can tell without the
    secrets that they were named under; empty: nothing. known_urls: the names of databases whose
    URLs the secrets have. lost: whether older secrets are gone."""
    if isinstance(source, SqlTable):
        gone = any(isinstance(o, SqlTable) and o.connection not in known_urls for o in others)
        return "Tables whose database is not known any more, and may be this one, are" * gone
    if not isinstance(source, VaultTable):
        return ""
    tables = [other for other in others if isinstance(other, VaultTable)]
    if source.names and any(t.names not in {"", source.names} for t in tables):
        return "Persons who are named under another key, and so may be the same, are"
    own, _, _ = source.mark.rpartition(":")
    keys = {t.mark.rpartition(":")[0] for t in tables if t.mark}
    if source.mark and keys - ({own} if lost else {own, ""}):
        return "Files that were marked under another key, and so may be the same, are"
    return ""


def _shared(vault: VaultUrl, source: Source, others: Iterable[Source]) -> str:
    """What a source shares with those of another population, in words; empty: nothing that can be
    found."""
    if not isinstance(source, VaultTable):
        return "The rows are" if any(_same_place(source, other) for other in others) else ""
    tables = list({t.table: t for t in others if isinstance(t, VaultTable)}.values())
    # the mark of an earlier version has no fingerprint of its key before the hash
    if source.mark and any(t.mark and source.mark.endswith(t.mark) for t in tables):
        return "The same file is"
    tables = [table for table in tables if table.names and source.names]
    shared = _persons_in_both(vault, source, tables)
    return f"{shared} of the table's persons are" if shared else ""


def _same_place(source: Source, other: Source) -> bool:
    match source, other:
        case SqlTable(), SqlTable():
            return (source.connection, source.table) == (other.connection, other.table)
        case ParquetFiles(), ParquetFiles():
            return source.directory == other.directory
        case _:
            return False


def _persons_in_both(vault: VaultUrl, source: VaultTable, tables: Sequence[VaultTable]) -> int:
    if not tables:
        return 0
    try:
        own, _ = persons_of(vault, source)
        known = np.concatenate([persons_of(vault, table)[0] for table in tables])
    except Unavailable:
        raise CuratorError(_UNREADABLE) from None
    return int(np.count_nonzero(np.isin(own, known)))


def _vault_tables(catalog: Catalog, population: str) -> list[VaultTable]:
    sources: Mapping[str, Sequence[Source]] = catalog.sources_by_population()
    return [source for source in sources.get(population, ()) if isinstance(source, VaultTable)]
