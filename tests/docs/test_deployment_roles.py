# SPDX-License-Identifier: Apache-2.0
"""The roles of the compose file on a real PostgreSQL: each can do its work with its password, and
no more.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.query import Privacy
from reticent_server.errors import CuratorError
from reticent_server.kinds.mean.kind import Mean
from reticent_server.pipeline.answer import Ask, answer
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from support.databases import postgresql
from support.databases.postgresql import Cluster
from support.documents.code_blocks import ROOT
from support.installations.small import SCHEMA, opened

pytestmark = pytest.mark.postgres


@dataclass(frozen=True)
class Deployment:
    """PostgreSQL with the roles of the compose file, and the folder `deploy` with its passwords."""

    folder: Path
    port: int

    def settings(self, container: str) -> Settings:
        """Those of a container: its roles, and its file of passwords."""
        ledger, vault = {
            "init": ("ledger_owner", "vault_owner"),
            "server": ("ledger", "vault"),
            "curator": ("ledger", "vault_owner"),
        }[container]
        os.environ["PGPASSFILE"] = str(self.folder / "secrets" / container / "passwords")
        place = f"db:{self.port}"
        return Settings(
            database_url=f"postgresql://{ledger}@{place}/ledger?hostaddr=127.0.0.1",
            vault_url=f"postgresql://{vault}@{place}/vault?hostaddr=127.0.0.1",
            secrets_file=self.folder / "state.json",
            anchor_file=self.folder / "anchors/ledger",
            reply_grid_ms=0,
        )

    def refused(self, container: str, database: str, statement: str) -> str:
        """What PostgreSQL says where a container's role tries a statement."""
        settings = self.settings(container)
        url = settings.vault_url if database == "vault" else settings.database_url
        with psycopg.connect(url) as connection, pytest.raises(psycopg.Error) as error:
            connection.execute(statement.encode())
        return str(error.value)


def free_port() -> int:
    """One that the system gives nobody who asks for any: below those, so that it is free still when
    it is used.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    lowest = int(given.read_text().split()[0]) if given.exists() else 32_768
    first = 10_000 + os.getpid() % 10_000  # two runs on one machine begin at different ones
    for port in range(first, lowest):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    programs = postgresql.binaries()
    if programs is None:
        pytest.skip("no PostgreSQL binaries")
    folder = tmp_path_factory.mktemp("deployment")
    for name in ("make-secrets.sh", "postgres-init.sh"):
        shutil.copy(ROOT / "deploy" / name, folder)
    path = os.environ["PATH"]
    (folder / "chown").write_text("#!/bin/sh\n")  # one user here is all of the containers' users
    (folder / "chown").chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{path}"}
    subprocess.run([folder / "make-secrets.sh"], env=environment, check=True)
    port = free_port()
    for file in folder.glob("secrets/*/passwords"):
        text = file.read_text().replace("db:5432:", f"db:{port}:")
        file.chmod(0o600)
        file.write_text(text)
    cluster = Cluster(port=port)
    try:
        given = {
            "PATH": f"{programs}{os.pathsep}{path}",
            "PGHOST": str(cluster.home),
            "PGPORT": str(port),
            "SECRETS": str(folder / "secrets/db"),
        }
        subprocess.run([folder / "postgres-init.sh"], env=given, check=True, capture_output=True)
        yield Deployment(folder, port)
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def ready(deployment: Deployment) -> Iterator[Services]:
    """`init` by the owners, a table by the loader; then the server, as the least of roles."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PGPASSFILE", "")
        prepare(deployment.settings("init"))
        (deployment.folder / "schema.yaml").write_text(SCHEMA)
        (deployment.folder / "people.csv").write_text("y,x,k,g,b,m\n" + "1.5,0.5,3,a,1,0.5\n" * 200)
        load_dataset(
            deployment.settings("curator"),
            "people",
            deployment.folder / "people.csv",
            deployment.folder / "schema.yaml",
        )
        with opened(deployment.settings("server")) as services:
            yield services


