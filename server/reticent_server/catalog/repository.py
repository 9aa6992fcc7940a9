# SPDX-License-Identifier: Apache-2.0
"""All the catalogue's SQL: data sets, their versions, profiles and policies.

A data set's name may be loaded again, which makes a new version; its population, which owns the
budgets, is fixed for ever at the first load. Old versions stay, because releases refer to them.

Every change is recorded in the chain, and every row is held against the chain before it is used: a
bound that was edited in the database makes no plan, and opens no reader.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Connection,
    CursorResult,
    Engine,
    RowMapping,
    Select,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from reticent_server.catalog import populations, publications
from reticent_server.catalog.json_values import (
    policy_from_json,
    policy_to_json,
    profile_from_json,
    profile_to_json,
    schema_from_json,
    schema_to_json,
    source_from_json,
    source_to_json,
)
from reticent_server.catalog.populations import Population
from reticent_server.catalog.tables import catalog_identity, dataset_versions, datasets
from reticent_server.chain.acts import DIFFERS, Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.chain.repository import happened, last_about
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.facts import DatasetFacts, Policy, Profile
from reticent_server.domain.schema import Schema
from reticent_server.domain.source import Source, Spine, VaultTable
from reticent_server.errors import NO_DATASET, Conflict, CuratorError, NotFound, Unavailable

CATALOG = "reticent"
"""Who acts where nobody does: the catalogue names itself at the first load."""

RENEWED = "secrets.renew"
"""The act by which an installation goes on without the secrets under which its files and persons
were named."""

_OTHER_PLACES = "The population's places were changed meanwhile; load or link again."

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

_FACTS = select(
    datasets,
    dataset_versions,
    last_about(datasets, datasets.c.name).label("dataset_entry"),
    last_about(dataset_versions, dataset_versions.c.id).label("version_entry"),
).join(dataset_versions, dataset_versions.c.dataset == datasets.c.name)


class Catalog:
    """Public facts of the data sets; one instance may serve many threads.

    by: who acts, for the chain, as "cli:NAME". Every read raises Unavailable where a row is not as
    the chain says.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._recorded = RecordedRows()

    def identity(self) -> str:
        """A random name of this catalogue, made once: the vault's tables carry it."""
        query = select(catalog_identity.c.identity)
        with writing(self._engine) as connection:
            known: str | None = connection.scalar(query)
            if known is None:
                known = secrets.token_hex(6)
                connection.execute(insert(catalog_identity).values(singleton=1, identity=known))
                self._record(connection, [Change("catalogue.add", catalog_identity, (1,))], CATALOG)
            return known

    def renew_secrets(self, reason: str, *, by: str) -> None:
        """Records that the secrets were lost and new ones made."""
        self.identity()
        with writing(self._engine) as connection:
            act = Change(RENEWED, catalog_identity, (1,), {"reason": reason})
            self._record(connection, [act], by)

    def has_renewed_secrets(self) -> bool:
        """Whether the secrets were ever lost, so that older tables are named under another key."""
        with reading(self._engine) as connection:
            return happened(connection, RENEWED)

    def population_for(self, name: str, population: str | None = None) -> str:
        """The population that a load of `name` belongs to: the one that it has, else `population`,
        else its own name. Raises CuratorError for a bad name or another population."""
        with reading(self._engine) as connection:
            return _population(connection, name, population)

    def population(self, name: str) -> Population:
        """What is known of a population, made or not."""
        with reading(self._engine) as connection:
            return populations.population_of(connection, name)

    def populations(self) -> Sequence[Population]:
        """All that are made, by name."""
        with reading(self._engine) as connection:
            names = populations.all_names(connection)
            return [populations.population_of(connection, name) for name in names]

    def add_population(self, made: Population, *, by: str) -> None:
        """Makes a population, or declares the places of one whose data sets earlier versions have
        loaded. Conflict where it is made and declared already."""
        _check_name(made.name, "population")
        with writing(self._engine) as connection:
            if populations.population_of(connection, made.name).is_declared:
                raise Conflict(f"There is a population {made.name} already.")
            self._record(connection, populations.make(connection, made, {}), by)

    def declare_places(
        self, name: str, spine: Spine, *, by: str, instead: str | None = None
    ) -> None:
        """Gives a population its places, or more of them; or others, with the reason `instead`: its
        budget stays what it is. Raises NotFound, Conflict where its places are others."""
        with writing(self._engine) as connection:
            known = populations.population_of(connection, name)
            if not known.is_declared:
                raise NotFound("There is no such population.")
            if instead is None and known.spine is not None and known.spine.id != spine.id:
                raise Conflict("The population has its places already; they can only be widened.")
            changed = replace(known, spine=spine)
            act = "population.places" if instead is None else "population.renew"
            self._record(connection, populations.change(connection, changed, act, instead), by)

    def sources_by_population(self) -> Mapping[str, Sequence[Source]]:
        """population → the sources of all versions, retired and old ones included, and its
        register."""
        found: dict[str, list[Source]] = {}
        with reading(self._engine) as connection:
            for row in _read(connection.execute(_FACTS)):
                source = source_from_json(self._checked(connection, row)["source"])
                found.setdefault(row["population"], []).append(source)
            for name in populations.all_names(connection):
                spine = populations.population_of(connection, name).spine
                if spine is not None and spine.table is not None:
                    found.setdefault(name, []).append(spine.table)
        return found

    def add_version(
        self,
        *,
        name: str,
        population: str | None,
        schema: Schema,
        n: int,
        source: Source,
        by: str,
        separate: str | None = None,
    ) -> DatasetFacts:
        """Records a loaded table as the current version of `name`, which a retired name revives.

        population None: the one that the name has, else the name itself; one that is not made yet
        is made, and the table's persons are its places. separate: a reason for which it is kept
        apart from others about the same persons. Raises CuratorError for another population or
        another unit, Conflict when two loads of one name meet.
        """
        try:
            with writing(self._engine) as connection:
                population = _population(connection, name, population)
                known = populations.population_of(connection, population)
                populations.check_unit(known, schema.unit, name)
                known = replace(known, separate=separate or known.separate)
                acts: list[Change] = []
                first = not known.datasets and known.spine is None
                spine = populations.first_spine(source, name) if first else known.spine
                if isinstance(source, VaultTable) and first and spine is not None:
                    source = replace(source, spine=spine.id)
                if spine is not None and not populations.has_places(spine, source, n):
                    raise Conflict(_OTHER_PLACES)
                if not known.is_made:
                    made = replace(known, units=frozenset({schema.unit.column}), spine=spine)
                    acts = populations.make(connection, made, {})
                elif known.is_declared:
                    acts = populations.change(
                        connection, replace(known, spine=spine), "population.load"
                    )
                version = _open_version(connection, name, population)
                values = {
                    "id": secrets.token_hex(16),
                    "dataset": name,
                    "version": version,
                    "n": n,
                    "schema": schema_to_json(schema),
                    "source": source_to_json(source),
                }
                connection.execute(insert(dataset_versions).values(values))
                self._record(connection, [*acts, *_loaded(values, population)], by)
        except IntegrityError:
            raise Conflict("Another load of this data set finished first; load it again.") from None
        return self.facts(name)

    def facts(self, name: str) -> DatasetFacts:
        """The current version's facts. Raises NotFound for absent and retired names alike."""
        newest = _FACTS.where(datasets.c.name == name, ~datasets.c.retired)
        with reading(self._engine) as connection:
            newest = newest.order_by(dataset_versions.c.version.desc()).limit(1)
            return _facts(self._one(connection, newest))

    def facts_of(self, version_id: str) -> DatasetFacts:
        """The facts of one version, current or not, retired or not. Raises NotFound."""
        with reading(self._engine) as connection:
            return _facts(self._version(connection, version_id))

    def list(self) -> list[DatasetFacts]:
        """The current versions of all data sets that are not retired, by name."""
        newest = select(
            dataset_versions.c.dataset, func.max(dataset_versions.c.version).label("version")
        ).group_by(dataset_versions.c.dataset)
        current = newest.subquery()
        query = _FACTS.join(
            current,
            (current.c.dataset == dataset_versions.c.dataset)
            & (current.c.version == dataset_versions.c.version),
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query.where(~datasets.c.retired).order_by(datasets.c.name))
            return [_facts(self._checked(connection, row)) for row in _read(rows)]

    def asks_for_second(self, population: str) -> bool:
        """Whether the policy of one of the population's data sets, retired ones too, asks for a
        second person; of a population without data sets, whether that of any data set does."""
        with reading(self._engine) as connection:
            rows = _read(connection.execute(_FACTS))
            own = [row for row in rows if row["population"] == population] or rows
            return any(_facts(self._checked(connection, row)).policy.second_person for row in own)

    def source(self, version_id: str) -> Source:
        """Where a version's rows are. Raises NotFound."""
        with reading(self._engine) as connection:
            return source_from_json(self._version(connection, version_id)["source"])

    def vault_tables(self) -> frozenset[str]:
        """The vault's tables that some version refers to, retired ones and old ones included."""
        with reading(self._engine) as connection:
            rows = _read(connection.execute(_FACTS))
            sources = [source_from_json(self._checked(connection, row)["source"]) for row in rows]
            spines = [
                populations.population_of(connection, name).spine
                for name in populations.all_names(connection)
            ]
        registers = (spine.table for spine in spines if spine is not None and spine.table)
        stored = (source for source in sources if isinstance(source, VaultTable))
        return frozenset(table.table for table in (*stored, *registers))

    def set_profile(
        self, version_id: str, profile: Profile, *, by: str, instead_of: str | None = None
    ) -> None:
        """Stores a version's profile. instead_of: the release of the one whose place it takes;
        None: there is none.

        Raises Conflict where another profile is stored than that, NotFound.
        """
        this = dataset_versions.c.id == version_id
        with writing(self._engine) as connection:
            if connection.scalar(select(dataset_versions.c.id).where(this)) is None:
                raise NotFound(NO_DATASET)
            require_recorded(connection, dataset_versions, (version_id,))
            stored = connection.scalar(select(dataset_versions.c.profile).where(this))
            if (stored or {}).get("release_id") == instead_of:
                connection.execute(
                    update(dataset_versions).where(this).values(profile=profile_to_json(profile))
                )
                detail = {"release_id": profile.release_id}
                act = Change("version.profile", dataset_versions, (version_id,), detail)
                self._record(connection, [act], by)
                return
        raise Conflict("This version of the data set has a profile already.")

    def set_policy(self, name: str, policy: Policy, *, by: str) -> None:
        """Replaces what the curator allows. Raises NotFound for absent and retired names."""
        stored = policy_to_json(replace(policy, tiers=tuple(policy.tiers)))
        act = Change("dataset.policy", datasets, (name,), {"policy": stored})
        self._change(act, by, policy=stored)

    def retire(self, name: str, *, by: str) -> None:
        """Makes a data set absent for analysts; its population and its rows stay. NotFound."""
        self._change(Change("dataset.retire", datasets, (name,)), by, retired=True)

    def publish(self, release_id: str, dataset: str, *, by: str) -> None:
        """Shows a release to everybody with a grant on its data set, for ever. Raises Conflict the
        second time."""
        with writing(self._engine) as connection:
            publications.publish(connection, release_id, dataset, by=by, at=self._now())

    def published(self, dataset: str) -> Sequence[str]:
        """The ids of a data set's published releases, the last published first."""
        with reading(self._engine) as connection:
            return publications.published(connection, self._recorded, dataset)

    def _change(self, act: Change, by: str, **values: object) -> None:
        living = (datasets.c.name == act.key[0], ~datasets.c.retired)
        with writing(self._engine) as connection:
            if connection.scalar(select(datasets.c.name).where(*living)) is None:
                raise NotFound(NO_DATASET)
            require_recorded(connection, datasets, act.key)
            if not connection.execute(update(datasets).where(*living).values(**values)).rowcount:
                raise NotFound(NO_DATASET)
            self._record(connection, [act], by)

    def _record(self, connection: Connection, changes: Sequence[Change], by: str) -> None:
        record(connection, changes, by=by, at=self._now())

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")

    def _version(self, connection: Connection, version_id: str) -> RowMapping:
        return self._one(connection, _FACTS.where(dataset_versions.c.id == version_id))

    def _one(self, connection: Connection, query: Select[Any]) -> RowMapping:
        """The row of a version that a query has found, checked. Raises NotFound."""
        rows = _read(connection.execute(query))
        if not rows:
            raise NotFound(NO_DATASET)
        return self._checked(connection, rows[0])

    def _checked(self, connection: Connection, row: RowMapping) -> RowMapping:
        """The row, as the chain says of the data set and of the version. Raises Unavailable."""
        check = self._recorded.check
        check(connection, datasets, (row["name"],), row, row["dataset_entry"])
        check(connection, dataset_versions, (row["id"],), row, row["version_entry"])
        return row


