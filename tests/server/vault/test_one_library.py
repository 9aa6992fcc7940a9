# SPDX-License-Identifier: Apache-2.0
"""A process never opens one SQLite file through two libraries (POSIX locks belong to a process).

The whole of `init`, `dataset load`, a second load, a read, `dataset register` of another SQLite
file and answers about both runs in one process, whose every opening of a file by sqlite3 or by ADBC
is recorded.
"""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import refuse_shared_file
from support.databases import watched_session
from support.databases.vaults import csv_file
from support.processes.forked import forked

PATIENCE = 300  # seconds


def test_each_file_has_one_library(tmp_path: Path) -> None:
    csv_file(tmp_path, "x\n1\n2\n")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.executescript("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1), (2), (3);")
    (tmp_path / "s.yaml").write_text("columns: {x: {kind: integer, lower: 0, upper: 9}}")
    environment = {"PATH": os.environ["PATH"], "RETICENT_REPLY_GRID_MS": "0"}
    log = tmp_path / "session.log"
    session = forked(watched_session.main, (str(tmp_path),), environment, log)
    with session.stdout as told:
        said = told.read()
    assert (session.wait(PATIENCE), log.read_text()) == (0, "")
    seen = json.loads(said)
    assert (seen["rows"], seen["statuses"]) == (2, ["reply", "reply"])
    assert {Path(name).name for name in seen["sqlite3"]} == {"reticent.db"}
    assert {Path(uri.partition("?")[0]).name for uri in seen["adbc"]} == {
        "reticent-vault.db",
        "other.db",
    }


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_file_under_two_names_is_refused(tmp_path: Path, link: Callable[..., None]) -> None:
    (tmp_path / "one.db").touch()
    link(tmp_path / "two.db", tmp_path / "one.db")
    refuse_shared_file(f"sqlite:///{tmp_path / 'one.db'}", f"sqlite:///{tmp_path / 'three.db'}")
    with pytest.raises(CuratorError):
        refuse_shared_file(f"sqlite:///{tmp_path / 'one.db'}", f"sqlite:///{tmp_path / 'two.db'}")
