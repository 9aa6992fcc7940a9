# SPDX-License-Identifier: Apache-2.0
"""Versions, populations, profiles and policies, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine

import reticent_server.ledger.tables  # noqa: F401 - all tables are compared, and refer to its
from reticent_server.catalog.repository import Catalog
from reticent_server.catalog.tables import catalog_identity, dataset_versions, datasets, populations
from reticent_server.database import metadata
from reticent_server.domain.clock import SystemClock
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Policy, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import NO_DATASET, Conflict, CuratorError, NotFound

SCHEMA = Schema(
    (
        Column("x", ColumnKind.NUMERIC, -0.1, 1e50, missing=("", "é")),
        Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b")),
    ),
    Unit("person", 3),
    "Δ",
)
SOURCE = VaultTable("reticent_1_2", 7, (StoredColumn("x", "v0", "m0"), StoredColumn("g", "v1")))
PROFILE = Profile(
    {
        "x": ColumnProfile(quantiles=(0.1, 0.30000000000000004), missing=2.5),
        "g": ColumnProfile(counts=(1.0, -3.0)),
    },
    "release-1",
)


def add(
    catalog: Catalog, name: str = "houses", population: str | None = None, n: int = 7
) -> DatasetFacts:
    return catalog.add_version(
        name=name, population=population, schema=SCHEMA, n=n, source=replace(SOURCE, n=n), by="t"
    )


@pytest.mark.slow
def test_the_migration_makes_the_declared_tables(engine: Engine) -> None:
    ours = {t.name for t in (catalog_identity, datasets, dataset_versions, populations)}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = [d for d in compare_metadata(context, metadata) if _table(d) in ours]
    assert differences == []


def _table(difference: object) -> str:
    text = repr(difference)
    names = ("catalog_identity", "dataset_versions", "datasets", "populations")
    return next((t for t in names if t in text), "")


def test_a_version_comes_back_as_it_was_declared(catalog: Catalog) -> None:
    made = add(catalog)
    assert made == catalog.facts("houses")
    assert (made.name, made.population, made.version, made.n) == ("houses", "houses", 1, 7)
    assert made.schema == SCHEMA
    assert (made.profile, made.policy) == (None, Policy())
    assert catalog.source(made.version_id) == SOURCE
    assert catalog.vault_tables() == {SOURCE.table}


def test_loading_again_makes_a_version_without_the_old_profile(catalog: Catalog) -> None:
    first = add(catalog, population="people")
    catalog.set_profile(first.version_id, PROFILE, by="t")
    catalog.set_policy("houses", Policy(("conditional",), 2.0, 1e-7), by="t")
    second = add(catalog, n=9)
    assert (second.version, second.n, second.population) == (2, 9, "people")
    assert second.version_id != first.version_id
    assert second.profile is None
    assert second.policy == Policy(("conditional",), 2.0, 1e-7)
    assert catalog.source(first.version_id).n == 7
    assert catalog.list() == [second]


def test_a_profile_gives_way_to_another_that_names_it(catalog: Catalog) -> None:
    version_id = add(catalog).version_id
    catalog.set_profile(version_id, PROFILE, by="t")
    assert catalog.facts("houses").profile == PROFILE
    with pytest.raises(Conflict):
        catalog.set_profile(version_id, replace(PROFILE, release_id="release-2"), by="t")
    assert catalog.facts("houses").profile == PROFILE
    better = replace(PROFILE, release_id="release-2")
    with pytest.raises(Conflict):
        catalog.set_profile(version_id, better, by="t", instead_of="release-0")
    catalog.set_profile(version_id, better, by="t", instead_of=PROFILE.release_id)
    assert catalog.facts("houses").profile == better
    with pytest.raises(NotFound):
        catalog.set_profile("absent", PROFILE, by="t")


def test_a_population_is_for_ever(catalog: Catalog) -> None:
    add(catalog, population="people")
    assert catalog.population_for("houses") == "people"
    assert catalog.population_for("flats", "people") == "people"
    assert catalog.population_for("flats") == "flats"
    for refused in (
        lambda: catalog.population_for("houses", "others"),
        lambda: add(catalog, population="others"),
        lambda: add(catalog, population="houses"),
    ):
        with pytest.raises(CuratorError, match="belongs to population people for ever"):
            refused()
    assert catalog.facts("houses").version == 1
    catalog.retire("houses", by="t")
    with pytest.raises(CuratorError, match="for ever"):
        add(catalog, population="others")
    assert add(catalog).population == "people"
    assert add(catalog, "flats", "people").population == "people"


def test_a_retired_data_set_is_like_an_absent_one(catalog: Catalog) -> None:
    made = add(catalog)
    catalog.retire("houses", by="t")
    for name in ("houses", "absent"):
        for call in (
            lambda name=name: catalog.facts(name),
            lambda name=name: catalog.retire(name, by="t"),
            lambda name=name: catalog.set_policy(name, Policy(), by="t"),
        ):
            with pytest.raises(NotFound) as refused:
                call()
            assert refused.value.detail == NO_DATASET
    assert catalog.list() == []
    assert catalog.source(made.version_id) == SOURCE, "releases under way still find their rows"
    assert catalog.vault_tables() == {SOURCE.table}, "its table is not an orphan"
    with pytest.raises(NotFound):
        catalog.source("absent")


def test_the_list_is_sorted_by_name(catalog: Catalog) -> None:
    assert catalog.list() == []
    for name in ("b", "a", "b", "c"):
        add(catalog, name)
    assert [(f.name, f.version) for f in catalog.list()] == [("a", 1), ("b", 2), ("c", 1)]


@pytest.mark.parametrize("name", ["", "a/b", "a b", ".a", "é", "a" * 65, "a\n", "x;--"])
def test_names_that_do_not_fit_a_path_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(CuratorError, match="A data set's name is"):
        add(catalog, name)
    with pytest.raises(CuratorError, match="A population's name is"):
        add(catalog, "houses", name)
    assert catalog.list() == []


def test_a_catalogue_keeps_its_identity(catalog: Catalog, engine: Engine) -> None:
    assert catalog.identity() == Catalog(engine, SystemClock()).identity()
    assert catalog.identity().isalnum()


def test_loads_that_race_make_distinct_versions(catalog: Catalog) -> None:
    add(catalog)

    def attempt(_: int) -> int:
        try:
            return add(catalog).version
        except Conflict:
            return 0

    with ThreadPoolExecutor(4) as pool:
        made = sum(version > 0 for version in pool.map(attempt, range(8)))
    assert made >= 1
    assert catalog.facts("houses").version == 1 + made
