# SPDX-License-Identifier: Apache-2.0
"""Administrative acts are in the chain: no row of access or catalogue changes without an entry."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Boolean, Engine, Integer, Table, text
from sqlalchemy.types import JSON

from reticent_server.access.tables import grants, keys, principals, rates
from reticent_server.catalog.tables import datasets
from reticent_server.chain import repository
from reticent_server.chain.acts import DIGEST, Change, record, require_recorded
from reticent_server.chain.rows import stored_digest
from reticent_server.chain.tables import chained_tables
from reticent_server.database import reading, writing
from reticent_server.domain.facts import Policy
from reticent_server.errors import Unavailable
from reticent_server.ledger.service import problems_in
from support.databases.migrated import BACKENDS, SetClock
from support.installations.curator_acts import World, inhabited, load, owners, reopened
from support.ledger.accounts import ask, open_accounts

TABLES = [table.name for table in chained_tables()]


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with inhabited(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def world(engine: Engine, clock: SetClock) -> World:
    return reopened(engine, clock)


def other(column: Any) -> str:
    """SQL of another value of the column's type."""
    match column.type:
        case Boolean():
            return f'NOT "{column.name}"'
        case Integer():
            return f'coalesce("{column.name}", 0) + 1'
        case JSON():
            return "'{\"other\": 1}'"
        case _:
            return "'x'"


@pytest.mark.slow
def test_whatever_a_curator_does_is_recorded_and_verified(world: World) -> None:
    assert world.ledger.verify() == []
    told = [(e.draft.action, e.draft.actor) for e in world.ledger.entries()][::-1]
    analyst = ("principal.add", "key.add", "project.add", "member.add")
    project = ("open", "project.add", "member.add", "member.add", "grant.add", "request.approve")
    assert told == [
        ("catalogue.add", "reticent"),
        ("population.add", "cli:carol"),
        ("dataset.load", "cli:carol"),
        ("version.add", "cli:carol"),
        ("dataset.policy", "cli:carol"),
        ("version.profile", "curator"),
        *[("release.publish", "console:carol")] * 2,
        ("principal.add", "cli:root"),
        ("key.add", "cli:root"),
        *[(action, "console:carol") for action in analyst] * 2,
        ("grant.add", "console:carol"),
        ("identity.link", "cli:root"),
        *[("session.begin", "console:carol")] * 2,
        ("session.end", "console:carol"),
        *[("request.add", world.analyst_id)] * 2,
        *[(action, "console:carol") for action in project],
        ("proposal.add", "console:carol"),
        ("proposal.approve", "console:bert"),
        ("protocol.accept", "cli:carol"),
        ("pepper.rotate", "cli:root"),
    ]
    world.access.rotate("ana", by="console:carol", drop_old=True)
    world.access.revoke_grant(world.analyst_id, "houses", by="console:carol")
    world.access.grant(world.analyst_id, "houses", by="console:carol")
    world.access.revoke("bob", by="console:carol")
    world.access.revoke("bob", by="console:carol")  # once is enough
    load(world.catalog)
    world.catalog.retire("houses", by="cli:carol")
    assert world.sign_ins.end_all("carol", by="cli:root") == 1
    assert [e.draft.action for e in world.ledger.entries(limit=10)][::-1] == [
        "key.revoke",
        "key.add",
        "grant.revoke",
        "grant.add",
        "principal.revoke",
        "population.load",
        "dataset.load",
        "version.add",
        "dataset.retire",
        "session.end",
    ]
    assert world.ledger.verify() == []


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", TABLES)
def test_every_edit_of_every_column_is_named(world: World, engine: Engine, name: str) -> None:
    table = next(t for t in chained_tables() if t.name == name)
    found = 0
    with owners(engine) as connection:
        for row in connection.execute(table.select()).mappings().all():
            at = " AND ".join(f'"{c.name}" = :{c.name}' for c in table.primary_key.columns)
            key = {c.name: row[c.name] for c in table.primary_key.columns}
            for column in table.columns:
                nested = connection.begin_nested()
                changed = text(f'UPDATE {name} SET "{column.name}" = {other(column)} WHERE {at}')
                assert connection.execute(changed, key).rowcount == 1
                problems = problems_in(connection)
                assert any(_subject(table, key) in problem for problem in problems), column.name
                nested.rollback()
                found += 1
        assert problems_in(connection) == []
    assert found >= len(table.columns)


def _subject(table: Table, key: dict[str, Any]) -> str:
    return ":".join([str(table.info["chained"]), *map(str, key.values())])


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_was_added_or_deleted_is_named(world: World, engine: Engine, name: str) -> None:
    table = next(t for t in chained_tables() if t.name == name)
    with owners(engine) as connection:
        row = dict(connection.execute(table.select()).mappings().first() or {})
        first = next(iter(table.primary_key.columns)).name
        connection.execute(table.insert().values(row | _free(table, row)))
        assert any("was never recorded" in p for p in problems_in(connection))
        connection.execute(table.delete().where(table.c[first] == row[first]))
        assert any("is missing" in p for p in problems_in(connection))


