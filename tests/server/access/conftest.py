import pytest
from sqlalchemy import Engine

from reticent_server.access.peppers import only
from reticent_server.access.service import Access
from support.databases.migrated import SetClock, clock, database_url, engine

__all__ = ["clock", "database_url", "engine"]


@pytest.fixture
def access(engine: Engine, clock: SetClock) -> Access:
    return Access(engine, only(b"p" * 32), clock)
