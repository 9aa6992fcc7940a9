"""A process never opens one SQLite file through two libraries (POSIX locks belong to a process).

The whole of `init`, `dataset load`, a second load, a read, `dataset register` of another SQLite file and
answers about both runs in one process, whose every opening of a file by sqlite3 or by ADBC is recorded.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import refuse_shared_file
from support.databases.vaults import csv_file

WATCHED = """
import json, sys
from pathlib import Path

opened = {"sqlite3": set(), "adbc": set()}

def watch(event, args):
    if event == "sqlite3.connect":
        opened["sqlite3"].add(str(args[0]))

sys.addaudithook(watch)
import adbc_driver_manager

class WatchedDatabase(adbc_driver_manager.AdbcDatabase):
    def __new__(cls, **options):
        opened["adbc"].add(options["uri"])
        return super().__new__(cls, **options)

adbc_driver_manager.AdbcDatabase = WatchedDatabase

from reticent_server.cli.dataset_load import load_dataset, open_catalog
from reticent_server.cli.dataset_register import Place, register_dataset
from reticent_server.cli.init import prepare
from reticent_server.settings import Settings
from reticent_server.vault.readers import open_reader

settings = Settings()
prepare(settings)
for _ in range(2):
    facts = load_dataset(settings, "d", Path("rows.csv"), Path("s.yaml")).facts
with open_catalog(settings) as catalog:
    source = catalog.source(facts.version_id)
rows = sum(b.unwrap().num_rows for b in open_reader(settings.vault_url, source).batches(["x"]))
Path("other.yaml").write_text(Path("s.yaml").read_text())
register_dataset(settings, "r", Place(url="sqlite:///other.db", table="t"), Path("other.yaml"))

from reticent_server.app import build_services, create_app
from reticent_server.domain.query import Privacy
from reticent_server.kinds.mean.kind import Mean
from reticent_server.pipeline import answer
services = build_services(settings)
create_app(services)
analyst_id, key = services.access.add_analyst("ana", by="t")
statuses = []
for name in ("d", "r"):
    services.ledger.set_population_cap(name, epsilon=9, delta=1e-3, rule="basic", by="t")
    services.ledger.set_analyst_budget(analyst_id, name, name, epsilon=9, delta=1e-3, by="t")
    services.access.grant(analyst_id, name, by="t")
    ask = answer.Ask(name, Mean("x"), Privacy(1.0))
    body = answer.answer(services, services.access.authenticate(key), ask)
    statuses.append(json.loads(body)["status"])
services.engine.close()
json.dump({"rows": rows, "statuses": statuses} | {k: sorted(v) for k, v in opened.items()}, sys.stdout)
"""


def test_each_file_has_one_library(tmp_path: Path) -> None:
    csv_file(tmp_path, "x\n1\n2\n")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.executescript("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1), (2), (3);")
    (tmp_path / "s.yaml").write_text("columns: {x: {kind: integer, lower: 0, upper: 9}}")
    paths = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", WATCHED],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": paths,
            "RETICENT_REPLY_GRID_MS": "0",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    seen = json.loads(run.stdout)
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