def _free(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """Another value for every column that must be unique."""
    unique = {
        "id",
        "name",
        "version",
        "singleton",
        "analyst_id",
        "project_id",
        "release_id",
        "value",
        "digest",
    } & {c for c in row if row[c]}
    return {c: row[c] + 1 if isinstance(row[c], int) else f"z{row[c][1:]}" for c in unique}


def test_a_row_edited_back_to_an_older_state_is_named(world: World, engine: Engine) -> None:
    world.access.rotate("ana", by="t", drop_old=True)
    with owners(engine) as connection:
        connection.execute(keys.update().values(revoked_at=None))
        (problem,) = problems_in(connection)
    assert "is not what its last entry says" in problem


@pytest.mark.sample(4)
def test_what_a_row_cannot_hold_is_found_without_an_exception(world: World, engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        return  # PostgreSQL's columns hold their types only
    for table in chained_tables():
        for column in table.columns:
            if column.name == "singleton":
                continue  # a row's own number, of which SQLite does check the type
            for value in ("X'FF00'", "4.5", "'{'", "replace(hex(zeroblob(50000)), '0', '[')"):
                with owners(engine) as connection:
                    connection.exec_driver_sql(
                        f'UPDATE {table.name} SET "{column.name}" = {value} WHERE rowid = 1'
                    )
                    assert problems_in(connection) != [], (table.name, column.name, value)


def test_an_act_has_a_name_and_a_chained_table(world: World, engine: Engine) -> None:
    for name in ("", "Key.add", "key add", "key.add.twice", "k" * 41):
        with pytest.raises(ValueError, match="a name like"):
            Change(name, keys, ("x",))
    with pytest.raises(ValueError, match="access_rates"), writing(engine) as connection:
        record(connection, [Change("rate.set", rates, ("x",))], by="t", at="now")


def test_an_act_that_is_not_done_is_not_recorded(world: World, engine: Engine) -> None:
    head = world.ledger.head()
    key = (world.analyst_id,)
    with engine.connect() as connection:
        connection.execute(principals.update().where(principals.c.id == key[0]).values(name="x"))
        record(connection, [Change("principal.rename", principals, key)], by="t", at="now")
        connection.rollback()
    world.access.grant(world.analyst_id, "houses", by="t")  # granted already
    world.access.revoke_grant(world.analyst_id, "nothing", by="t")
    assert world.ledger.head() == head


def test_an_entry_tells_ids_and_never_a_digest_of_a_key_or_a_name(world: World) -> None:
    lines = list(world.ledger.export())
    with reading(world.access._engine) as connection:
        secret = [row.digest for row in connection.execute(keys.select())]
        people = ['"ana"', '"bob"']
    entries = [json.loads(line) for line in lines]
    details = [entry["detail"] for entry in entries]
    for hidden in [*secret, *people]:
        assert all(hidden not in json.dumps(detail) for detail in details)
    assert all(len(entry["detail"][DIGEST]) == 64 for entry in entries if entry.get("subject"))


@pytest.mark.slow
def test_acts_and_charges_at_once_leave_one_chain(world: World) -> None:
    """Four kinds of writers on the same rows and accounts; the order of entries fits every row."""
    open_accounts(world.ledger)
    barrier = Barrier(8)

    def work(k: int) -> None:
        barrier.wait()
        for number in range(5):
            match k % 4:
                case 0:
                    ask(world.ledger)  # a tenth of the cap
                case 1:
                    policy = Policy(("unconditional",), 1.0 + number + 10 * k)
                    world.catalog.set_policy("houses", policy, by=f"t{k}")
                case 2:
                    world.access.rotate("ana", by=f"t{k}")
                case _:
                    world.access.revoke_grant(world.analyst_id, "houses", by=f"t{k}")
                    world.access.grant(world.analyst_id, "houses", by=f"t{k}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert world.ledger.verify() == []
    actions = [e.draft.action for e in world.ledger.entries(limit=1000)]
    assert actions.count("debit") == 20
    assert actions.count("dataset.policy") == 11


def test_a_row_that_others_delete_meanwhile_is_no_tampering(world: World, engine: Engine) -> None:
    """It is gone when it is looked at, and the chain says so, too; it was never there at all."""
    world.access.revoke_grant(world.analyst_id, "houses", by="t")
    with writing(engine) as connection:
        require_recorded(connection, grants, (world.analyst_id, "houses"))
        require_recorded(connection, grants, (world.analyst_id, "flats"))
    with writing(engine) as connection:
        values = {"analyst_id": world.analyst_id, "dataset": "houses", "granted_at": "now"}
        connection.execute(grants.insert().values(values))
        with pytest.raises(Unavailable):
            require_recorded(connection, grants, (world.analyst_id, "houses"))


def test_a_row_that_was_deleted_is_missed_before_an_act(world: World, engine: Engine) -> None:
    """With an entry edited so that it tells of no row, too: the entry's hash is not its own."""
    key = (world.analyst_id, "houses")
    with owners(engine) as connection:
        honest = stored_digest(connection, grants, key)
        connection.execute(grants.delete())
        with pytest.raises(Unavailable):
            require_recorded(connection, grants, key)
        connection.execute(
            text("UPDATE ledger_entries SET detail = replace(detail, :honest, 'null')"),
            {"honest": f'"{honest}"'},
        )
        with pytest.raises(Unavailable):
            require_recorded(connection, grants, key)


def test_the_chain_s_table_names_no_account_and_a_row_at_once(world: World, engine: Engine) -> None:
    with reading(engine) as connection:
        for entry in repository.all_entries(connection):
            assert (entry.draft.account is None) != (entry.draft.subject is None)


def test_tables_that_are_chained(engine: Engine) -> None:
    assert TABLES == [
        "access_grants",
        "access_identities",
        "access_keys",
        "access_members",
        "access_peppers",
        "access_principals",
        "access_project_grants",
        "access_projects",
        "access_proposals",
        "access_protocols",
        "access_requests",
        "access_sessions",
        "catalog_identity",
        "dataset_versions",
        "datasets",
        "populations",
        "published_releases",
    ]
    assert grants in chained_tables()
    assert datasets in chained_tables()
