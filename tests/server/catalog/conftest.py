"""A catalogue, fully migrated, on SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import Engine

from reticent_server.catalog.repository import Catalog
from reticent_server.domain.clock import SystemClock
from support.databases.migrated import database_url, engine

__all__ = ["catalog", "database_url", "engine"]


@pytest.fixture
def catalog(engine: Engine) -> Catalog:
    return Catalog(engine, SystemClock())
