# SPDX-License-Identifier: Apache-2.0
"""What was edited behind the program's back is refused when it is used, not only when it is
verified.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from reticent_server.access.service import Access
from reticent_server.access.tables import principals
from reticent_server.catalog.repository import Catalog
from reticent_server.chain import recorded
from reticent_server.chain.rows import stored_digest
from reticent_server.database import writing
from reticent_server.domain.facts import Policy, Profile
from reticent_server.errors import CuratorError, NotFound, Unavailable
from support.databases.migrated import BACKENDS, SetClock
from support.installations.curator_acts import PEPPER, World, inhabited, load, reopened


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with inhabited(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def world(engine: Engine, clock: SetClock) -> World:
    return reopened(engine, clock)


@pytest.fixture
def edit(engine: Engine) -> Callable[..., None]:
    """Runs a statement as somebody with the program's own role on the database would."""

    def run(statement: str, **given: Any) -> None:
        with writing(engine) as connection:
            assert connection.execute(text(statement), given).rowcount >= 1

    return run


def test_a_key_that_was_given_to_another_holder_opens_nothing(
    world: World, edit: Callable[..., None]
) -> None:
    carol = world.access.authenticate(world.keys["carol"])
    assert carol is not None
    edit(
        "UPDATE access_keys SET principal_id = :carol WHERE principal_id = :ana",
        carol=carol.id,
        ana=world.analyst_id,
    )
    with pytest.raises(Unavailable, match="not as its ledger says"):
        world.access.authenticate(world.keys["ana"])
    assert world.access.authenticate(world.keys["carol"]) == carol


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE access_principals SET role = 'curator' WHERE name = 'ana'",
        "UPDATE access_principals SET name = 'dan' WHERE name = 'ana'",
        "UPDATE access_keys SET created_at = 'x'",
    ],
)
def test_an_edited_holder_or_key_opens_nothing(
    world: World, edit: Callable[..., None], change: str
) -> None:
    edit(change)
    with pytest.raises(Unavailable):
        world.access.authenticate(world.keys["ana"])


def test_a_grant_that_nobody_gave_is_none(world: World, edit: Callable[..., None]) -> None:
    edit("UPDATE access_grants SET dataset = 'flats'")
    with pytest.raises(Unavailable):
        world.access.granted(world.analyst_id, "flats")
    assert not world.access.granted(world.analyst_id, "houses")


def test_a_session_that_was_given_to_another_holder_is_none(
    world: World, edit: Callable[..., None]
) -> None:
    carol = world.access.authenticate(world.keys["carol"])
    assert carol is not None
    session_id = world.sign_ins.begin(carol, by="console:carol")
    assert world.sign_ins.holder(session_id) == carol
    edit("UPDATE access_sessions SET begun_at = 'x' WHERE id = :id", id=session_id)
    with pytest.raises(Unavailable):
        world.sign_ins.holder(session_id)


