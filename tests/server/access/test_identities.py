# SPDX-License-Identifier: Apache-2.0
"""Identities: who is linked with what the provider says, on both databases."""

import pytest
from sqlalchemy import Engine, text

from reticent_server.access.identities import Identities
from reticent_server.access.identity_rows import Identity
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.domain.roles import ANALYST, Role
from reticent_server.errors import Conflict, InvalidRequest, NotFound, Unavailable
from reticent_server.ledger.service import Ledger
from support.databases.migrated import SetClock

ISSUER = "https://id.example"
SUBJECT = Identity(ISSUER, "sub", "s-1")
ADDRESS = Identity(ISSUER, "email", "Ana@X.example")


@pytest.fixture
def identities(engine: Engine, clock: SetClock) -> Identities:
    return Identities(engine, clock)


def test_somebody_without_a_key_is_who_the_provider_says(
    access: Access, identities: Identities
) -> None:
    ana = access.add_linked("ana", SUBJECT, by="t")
    found = identities.holder_of(ISSUER, {"sub": "s-1"})
    assert found is not None
    assert (found.id, found.name, found.roles, found.key_id) == (ana, "ana", ANALYST, "")
    assert found.proof.startswith("id_")
    assert access.analyst("ana").live_keys == 0
    access.add_linked("carol", ADDRESS, frozenset({Role.AUDITOR}), by="t")
    carol = identities.holder_of(ISSUER, {"email": "ana@x.example", "email_verified": True})
    assert carol is not None
    assert carol.roles == {Role.AUDITOR}


def test_addresses_are_compared_exactly_but_for_the_case_of_a_to_z(
    access: Access, identities: Identities
) -> None:
    """U+212A, a Kelvin sign, is a k in lower case, and somebody else's address."""
    access.add_linked("book", Identity(ISSUER, "email", "Book@X.example"), by="t")
    for address, is_known in (("bOOk@x.EXAMPLE", True), ("boo\u212a@x.example", False)):
        found = identities.holder_of(ISSUER, {"email": address, "email_verified": True})
        assert (found is not None) is is_known


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"sub": "s-2"},
        {"sub": "S-1"},
        {"sub": None},
        {"sub": "s-1\n"},
        {"sub": "ana@x.example"},
        {"sub": "s-2", "email": "ana@x.example"},
        {"sub": "s-2", "email": "ana@x.example", "email_verified": "true"},
        {"sub": "s-2", "email": "ana@x.example", "email_verified": False},
        {"sub": "s-2", "email": "s-1", "email_verified": True},
        {"sub": "s-2", "email": ["ana@x.example"], "email_verified": True},
    ],
)
def test_nobody_else_is(access: Access, identities: Identities, claims: dict[str, object]) -> None:
    access.add_linked("ana", SUBJECT, by="t")
    identities.link("ana", ADDRESS, by="t")
    assert identities.holder_of(ISSUER, claims) is None
    assert identities.holder_of("https://other.example", {"sub": "s-1"}) is None


def test_an_identity_is_one_persons(access: Access, identities: Identities) -> None:
    for name in ("ana", "bob"):
        access.add_analyst(name, by="t")
    identities.link("ana", SUBJECT, by="t")
    for attempt in (
        lambda: identities.link("bob", SUBJECT, by="t"),
        lambda: identities.link("ana", SUBJECT, by="t"),
        lambda: access.add_linked("dan", SUBJECT, by="t"),
        lambda: access.add_linked("ana", ADDRESS, by="t"),
    ):
        with pytest.raises(Conflict):
            attempt()
    assert [analyst.name for analyst in access.analysts()] == ["ana", "bob"]
    with pytest.raises(NotFound):
        identities.link("dan", ADDRESS, by="t")
    assert identities.unlink("ana", by="t") == 1
    identities.link("bob", SUBJECT, by="t")
    found = identities.holder_of(ISSUER, {"sub": "s-1"})
    assert found is not None
    assert found.name == "bob"
    assert identities.of(access.analyst("ana").id) == ()


def test_a_revoked_holder_is_nobody(access: Access, identities: Identities) -> None:
    access.add_linked("ana", SUBJECT, by="t")
    access.revoke("ana", by="t")
    assert identities.holder_of(ISSUER, {"sub": "s-1"}) is None
    with pytest.raises(Conflict):
        identities.link("ana", ADDRESS, by="t")


def test_a_session_ends_with_its_link(
    access: Access, identities: Identities, engine: Engine, clock: SetClock
) -> None:
    sign_ins = SignIns(engine, access, identities, clock)
    access.add_linked("carol", SUBJECT, frozenset({Role.AUDITOR}), by="t")
    carol = identities.holder_of(ISSUER, {"sub": "s-1"})
    assert carol is not None
    sessions = [sign_ins.begin(carol, by="t") for _ in range(3)]
    assert [sign_ins.holder(s) for s in sessions] == [carol] * 3
    sign_ins.end(sessions[0], by="t")
    assert sign_ins.holder(sessions[0]) is None
    assert sign_ins.end_all("carol", by="t") == 2
    session = sign_ins.begin(carol, by="t")
    assert sign_ins.holder(session) == carol
    identities.unlink("carol", by="t")
    assert sign_ins.holder(session) is None
    assert Ledger(engine, clock, 60).verify() == []


def test_an_edited_link_is_refused_and_found(
    access: Access, identities: Identities, engine: Engine, clock: SetClock
) -> None:
    """Who writes to the database gives bob ana's subject, or takes the end of a link back."""
    access.add_linked("ana", SUBJECT, by="t")
    access.add_linked("bob", ADDRESS, by="t")
    edits = [
        "UPDATE access_identities SET value = 's-9' WHERE claim = 'sub'",
        (
            "UPDATE access_identities SET principal_id = (SELECT id FROM access_principals WHERE "
            "name = 'bob')"
        ),
    ]
    for edit in edits:
        with engine.begin() as connection:
            connection.execute(text(edit))
        with pytest.raises(Unavailable):
            identities.holder_of(ISSUER, {"sub": "s-9"})
        assert any("identity" in finding for finding in Ledger(engine, clock, 60).verify())


@pytest.mark.parametrize("value", ["", "x" * 256, "a\nb", "\x00"])
def test_a_subject_is_short_and_printable(value: str) -> None:
    with pytest.raises(InvalidRequest):
        Identity(ISSUER, "sub", value)
