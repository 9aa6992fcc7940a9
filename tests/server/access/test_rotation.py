# SPDX-License-Identifier: Apache-2.0
"""Rotation of the pepper: nobody's key changes, and in the end nothing is left under the old
one.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Event

import pytest
from sqlalchemy import Engine, select

from reticent_server.access import service
from reticent_server.access.peppers import MOST_PEPPERS, Peppers
from reticent_server.access.rotation import PepperState, Rotation
from reticent_server.access.secret_places import (
    KeptPeppers,
    SecretsFile,
    SecretsText,
    add_source,
    place_of,
    source_url,
)
from reticent_server.access.secrets import Secrets, create_secrets, load_secrets, secrets_text
from reticent_server.access.service import Access
from reticent_server.access.tables import keys
from reticent_server.database import reading
from reticent_server.domain.roles import STAFF
from reticent_server.errors import Conflict, CuratorError, NotFound, Unavailable
from reticent_server.ledger.service import Ledger
from reticent_server.settings import Settings
from reticent_server.web.sessions import Sessions
from support.databases.migrated import SetClock

THREADS = 6


@pytest.fixture
def place(tmp_path: Path) -> SecretsFile:
    create_secrets(tmp_path / "secrets.json")
    return SecretsFile(tmp_path / "secrets.json")


@pytest.fixture
def rotation(engine: Engine, place: SecretsFile, clock: SetClock) -> Rotation:
    return Rotation(engine, place, clock)


@pytest.fixture
def server(engine: Engine, place: SecretsFile, clock: SetClock) -> Access:
    """A server that was started before anything was rotated."""
    return Access(engine, KeptPeppers(place), clock)


def stored(engine: Engine, key: str) -> tuple[str, str | None]:
    with reading(engine) as connection:
        query = select(keys.c.digest, keys.c.pepper_id).where(keys.c.id == key.split("_")[1])
        digest, pepper_id = connection.execute(query).one()
    return digest, pepper_id


def test_keys_go_on_and_move_to_the_new_pepper(
    server: Access, rotation: Rotation, engine: Engine, place: SecretsFile, clock: SetClock
) -> None:
    _, ana = server.add_analyst("ana", by="t")
    _, bob = server.add_analyst("bob", by="t")
    old = stored(engine, ana)
    assert rotation.rotate(by="t") == "2"
    assert rotation.states() == (PepperState("1", "old", 2), PepperState("2", "in use", 0))
    _, dan = server.add_analyst("dan", by="t")  # the running server has seen the new pepper
    assert stored(engine, dan)[1] == "2"
    assert server.authenticate(ana[:-1] + ("A" if ana[-1] != "A" else "B")) is None
    assert stored(engine, ana) == old
    for _ in range(3):
        found = server.authenticate(ana)
        assert found is not None
        assert found.name == "ana"
    assert stored(engine, ana)[1] == "2"
    assert stored(engine, ana)[0] != old[0]
    with pytest.raises(Conflict, match="1 live key"):
        rotation.retire("1", by="t")
    assert server.authenticate(bob) is not None
    assert rotation.retire("1", by="t") == 0
    assert list(load_secrets(place.path).peppers.by_id) == ["2"]
    later = Access(engine, KeptPeppers(place), clock)
    assert all(access.authenticate(k) for access in (server, later) for k in (ana, bob, dan))
    ledger = Ledger(engine, clock, 60)
    assert ledger.verify() == []
    told = [e.draft.action for e in ledger.entries()][::-1]
    assert told.count("key.rehash") == 2
    assert [a for a in told if a.startswith("pepper")] == ["pepper.rotate", "pepper.retire"]


def test_force_revokes_what_is_left(
    server: Access, rotation: Rotation, engine: Engine, clock: SetClock
) -> None:
    _, ana = server.add_analyst("ana", by="t")
    _, bob = server.add_analyst("bob", by="t")
    server.add_analyst("eve", by="t")
    server.revoke("eve", by="t")
    server.add_analyst("old", by="t", expires_at=clock.now() + timedelta(seconds=1))
    clock.sleep(2)
    rotation.rotate(by="t")
    assert server.authenticate(bob) is not None
    assert rotation.retire("1", by="t", force=True) == 1
    assert server.authenticate(ana) is None
    assert server.analyst("ana").live_keys == 0
    assert [p.id for p in rotation.states()] == ["2"]
    assert server.authenticate(bob) is not None
    assert server.authenticate(server.rotate("ana", by="t")) is not None
    assert Ledger(engine, clock, 60).verify() == []


def test_the_pepper_in_use_stays(rotation: Rotation) -> None:
    with pytest.raises(Conflict):
        rotation.retire("1", by="t", force=True)
    with pytest.raises(NotFound):
        rotation.retire("7", by="t", force=True)


def test_a_staged_pepper_is_known_before_it_is_used(
    server: Access, rotation: Rotation, engine: Engine
) -> None:
    """So that every machine of several knows it before a key is stored under it."""
    assert rotation.rotate(by="t", stage=True) == "2"
    _, ana = server.add_analyst("ana", by="t")
    assert stored(engine, ana)[1] is None
    assert server.authenticate(ana) is not None
    assert stored(engine, ana)[1] is None
    assert [p.state for p in rotation.states()] == ["in use", "staged"]
    with pytest.raises(Conflict):
        rotation.rotate(by="t", stage=True)
    assert rotation.rotate(by="t") == "2"
    assert server.authenticate(ana) is not None
    assert stored(engine, ana)[1] == "2"


def test_a_machine_that_is_behind_puts_no_key_back(
    server: Access, rotation: Rotation, engine: Engine, place: SecretsFile, clock: SetClock
) -> None:
    _, ana = server.add_analyst("ana", by="t")
    rotation.rotate(by="t", stage=True)
    behind = Access(engine, KeptPeppers(SecretsText(place.path.read_text())), clock)
    rotation.rotate(by="t")
    for access in (server, behind, server, behind):
        assert access.authenticate(ana) is not None
    assert stored(engine, ana)[1] == "2"
    assert [e.draft.action for e in Ledger(engine, clock, 60).entries()].count("key.rehash") == 1


def test_a_key_used_by_many_at_once_is_stored_again_once(
    server: Access, rotation: Rotation, engine: Engine, clock: SetClock
) -> None:
    _, ana = server.add_analyst("ana", by="t")
    rotation.rotate(by="t")
    barrier = Barrier(THREADS)

    def use(_: int) -> bool:
        barrier.wait()
        return server.authenticate(ana) is not None

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(use, range(THREADS)))
    ledger = Ledger(engine, clock, 60)
    assert [e.draft.action for e in ledger.entries()].count("key.rehash") == 1
    assert ledger.verify() == []


def test_a_database_that_cannot_be_written_refuses_nobody(
    server: Access, rotation: Rotation, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ana = server.add_analyst("ana", by="t")
    rotation.rotate(by="t")

    def away(*_: object) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(service, "writing", away)
        assert server.authenticate(ana) is not None
    assert stored(engine, ana)[1] is None
    assert server.authenticate(ana) is not None
    assert stored(engine, ana)[1] == "2"


def test_an_edited_key_is_not_stored_again(
    server: Access, rotation: Rotation, engine: Engine, clock: SetClock
) -> None:
    """Storing it again would write over the trace of the edit."""
    _, ana = server.add_analyst("ana", by="t")
    rotation.rotate(by="t")
    with engine.begin() as connection:
        connection.execute(keys.update().values(created_at="2000-01-01"))
    with pytest.raises(Unavailable):
        server.authenticate(ana)
    assert Ledger(engine, clock, 60).verify() != []


def test_a_key_under_a_pepper_that_is_missing_is_nobodys(
    server: Access, rotation: Rotation, engine: Engine, place: SecretsFile, clock: SetClock
) -> None:
    before = place.path.read_text()
    rotation.rotate(by="t")
    _, ana = server.add_analyst("ana", by="t")
    place.path.write_text(before)  # an older copy of the secrets was restored
    assert Access(engine, KeptPeppers(place), clock).authenticate(ana) is None
    assert rotation.states() == (PepperState("1", "in use", 0), PepperState("2", "missing", 1))


def test_where_the_secrets_cannot_be_written_nothing_is_recorded(
    engine: Engine, place: SecretsFile, clock: SetClock
) -> None:
    ledger = Ledger(engine, clock, 60)
    head = ledger.head()
    text = place.path.read_text()
    with pytest.raises(CuratorError, match="--print"):
        Rotation(engine, SecretsText(text), clock).rotate(by="t")
    assert ledger.head() == head
    printed: list[Secrets] = []
    Rotation(engine, SecretsText(text), clock).rotate(by="t", write=printed.append)
    assert printed[0].peppers.newest == "2"
    assert ledger.verify() == []
    assert place.path.read_text() == text


def test_sessions_go_on_until_their_pepper_is_retired(
    rotation: Rotation, place: SecretsFile, clock: SetClock
) -> None:
    sessions = Sessions(KeptPeppers(place), clock)
    session = sessions.new("0123456789abcdef" * 2)
    sealed, token = sessions.seal(session), sessions.form_token(session)
    rotation.rotate(by="t")
    assert sessions.open(sealed) == session
    assert sessions.is_form_token(session, token)
    assert sessions.seal(session) != sealed
    rotation.retire("1", by="t")
    assert sessions.open(sealed) is None
    assert not sessions.is_form_token(session, token)


def test_secrets_that_are_away_for_a_while_are_those_that_were_read(
    rotation: Rotation, place: SecretsFile
) -> None:
    known = KeptPeppers(place)
    text = place.path.read_text()
    place.path.unlink()
    assert known().newest == "1"
    place.path.touch(0o600)
    place.path.write_text("half a docu")
    assert known().newest == "1"
    place.path.write_text(text)
    rotation.rotate(by="t")
    assert known().newest == "2"


def test_there_are_not_too_many() -> None:
    peppers = Peppers({"1": os.urandom(32)}, "1")
    for _ in range(MOST_PEPPERS - 1):
        peppers = peppers.rotated()
    assert peppers.newest == str(MOST_PEPPERS)
    with pytest.raises(Conflict):
        peppers.rotated()
    assert "00" not in repr(Peppers({"1": b"\0" * 32}, "1"))


@pytest.mark.parametrize("kind", ["environment", "command"])
def test_secrets_from_elsewhere(tmp_path: Path, place: SecretsFile, kind: str) -> None:
    add_source(place, "sqlite:///x")
    secrets = place.load()
    text = secrets_text(secrets)
    script = tmp_path / "decrypt.py"
    script.write_text(f"print({text!r})")
    given = {
        "environment": Settings(secrets_json=text),
        "command": Settings(secrets_command=f"{sys.executable} '{script}'"),
    }[kind]
    assert text[20:60] not in repr(given)
    elsewhere = place_of(given)
    assert elsewhere.load() == secrets
    assert source_url(elsewhere, next(iter(secrets.sources))) == "sqlite:///x"
    assert KeptPeppers(elsewhere)() == secrets.peppers
    with pytest.raises(CuratorError):
        add_source(elsewhere, "sqlite:///y")


@pytest.mark.parametrize(
    "line", ["false", "/absent/command", "echo {}", "'unclosed", "sh -c 'exit 0'"]
)
def test_a_command_that_fails_says_so(line: str) -> None:
    with pytest.raises(CuratorError, match="RETICENT_SECRETS_COMMAND"):
        place_of(Settings(secrets_command=line)).load()


def test_one_place_at_a_time() -> None:
    with pytest.raises(CuratorError):
        place_of(Settings(secrets_json="{}", secrets_command="cat x"))
    with pytest.raises(CuratorError, match="RETICENT_SECRETS_JSON"):
        place_of(Settings(secrets_json="{}")).load()


def test_a_curators_key_moves_too(server: Access, rotation: Rotation, engine: Engine) -> None:
    key = server.add_curator("carol", STAFF, by="t")
    rotation.rotate(by="t")
    assert server.authenticate(key) is not None
    assert stored(engine, key)[1] == "2"
    assert json.loads(secrets_text(load_secrets(rotation._place.path)))["newest"] == "2"  # type: ignore[attr-defined]


@pytest.mark.slow
def test_nobody_is_refused_while_peppers_are_rotated_under_load(
    engine: Engine, place: SecretsFile, clock: SetClock
) -> None:
    """Two servers, asked by many at once, from before the first rotation until after the last
    pepper is retired.
    """
    servers = [Access(engine, KeptPeppers(place), clock) for _ in range(2)]
    given = [servers[0].add_analyst(f"a{i}", by="t")[1] for i in range(3)]
    rotation, ended, refused = Rotation(engine, place, clock), Event(), []

    def ask(number: int) -> int:
        asked = 0
        while not ended.is_set() or asked < len(given):
            key = given[asked % len(given)]
            if servers[number % 2].authenticate(key) is None:
                refused.append(key)
            asked += 1
        return asked

    with ThreadPoolExecutor(THREADS) as pool:
        asking = [pool.submit(ask, number) for number in range(THREADS)]
        try:
            for _ in range(3):
                old = place.load().peppers.newest
                rotation.rotate(by="t", stage=True)
                rotation.rotate(by="t")
                for key in given:  # each is used once more, and so stored again
                    assert servers[0].authenticate(key) is not None
                assert rotation.retire(old, by="t") == 0
        finally:
            ended.set()
        assert all(each.result() >= len(given) for each in asking)
    assert refused == []
    assert [state.id for state in rotation.states()] == ["4"]
    assert Ledger(engine, clock, 600).verify() == []