VERSION = {
    "bounds": (
        "UPDATE dataset_versions SET schema = replace(schema{as_text}, '100.0', '0.001'){as_json}"
    ),
    "rows": "UPDATE dataset_versions SET n = n * 100",
    "source": "UPDATE dataset_versions SET source = replace(source{as_text}, 'v0', 'v1'){as_json}",
    "profile": (
        "UPDATE dataset_versions SET profile = replace(profile{as_text}, '0.3', '9'){as_json}"
    ),
    "policy": "UPDATE datasets SET policy = replace(policy{as_text}, '2.0', '99.0'){as_json}",
    "population": "UPDATE datasets SET population = 'nobody'",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", VERSION)
def test_an_edited_version_makes_no_plan_and_opens_no_reader(
    world: World, engine: Engine, edit: Callable[..., None], name: str
) -> None:
    casts = {"as_text": "", "as_json": ""}
    statement = VERSION[name]
    if engine.dialect.name == "postgresql":
        casts = {"as_text": "::text", "as_json": "::json"}
        statement = statement.replace("= replace", "= (replace").replace("{as_json}", "){as_json}")
    edit(statement.format(**casts))
    for use in (
        lambda: world.catalog.facts("houses"),
        lambda: world.catalog.facts_of(world.version_id),
        lambda: world.catalog.source(world.version_id),
        world.catalog.vault_tables,
        world.catalog.list,
    ):
        with pytest.raises(Unavailable, match="not as its ledger says"):
            use()


def test_text_that_is_no_json_is_refused_in_the_same_words(
    world: World, engine: Engine, edit: Callable[..., None]
) -> None:
    if engine.dialect.name == "postgresql":
        return  # its type refuses such a text
    edit("UPDATE dataset_versions SET schema = '{'")
    with pytest.raises(Unavailable, match="not as its ledger says"):
        world.catalog.facts("houses")


def test_an_entry_that_was_edited_with_its_row_is_refused_too(
    world: World, engine: Engine, clock: SetClock
) -> None:
    """The entry gives the digest of the edited row; but its hash is another entry's."""
    stopped = "DROP TRIGGER ledger_entries_no_update"
    if engine.dialect.name == "postgresql":
        stopped = "ALTER TABLE ledger_entries DISABLE TRIGGER ALL"
    key, seen = (world.analyst_id,), Access(engine, PEPPER, clock)
    with writing(engine) as connection:
        connection.exec_driver_sql(stopped)
        honest = stored_digest(connection, principals, key)
        edited = principals.update().where(principals.c.id == key[0]).values(role="curator")
        connection.execute(edited)
        forged = stored_digest(connection, principals, key)
        connection.execute(
            text("UPDATE ledger_entries SET detail = replace(detail, :honest, :forged)"),
            {"honest": honest, "forged": forged},
        )
    for access in (world.access, seen):
        with pytest.raises(Unavailable):
            access.authenticate(world.keys["ana"])
    assert world.ledger.verify() != []


def test_another_process_s_changes_are_seen_at_once(
    world: World, engine: Engine, clock: SetClock
) -> None:
    """What a process keeps of the chain in memory never hides a newer entry."""
    other = Catalog(engine, clock)
    for number in (1.0, 2.0, 3.0):
        other.set_policy("houses", Policy(max_epsilon=number), by="t")
        assert world.catalog.facts("houses").policy.max_epsilon == number
    version_id = load(other)
    assert world.catalog.facts("houses").version_id == version_id
    assert world.catalog.facts_of(world.version_id).version == 1
    other.retire("houses", by="t")
    with pytest.raises(NotFound):
        world.catalog.facts("houses")


def test_a_policy_edited_back_to_an_older_one_is_refused(
    world: World, engine: Engine, clock: SetClock
) -> None:
    """By every process, whatever entry it had seen before."""
    with engine.connect() as connection:
        old = connection.execute(text("SELECT policy FROM datasets")).scalar_one()
    Catalog(engine, clock).set_policy("houses", Policy(max_epsilon=0.5), by="t")
    with writing(engine) as connection:
        from reticent_server.catalog.json_values import policy_to_json
        from reticent_server.catalog.tables import datasets

        given = policy_to_json(Policy(("unconditional",), 2.0, 1e-7))
        connection.execute(datasets.update().values(policy=given))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT policy FROM datasets")).scalar_one() == old
    with pytest.raises(Unavailable):
        world.catalog.facts("houses")


LAUNDERED = {
    "policy": (
        "UPDATE datasets SET population = 'nobody'",
        lambda world: world.catalog.set_policy("houses", Policy(), by="t"),
    ),
    "retire": (
        "UPDATE datasets SET population = 'nobody'",
        lambda world: world.catalog.retire("houses", by="t"),
    ),
    "load": ("UPDATE datasets SET population = 'nobody'", lambda world: load(world.catalog)),
    "profile": (
        "UPDATE dataset_versions SET n = 7",
        lambda world: world.catalog.set_profile(world.version_id, Profile({}), by="t"),
    ),
    "rotate": (
        "UPDATE access_keys SET created_at = 'x'",
        lambda world: world.access.rotate("ana", by="t"),
    ),
    "revoke": (
        "UPDATE access_principals SET role = 'curator'",
        lambda world: world.access.revoke("ana", by="t"),
    ),
    "grant": (
        "UPDATE access_grants SET granted_at = 'x'",
        lambda world: world.access.revoke_grant(world.analyst_id, "houses", by="t"),
    ),
    "sign out": (
        "UPDATE access_sessions SET begun_at = 'x'",
        lambda world: world.sign_ins.end_all("carol", by="t"),
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", LAUNDERED)
def test_an_act_does_not_record_what_somebody_has_edited(
    world: World, edit: Callable[..., None], name: str
) -> None:
    """Else the edit would be found no more: the act is refused, and verify goes on naming the
    row.
    """
    change, act = LAUNDERED[name]
    edit(change)
    before = world.ledger.verify()
    assert before != []
    with pytest.raises((Unavailable, CuratorError)):
        act(world)
    assert world.ledger.verify() == before


def test_what_is_kept_in_memory_has_an_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "MOST_KNOWN", 3)
    carol = world.access.authenticate(world.keys["carol"])
    assert carol is not None
    for _ in range(8):
        assert world.sign_ins.holder(world.sign_ins.begin(carol, by="t")) == carol
    assert len(world.sign_ins._recorded._known) <= 3
