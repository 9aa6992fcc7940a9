# SPDX-License-Identifier: Apache-2.0
import hmac
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from sqlalchemy import Engine, select

from reticent_server.access import keys as keys_module
from reticent_server.access import tables
from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.peppers import only
from reticent_server.access.service import Access
from reticent_server.access.tables import form_tokens
from reticent_server.database import reading
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import ANALYST, LEAST, STAFF, Role
from reticent_server.errors import Conflict, InvalidRequest, NotFound
from support.databases.migrated import SetClock


def test_a_key_names_its_holder(access: Access) -> None:
    analyst_id, key = access.add_analyst("alice", by="t")
    curators_key = access.add_curator("carol", STAFF, by="t")
    assert access.authenticate(key) == Principal(analyst_id, "alice", ANALYST, key.split("_")[1])
    found = access.authenticate(curators_key)
    assert found is not None
    assert (found.name, found.roles) == ("carol", STAFF)


def test_keys_are_random_and_stored_as_an_hmac_only(access: Access, engine: Engine) -> None:
    _, key = access.add_analyst("alice", by="t")
    _, other = access.add_analyst("bob", by="t")
    assert len({key[-43:], other[-43:]}) == 2
    with reading(engine) as connection:
        digests = set(connection.execute(select(tables.keys.c.digest)).scalars())
        everything = str(connection.execute(select(tables.keys)).all())
    expected = {hmac.digest(b"p" * 32, k.encode(), "sha256").hex() for k in (key, other)}
    assert digests == expected
    assert key[-43:] not in everything


def test_every_character_of_a_secret_is_drawn_by_itself() -> None:
    """256 bits in 43 characters: no two places of 40 keys' secrets always agree."""
    secrets = [keys_module.new_key().token.split("_", 2)[2] for _ in range(40)]
    places = list(zip(*secrets, strict=True))
    assert len(set(places)) == len(places) == 43
    assert all(len(set(place)) > 8 for place in places)


def test_the_pepper_is_needed(access: Access, engine: Engine, clock: SetClock) -> None:
    _, key = access.add_analyst("alice", by="t")
    assert Access(engine, only(b"q" * 32), clock).authenticate(key) is None


def test_a_wrong_key_is_nobodys(access: Access) -> None:
    _, key = access.add_analyst("alice", by="t")
    _, other = access.add_analyst("bob", by="t")
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    mixed = other[:20] + key[20:]
    hostile = ["", "rk_", "rk__", "é" * 60, "\x00", "\ud800", key + "\n", " " + key, key + "x"]
    for token in (wrong, mixed, key.upper(), key[3:], *hostile):
        assert access.authenticate(token) is None


def test_a_miss_is_compared_as_a_hit_is(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    _, key = access.add_analyst("alice", by="t")
    compared: list[tuple[int, int]] = []

    def watch(a: str, b: str) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr(keys_module.hmac, "compare_digest", watch)
    unknown = "rk_" + "0" * 16 + key[19:]
    for token in (key, key[:-1] + "!", unknown, "nonsense"):
        access.authenticate(token)
    assert compared == [(64, 64)] * 4


def test_an_unknown_key_does_not_match_the_digest_it_is_compared_with() -> None:
    pepper, token = b"p" * 32, "rk_x"
    assert keys_module.matches(pepper, token, keys_module.digest(pepper, token))
    assert not keys_module.matches(pepper, token, None)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "é", "a" * 65, "a\n", "a:b"])
def test_a_bad_name_is_refused(access: Access, name: str) -> None:
    with pytest.raises(InvalidRequest):
        access.add_analyst(name, by="t")


def test_a_taken_name_is_refused_in_either_role(access: Access) -> None:
    access.add_analyst("a.Lice-1@x_y", by="t")
    for add in (access.add_analyst, access.add_curator):
        with pytest.raises(Conflict):
            add("a.Lice-1@x_y", by="t")


def test_a_key_expires(access: Access, clock: SetClock) -> None:
    _, key = access.add_analyst("alice", expires_at=clock.now() + timedelta(hours=1), by="t")
    clock.sleep(3599)
    assert access.authenticate(key) is not None
    clock.sleep(1)
    assert access.authenticate(key) is None
    assert access.analyst("alice").live_keys == 0


def test_rotation_keeps_at_most_two_live_keys(access: Access, clock: SetClock) -> None:
    made = [access.add_analyst("alice", by="t")[1]]
    for _ in range(3):
        clock.sleep(1)
        made.append(access.rotate("alice", by="t"))
    assert [access.authenticate(key) is not None for key in made] == [False, False, True, True]
    assert access.analyst("alice").live_keys == 2


def test_a_leaked_key_can_be_dropped_at_once(access: Access) -> None:
    _, leaked = access.add_analyst("alice", by="t")
    fresh = access.rotate("alice", drop_old=True, by="t")
    assert access.authenticate(leaked) is None
    assert access.authenticate(fresh) is not None


