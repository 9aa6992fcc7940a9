"""A vault on SQLite and on PostgreSQL."""

from pathlib import Path

import pytest

from support.databases import postgresql
from support.databases.vaults import Vault


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Vault:
    sqlite = request.param == "sqlite"
    return Vault(f"sqlite:///{tmp_path}/vault.db" if sqlite else postgresql.new_database())


@pytest.fixture
def sqlite_vault(tmp_path: Path) -> Vault:
    return Vault(f"sqlite:///{tmp_path}/vault.db")
