# SPDX-License-Identifier: Apache-2.0
"""Everything that a curator can do to access and catalogue, once: rows of every chained table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from reticent_server.access.approvals import Approvals
from reticent_server.access.identities import Identities
from reticent_server.access.identity_rows import Identity
from reticent_server.access.peppers import only
from reticent_server.access.projects import Charter, Projects
from reticent_server.access.protocols import Protocols
from reticent_server.access.requests import Requests
from reticent_server.access.rotation import Rotation
from reticent_server.access.secret_places import SecretsText
from reticent_server.access.secrets import Secrets, secrets_text
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.catalog.repository import Catalog
from reticent_server.database import connect
from reticent_server.domain.facts import ColumnProfile, Policy, Profile
from reticent_server.domain.protocol import Agreed
from reticent_server.domain.roles import STAFF
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import SecondPerson
from reticent_server.ledger.budgets import BudgetTerms
from reticent_server.ledger.service import Ledger
from support.databases.migrated import SetClock, copied, lasting
from support.ledger.accounts import LEASE_SECONDS

PEPPER = only(b"p" * 32)
SCHEMA = Schema((Column("price", ColumnKind.NUMERIC, 0.0, 100.0),))
SOURCE = VaultTable("t", 10, (StoredColumn("price", "v0"),))


@dataclass(frozen=True)
class World:
    """access, catalog, ledger: on one database. keys: by name. version_id: of the data set
    houses.
    """

    access: Access
    sign_ins: SignIns
    catalog: Catalog
    ledger: Ledger
    keys: dict[str, str]
    analyst_id: str
    version_id: str


def load(catalog: Catalog, name: str = "houses") -> str:
    """The id of a new version."""
    made = catalog.add_version(
        name=name, population="people", schema=SCHEMA, n=10, source=SOURCE, by="cli:carol"
    )
    return made.version_id


AGREED = """{"protocol": 1, "epsilon": 1, "study": {"variables": ["price"]},
 "columns": {"price": {"kind": "numeric"}}, "sites": {"north": {}, "south": {}}}"""


def make_world(engine: Engine, clock: SetClock) -> World:
    """A curator with a session, two analysts, one of them with a grant; a data set with a
    profile.
    """
    access, catalog = Access(engine, PEPPER, clock), Catalog(engine, clock)
    ledger = Ledger(engine, clock, LEASE_SECONDS)
    catalog.identity()
    version_id = load(catalog)
    catalog.set_policy("houses", Policy(("unconditional",), 2.0, 1e-7), by="cli:carol")
    catalog.set_profile(
        version_id, Profile({"price": ColumnProfile(quantiles=(0.1, 0.3))}, "rel_1"), by="curator"
    )
    for release_id in ("rel_1", "rel_2"):
        catalog.publish(release_id, "houses", by="console:carol")
    identities = Identities(engine, clock)
    sign_ins = SignIns(engine, access, identities, clock)
    keys = {"carol": access.add_curator("carol", STAFF, by="cli:root")}
    analyst_id, keys["ana"] = access.add_analyst("ana", by="console:carol")
    _, keys["bob"] = access.add_analyst("bob", by="console:carol", expires_at=clock.now())
    access.grant(analyst_id, "houses", by="console:carol")
    identities.link("ana", Identity("https://id.example", "sub", "s-1"), by="cli:root")
    carol = access.authenticate(keys["carol"])
    assert carol is not None
    for _ in range(2):
        session_id = sign_ins.begin(carol, by="console:carol")
    sign_ins.end(session_id, by="console:carol")
    make_project(Projects(engine, clock), Requests(engine, clock), ledger, analyst_id)
    propose(Approvals(engine, clock))
    agreed = Agreed.from_text(AGREED)
    Protocols(engine, clock).accept(agreed, "houses", "north", "e30..AA", by="cli:carol")
    rotate(engine, clock)
    return World(access, sign_ins, catalog, ledger, keys, analyst_id, version_id)


@contextmanager
def inhabited(backend: str, folder: Path) -> Iterator[str]:
    """The URL of a copy of a database with a world, which `reopened` finds there; SQLite's file is
    in `folder`.
    """
    url, _ = _made(backend)
    with copied(url, folder) as copy:
        yield copy


def reopened(engine: Engine, clock: SetClock) -> World:
    """The world of an inhabited database."""
    _, made = _made(engine.dialect.name)
    access = Access(engine, PEPPER, clock)
    sign_ins = SignIns(engine, access, Identities(engine, clock), clock)
    ledger = Ledger(engine, clock, LEASE_SECONDS)
    return replace(
        made, access=access, sign_ins=sign_ins, catalog=Catalog(engine, clock), ledger=ledger
    )


@cache
def _made(backend: str) -> tuple[str, World]:
    """(URL, world): made once a process."""
    url = lasting(backend)
    engine = connect(url)
    world = make_world(engine, SetClock())
    engine.dispose()
    return url, world


def rotate(engine: Engine, clock: SetClock) -> None:
    """A new pepper, stored nowhere: the keys of this world stay under the first."""
    known = secrets_text(Secrets(PEPPER()))
    Rotation(engine, SecretsText(known), clock).rotate(by="cli:root", write=lambda _: None)


def propose(approvals: Approvals) -> None:
    """carol proposes a credit, which bert approves."""
    try:
        approvals.take("credit", "people", {"primary": 1}, by="console:carol")
    except SecondPerson as needed:
        approvals.approve(needed.proposal_id, by="console:bert")


def make_project(projects: Projects, requests: Requests, ledger: Ledger, analyst_id: str) -> None:
    """ana asks twice; the first time she gets a project with bob and a budget."""
    asked = [requests.make(analyst_id, {"name": name}).id for name in ("trial", "other")]
    offers = [("houses", "people", BudgetTerms(1.0, 1e-6, None))]
    projects.approve(
        asked[0],
        Charter("trial", "To see", ("ana", "bob"), ("houses",), "2999-12-31"),
        "As asked.",
        by="console:carol",
        budgets=lambda c, pr: ledger.open_accounts(c, pr, offers, "console:carol"),
    )


@contextmanager
def owners(engine: Engine) -> Iterator[Connection]:
    """A transaction of the database's owner, who has taken away what would refuse; rolled back."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            for statement in (
                "PRAGMA defer_foreign_keys = ON",
                "PRAGMA ignore_check_constraints = ON",
                "DROP TRIGGER ledger_entries_no_update",
                "DROP TRIGGER ledger_entries_no_delete",
            ):
                connection.exec_driver_sql(statement)
        else:
            for table, name in connection.execute(text(_CONSTRAINTS)).all():
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            connection.exec_driver_sql("ALTER TABLE ledger_entries DISABLE TRIGGER ALL")
        yield connection
        connection.rollback()
    engine.dispose()


_CONSTRAINTS = """SELECT conrelid::regclass::text, conname FROM pg_constraint
  WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace"""
