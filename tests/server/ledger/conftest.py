import pytest
from sqlalchemy import Engine

from reticent_server.ledger.service import Ledger
from support.databases.migrated import SetClock, clock, database_url, engine
from support.ledger.accounts import LEASE_SECONDS

__all__ = ["clock", "database_url", "engine"]


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    return Ledger(engine, clock, LEASE_SECONDS)
