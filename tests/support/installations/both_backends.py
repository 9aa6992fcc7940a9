"""The small installation on SQLite and on PostgreSQL, for suites that run on both."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from support.databases import postgresql
from support.databases.migrated import BACKENDS
from support.installations.small import Installation, build, copied


@cache
def template(backend: str) -> Installation:
    """Built once a run."""
    directory = Path(mkdtemp(prefix="reticent-test-"))
    if backend == "sqlite":
        return build(directory)
    return build(directory, (postgresql.new_database(), postgresql.new_database()))


@pytest.fixture(params=BACKENDS)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """A fresh copy on each of the two databases."""
    with copied(template(request.param), tmp_path / "installation") as made:
        yield made
