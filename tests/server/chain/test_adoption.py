# SPDX-License-Identifier: Apache-2.0
"""A database of an earlier version is upgraded into the chain: its rows are adopted, then held to
it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from reticent_server import database
from reticent_server.access.keys import digest
from reticent_server.access.service import Access
from reticent_server.catalog.repository import Catalog
from reticent_server.chain.entries import GENESIS, Draft, link
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.roles import STAFF, Role
from reticent_server.ledger.service import Ledger
from support.databases import postgresql
from support.databases.migrated import BACKENDS, SetClock
from support.installations.curator_acts import PEPPER
from support.ledger.accounts import LEASE_SECONDS

KEY = f"rk_{'0' * 16}_{'A' * 43}"
ROWS = (
    "INSERT INTO access_principals VALUES ('an_1', 'ana', 'analyst', '2024', NULL)",
    "INSERT INTO access_principals VALUES ('cu_1', 'carol', 'curator', '2024', NULL)",
    (
        f"INSERT INTO access_keys VALUES ('{'0' * 16}', 'an_1', '{digest(PEPPER().in_use, KEY)}', "
        "'2024', NULL, NULL)"
    ),
    "INSERT INTO access_grants VALUES ('an_1', 'houses', '2024')",
    "INSERT INTO catalog_identity VALUES (1, 'abc')",
    """INSERT INTO datasets VALUES ('houses', 'people', '{"tiers": ["unconditional"],
       "max_epsilon": 0.30000000000000004, "default_delta": null}', false)""",
    """INSERT INTO dataset_versions VALUES ('v1', 'houses', 1, 10, '{"description": "é",
       "unit": {"column": null, "max_rows": 1}, "columns": [{"name": "x", "kind": "numeric",
       "lower": 0.0, "upper": 1e-3, "levels": [], "missing": []}]}',
       '{"kind": "vault_table", "table": "t", "n": 10, "columns": []}', NULL)""",
)


@pytest.fixture(params=BACKENDS)
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of revision 0003, with a row in every table of access and catalogue, and a charge."""
    postgres = request.param == "postgresql"
    url = postgresql.new_database() if postgres else f"sqlite:///{tmp_path / 'old.db'}"
    database.upgrade(url, "0003")
    engine = database.connect(url)
    with database.writing(engine) as connection:
        for row in ROWS:
            connection.execute(text(row.replace(":", r"\:")))
    engine.dispose()
    yield url
    if postgres:
        postgresql.drop_database(url)


@pytest.mark.slow
def test_rows_of_an_earlier_version_are_adopted_once(old_database: str) -> None:
    database.upgrade(old_database)
    engine, clock = database.connect(old_database), SetClock()
    ledger = Ledger(engine, clock, LEASE_SECONDS)
    assert ledger.verify() == []
    adopted = [(e.draft.action, e.draft.subject) for e in ledger.entries()]
    assert {action for action, _ in adopted} == {"adopt"}
    assert len(adopted) == 9
    assert {"project:an_1", "member:an_1:an_1"} <= {subject for _, subject in adopted}
    access, catalog = Access(engine, PEPPER, clock), Catalog(engine, clock)
    ana = access.authenticate(KEY)
    assert ana is not None
    assert access.granted(ana.id, "houses")
    assert [c.roles for c in access.curators()] == [STAFF]
    access.set_roles("carol", frozenset({Role.AUDITOR}), by="t")
    assert [c.roles for c in access.curators()] == [frozenset({Role.AUDITOR})]
    assert ledger.verify() == []
    assert catalog.facts("houses").schema.columns[0].upper == 1e-3
    # An edit after the upgrade is not adopted by the next one.
    with database.writing(engine) as connection:
        connection.execute(text("UPDATE access_principals SET role = 'curator' WHERE id = 'an_1'"))
    database.upgrade(old_database)
    assert ledger.verify() == ["The row principal:an_1 is not what its last entry says."]
    engine.dispose()


def test_the_entries_of_an_earlier_version_keep_their_hashes() -> None:
    """The constant is what the first version, whose entries had no subject, computed."""
    detail = {"release_sha256": "é"}
    account = "population:people"
    draft = Draft("debit", account, "an_1", "2024-05-01", "rel_1", Amounts(5, 7), detail)
    expected = "0a7c1ff92396abd0774aa2978b16ec0f5d5643245e9d8eeb75c36eb5a6119182"
    assert link(GENESIS, 1, draft).hash == expected