@pytest.mark.slow
def test_the_server_s_roles_are_enough_to_answer(ready: Services, deployment: Deployment) -> None:
    services = ready
    deployment.settings("server")  # its passwords, whoever's another test has set
    budget = {"epsilon": 10, "delta": 1e-3, "rule": "basic", "by": "t"}
    services.ledger.set_population_cap("people", **budget)
    analyst_id, key = services.access.add_analyst("ana", by="t")
    services.ledger.set_analyst_budget(analyst_id, "people", "people", **budget)
    services.access.grant(analyst_id, "people", by="t")
    holder = services.access.authenticate(key)
    assert holder is not None
    released = answer(services, holder, Ask("people", Mean("y"), Privacy(1.0)))
    assert b'"status":"reply"' in released
    services.access.revoke_grant(analyst_id, "people", by="t")
    assert services.rates.wait(holder.key_id) == 0
    assert services.form_tokens.use("token", 60)
    assert services.readiness.away() == []
    assert services.ledger.verify() == []


CHANGED_FUNCTION = (
    "CREATE OR REPLACE FUNCTION ledger_entries_immutable() RETURNS trigger LANGUAGE plpgsql "
    "AS $$ BEGIN RETURN NEW; END $$"
)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER ledger_entries_immutable ON ledger_entries",
        "ALTER TABLE ledger_entries DISABLE TRIGGER ALL",
        "ALTER TABLE ledger_entries DROP CONSTRAINT ck_ledger_entries_about",
        "ALTER TABLE ledger_accounts DROP CONSTRAINT ck_ledger_accounts_primary_spent",
        "DROP FUNCTION ledger_entries_immutable() CASCADE",
        CHANGED_FUNCTION,
        "DROP TABLE ledger_entries",
        "TRUNCATE ledger_entries",
        "CREATE TABLE other (x int)",
        "SET ROLE ledger_owner",
        "SET session_replication_role = replica",
    ],
)
def test_the_server_s_role_cannot_touch_what_keeps_the_ledger(
    ready: Services, deployment: Deployment, statement: str
) -> None:
    said = deployment.refused("server", "ledger", statement)
    assert "permission denied" in said or "must be owner" in said


@pytest.mark.parametrize(
    "change", ["UPDATE ledger_entries SET at = 'x'", "DELETE FROM ledger_entries"]
)
def test_nor_change_an_entry(ready: Services, deployment: Deployment, change: str) -> None:
    for container in ("server", "init"):
        assert "ledger entries are immutable" in deployment.refused(container, "ledger", change)


def test_the_server_reads_the_vault_and_changes_nothing_there(
    ready: Services, deployment: Deployment
) -> None:
    (table,) = ready.catalog.vault_tables()
    for statement in (
        f"UPDATE {table} SET v0 = 1",
        f"DELETE FROM {table}",
        f"DROP TABLE {table}",
        "CREATE TABLE other (x int)",
    ):
        said = deployment.refused("server", "vault", statement)
        assert "permission denied" in said or "must be owner" in said


def test_a_role_of_the_ledger_cannot_connect_to_the_vault(
    ready: Services, deployment: Deployment
) -> None:
    settings = deployment.settings("init")
    for role, database in (("ledger_owner", "vault"), ("vault_owner", "ledger")):
        url = settings.database_url if role.startswith("ledger") else settings.vault_url
        before, after = url.split("?")
        other = f"{before.rpartition('/')[0]}/{database}?{after}"
        password = (deployment.folder / "secrets/db" / role).read_text()
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(other, password=password)


def test_without_its_passwords_nobody_gets_in(
    ready: Services, deployment: Deployment, tmp_path: Path
) -> None:
    settings = deployment.settings("server")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PGPASSFILE", str(tmp_path / "none"))
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(settings.vault_url)


@pytest.mark.slow
def test_the_server_s_role_cannot_load_a_table(ready: Services, deployment: Deployment) -> None:
    """An error in words, and nothing is made."""
    files = [deployment.folder / name for name in ("people.csv", "schema.yaml")]
    with pytest.raises(CuratorError, match="vault"):
        load_dataset(deployment.settings("server"), "again", *files)
    assert [facts.name for facts in ready.catalog.list()] == ["people"]