@pytest.mark.slow
def test_rotations_at_once_leave_two_live_keys(access: Access) -> None:
    access.add_analyst("alice", by="t")
    barrier = Barrier(8)

    def rotate(_: int) -> None:
        access.analysts()  # each thread has its connection open before the start
        barrier.wait()
        access.rotate("alice", by="t")

    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(rotate, range(8)))
            assert access.analyst("alice").live_keys == 2


def test_revoking_ends_every_key_at_once_and_for_good(access: Access) -> None:
    analyst_id, first = access.add_analyst("alice", by="t")
    access.grant(analyst_id, "houses", by="t")
    second = access.rotate("alice", by="t")
    access.revoke("alice", by="t")
    assert access.authenticate(first) is None
    assert access.authenticate(second) is None
    assert not access.granted(analyst_id, "houses")
    with pytest.raises(Conflict):
        access.rotate("alice", by="t")
    with pytest.raises(Conflict):
        access.add_analyst("alice", by="t")
    access.grant(analyst_id, "houses", by="t")
    assert not access.granted(analyst_id, "houses")
    assert access.analyst("alice").revoked


def test_absent_names_are_not_found(access: Access) -> None:
    for call in (access.rotate, access.revoke):
        with pytest.raises(NotFound):
            call("nobody", by="t")
    with pytest.raises(NotFound):
        access.analyst("nobody")


def test_curators_are_no_analysts(access: Access) -> None:
    access.add_curator("carol", STAFF, by="t")
    access.add_analyst("bob", by="t")
    access.add_analyst("alice", by="t")
    assert [a.name for a in access.analysts()] == ["alice", "bob"]
    with pytest.raises(NotFound):
        access.analyst("carol")


def test_a_grant_is_for_one_analyst_and_one_data_set(access: Access) -> None:
    alice, _ = access.add_analyst("alice", by="t")
    bob, _ = access.add_analyst("bob", by="t")
    for _ in range(2):
        access.grant(alice, "houses", by="t")
    assert access.granted(alice, "houses")
    assert not access.granted(alice, "flats")
    assert not access.granted(bob, "houses")
    assert access.grants(alice) == ("houses",)
    access.revoke_grant(alice, "houses", by="t")
    assert not access.granted(alice, "houses")
    assert access.grants(alice) == ()


@pytest.mark.parametrize("dataset", ["", "\x00", "\ud800", "a" * 500])
def test_a_hostile_data_sets_name_is_not_granted(access: Access, dataset: str) -> None:
    analyst_id, _ = access.add_analyst("alice", by="t")
    assert not access.granted(analyst_id, dataset)


def test_only_analysts_get_grants(access: Access) -> None:
    with pytest.raises(NotFound):
        access.grant("an_absent", "houses", by="t")


def test_a_session_goes_on_while_its_key_lives(access: Access, clock: SetClock) -> None:
    key = access.add_curator("carol", STAFF, expires_at=clock.now() + timedelta(days=1), by="t")
    holder = access.authenticate(key)
    assert holder is not None
    assert access.holder_of_key(holder.key_id) == holder
    assert access.holder_of_key("0" * 16) is None
    access.rotate("carol", drop_old=True, by="t")
    assert access.holder_of_key(holder.key_id) is None


def test_the_newest_key_is_named(access: Access) -> None:
    _, key = access.add_analyst("alice", by="t")
    assert access.analyst("alice").newest_key == key.split("_")[1]
    access.revoke("alice", by="t")
    assert access.analyst("alice").newest_key is None


def test_a_token_is_used_once_until_nobody_would_take_it(engine: Engine, clock: SetClock) -> None:
    tokens = FormTokens(engine, clock)
    assert tokens.use("a", 60)
    assert not tokens.use("a", 60)
    assert FormTokens(engine, clock).use("b", 60)
    clock.sleep(61)
    assert tokens.use("c", 60)
    with reading(engine) as connection:
        assert [row.id for row in connection.execute(form_tokens.select())] == ["c"]


def test_of_many_uses_at_once_one_is_the_first(engine: Engine, clock: SetClock) -> None:
    tokens, gate = FormTokens(engine, clock), Barrier(8)

    def use(_: int) -> bool:
        gate.wait()
        return tokens.use("a", 60)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(8))) == 1


def test_roles_are_changed_at_once_and_for_the_staff_only(access: Access) -> None:
    key = access.add_curator("carol", by="t")
    found = access.authenticate(key)
    assert found is not None
    assert found.roles == LEAST
    access.set_roles("carol", frozenset({Role.AUDITOR, Role.CURATOR}), by="t")
    found = access.authenticate(key)
    assert found is not None
    assert found.roles == {Role.AUDITOR, Role.CURATOR}
    access.add_analyst("alice", by="t")
    for name in ("alice", "nobody"):
        with pytest.raises(NotFound):
            access.set_roles(name, STAFF, by="t")
    for none in (frozenset[Role](), ANALYST):
        with pytest.raises(InvalidRequest):
            access.set_roles("carol", none, by="t")
        with pytest.raises(InvalidRequest):
            access.add_curator("dan", none, by="t")
    access.revoke("carol", by="t")
    with pytest.raises(Conflict):
        access.set_roles("carol", STAFF, by="t")
