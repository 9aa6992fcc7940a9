"""The small installation on SQLite and on PostgreSQL, for suites that run on both."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

import support_postgres
from support_databases import BACKENDS
from support_installation import Installation, build, copied


@cache
def template(backend: str) -> Installation:
    """Built once a run."""
    directory = Path(mkdtemp(prefix="reticent-test-"))
    if backend == "sqlite":
        return build(directory)
    return build(directory, (support_postgres.new_database(), support_postgres.new_database()))


@pytest.fixture(params=BACKENDS)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """A fresh copy on each of the two databases."""
    with copied(template(request.param), tmp_path / "installation") as made:
        yield made
