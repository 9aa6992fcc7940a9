# SPDX-License-Identifier: Apache-2.0
"""Tamperings by hand, on both databases: `ledger verify` names each of them.

(test_verify and chain/test_acts change every column of every row; these are what somebody would do
it for.)
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from reticent_server.chain.entries import GENESIS, entry_hash
from reticent_server.chain.repository import chain_head
from reticent_server.domain.amounts import Amounts
from reticent_server.ledger.service import Fresh, Ledger, problems_in
from support.databases.migrated import SetClock
from support.installations.curator_acts import make_world, owners
from support.ledger.accounts import ask, open_accounts

FREE = """INSERT INTO ledger_releases (id, owner, dataset, version_id, population, request,
  request_sha256, epsilon, delta, rho, rho_delta, created_at, status, body, lease, lease_until_ms)
  SELECT 'rel_free', owner, dataset, version_id, population, request, request_sha256, epsilon,
    delta,
  rho, rho_delta, created_at, status, body, lease, lease_until_ms FROM ledger_releases
  WHERE body IS NOT NULL"""
TAMPERINGS = {
    "a spent budget that is given back": "UPDATE ledger_accounts SET primary_spent = 0",
    "a cap that is raised": "UPDATE ledger_accounts SET primary_cap = primary_cap * 10",
    "an account under the other rule": "UPDATE ledger_accounts SET rule = 'zcdp'",
    "an account of another population": "UPDATE ledger_accounts SET population = 'nobody'",
    "an account that is gone": "DELETE FROM ledger_accounts WHERE analyst_id = 'alice'",
    "an answer that is changed": "UPDATE ledger_releases SET body = {bytes} WHERE body IS NOT NULL",
    "an answer that is taken back": "UPDATE ledger_releases SET body = NULL, status = 'pending'",
    "a release that cost less": "UPDATE ledger_releases SET epsilon = epsilon - 1",
    "a release of somebody else": "UPDATE ledger_releases SET owner = 'bob' WHERE owner = 'alice'",
    "a release with another question": "UPDATE ledger_releases SET request = '{{}}'",
    "a release of another version": "UPDATE ledger_releases SET version_id = 'v2'",
    "a release that nobody paid for": FREE,
    "a release that is gone": "DELETE FROM ledger_releases",
    "a charge that is smaller": (
        "UPDATE ledger_entries SET primary_change = 1 WHERE action = 'debit'"
    ),
    "a charge on another account": (
        "UPDATE ledger_entries SET account = 'population:people' WHERE action = 'debit'"
    ),
    "a charge by somebody else": "UPDATE ledger_entries SET actor = 'bob' WHERE action = 'debit'",
    "an entry at another time": "UPDATE ledger_entries SET at = '2020' WHERE action = 'cap'",
    "a reason that reads better": (
        "UPDATE ledger_entries SET detail = replace(detail, 'mistake', 'court order') "
        "WHERE action = 'credit'"
    ),
    "entries that are cut off": "DELETE FROM ledger_entries WHERE seq > 3",
    "an entry in the middle that is gone": "DELETE FROM ledger_entries WHERE seq = 4",
    "a head that names another entry": "UPDATE ledger_head SET hash = '{genesis}'",
    "a chain that says it is longer": "UPDATE ledger_head SET seq = seq + 1",
    "a key that is given to the curator": (
        "UPDATE access_keys SET principal_id = (SELECT id FROM access_principals "
        "WHERE role = 'curator') WHERE principal_id <> (SELECT id FROM access_principals "
        "WHERE role = 'curator')"
    ),
    "an analyst who is made a curator": (
        "UPDATE access_principals SET role = 'curator' WHERE name = 'ana'"
    ),
    "a key that does not expire": (
        "UPDATE access_keys SET expires_ms = NULL WHERE expires_ms IS NOT NULL"
    ),
    "a revoked session that lives": (
        "UPDATE access_sessions SET ended_at = NULL WHERE ended_at IS NOT NULL"
    ),
    "a grant that nobody gave": (
        "INSERT INTO access_grants SELECT analyst_id, 'flats', granted_at FROM access_grants"
    ),
    "bounds that make noise small": (
        "UPDATE dataset_versions SET schema = {json}replace(CAST(schema AS TEXT), '100.0', "
        "'0.1'){end}"
    ),
    "a policy that allows more": (
        "UPDATE datasets SET policy = {json}replace(CAST(policy AS TEXT), '2.0', '99.0'){end}"
    ),
    "a data set with a cap of its own": "UPDATE datasets SET population = 'mine'",
    "a profile that says something else": (
        "UPDATE dataset_versions SET profile = {json}replace(CAST(profile AS TEXT), '0.3', "
        "'9'){end}"
    ),
}


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    """Of a world with charges, answers, a credit and every administrative act."""
    made = make_world(engine, clock).ledger
    open_accounts(made)
    for _ in range(2):
        outcome = ask(made)
        assert isinstance(outcome, Fresh)
    made.settle(outcome.reservation, "reply", b'{"value":1}')
    made.set_population_cap("people", epsilon=2, delta=1e-6, by="carol")
    made.credit("population:people", Amounts(1, 0), reason="a mistake", by="carol")
    return made


@pytest.fixture
def owner(ledger: Ledger, engine: Engine) -> Iterator[Connection]:
    with owners(engine) as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.sample(4)
def test_every_tampering_is_named(owner: Connection) -> None:
    """Each on its own; untouched, the ledger is in order."""
    postgres = owner.dialect.name == "postgresql"
    words = {
        "bytes": "'\\x7b7d'" if postgres else "x'7b7d'",
        "genesis": GENESIS,
        "json": "CAST(" if postgres else "",
        "end": " AS JSON)" if postgres else "",
    }
    assert problems_in(owner) == []
    missed = []
    for name, statement in TAMPERINGS.items():
        nested = owner.begin_nested()
        assert owner.exec_driver_sql(statement.format(**words)).rowcount >= 1, name
        if problems_in(owner) == []:
            missed.append(name)
        nested.rollback()
    assert missed == []
    assert len(TAMPERINGS) >= 22
    assert problems_in(owner) == []


def rehash(
    connection: Connection, change: dict[int, dict[str, Any]], without: str | None = None
) -> None:
    """Changes entries and hashes the whole chain again, as a patient owner could. without: a member
    of details.
    """
    previous, seq = GENESIS, 0
    for found in (
        connection.execute(text("SELECT * FROM ledger_entries ORDER BY seq")).mappings().all()
    ):
        row = dict(found) | {"detail": json.loads(found["detail"])}
        row.pop("hash")
        seq = row["seq"]
        row["detail"] |= change.get(seq, {})
        row["detail"].pop(without, None)
        hashed = (
            row if row["subject"] is not None else {k: v for k, v in row.items() if k != "subject"}
        )
        previous = entry_hash(previous, hashed)
        connection.execute(
            text("UPDATE ledger_entries SET detail = :detail, hash = :hash WHERE seq = :seq"),
            {"detail": json.dumps(row["detail"]), "hash": previous, "seq": seq},
        )
    connection.execute(text("UPDATE ledger_head SET hash = :hash"), {"hash": previous})


def test_only_a_head_that_is_kept_elsewhere_shows_a_chain_that_was_rewritten_in_full(
    owner: Connection,
) -> None:
    kept = chain_head(owner)[1]
    rehash(owner, {1: {"more": 1}})
    assert problems_in(owner) == []
    assert "anchored head" in problems_in(owner, [kept])[0]


def test_a_ledger_of_an_earlier_version_is_in_order(owner: Connection) -> None:
    """Its entries say nothing of turns, and its settled releases still have the lease that they
    had.
    """
    rehash(owner, {}, without="turn")
    owner.execute(text("UPDATE ledger_releases SET lease = 'x', lease_until_ms = 7, start_ms = 1"))
    assert problems_in(owner) == []