def _read(result: CursorResult[Any]) -> Sequence[RowMapping]:
    """All rows. Raises Unavailable for a value that its column's type cannot hold."""
    try:
        return result.mappings().all()
    except (ValueError, TypeError, RecursionError):
        raise Unavailable(DIFFERS) from None


def _loaded(version: Mapping[str, Any], population: str) -> list[Change]:
    """The acts of a load: the data set's row, which it makes or revives, and the new version's."""
    told = {key: version[key] for key in ("dataset", "version", "n")}
    whose = {"population": population}
    return [
        Change("dataset.load", datasets, (version["dataset"],), whose),
        Change("version.add", dataset_versions, (version["id"],), told),
    ]


def _check_name(text: str, what: str) -> None:
    if not _NAME.fullmatch(text):
        raise CuratorError(
            f"A {what}'s name is a letter or digit followed by up to 63 letters, digits or _.-"
        )


def _population(connection: Connection, name: str, asked: str | None) -> str:
    for text, what in ((name, "data set"), (asked, "population")):
        if text is not None:
            _check_name(text, what)
    query = select(datasets.c.population).where(datasets.c.name == name)
    known: str | None = connection.scalar(query)
    if known is not None:
        require_recorded(connection, datasets, (name,))
    if known is not None and asked is not None and asked != known:
        raise CuratorError(
            f"Data set {name} belongs to population {known} for ever, so that loading again frees "
            "no budget; leave --population out."
        )
    return known or asked or name


def _open_version(connection: Connection, name: str, population: str) -> int:
    """Makes or revives the data set's row and locks it; the number of its next version."""
    revived = connection.execute(
        update(datasets).where(datasets.c.name == name).values(retired=False)
    )
    if not revived.rowcount:
        connection.execute(
            insert(datasets).values(
                name=name, population=population, policy=policy_to_json(Policy()), retired=False
            )
        )
    newest = func.coalesce(func.max(dataset_versions.c.version), 0)
    query = select(newest).where(dataset_versions.c.dataset == name)
    return int(connection.scalar(query) or 0) + 1


def _facts(values: RowMapping) -> DatasetFacts:
    return DatasetFacts(
        name=values["dataset"],
        population=values["population"],
        version=values["version"],
        version_id=values["id"],
        n=values["n"],
        schema=schema_from_json(values["schema"]),
        profile=None if values["profile"] is None else profile_from_json(values["profile"]),
        policy=policy_from_json(values["policy"]),
    )
