"""A process never opens one SQLite file through two libraries (POSIX locks belong to a process).

The whole of `init`, `dataset load`, a second load and a read runs in one process, whose every
opening of a file by sqlite3 or by ADBC is recorded.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from support_vault import csv_file

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
json.dump({"rows": rows} | {k: sorted(v) for k, v in opened.items()}, sys.stdout)
"""


def test_each_file_has_one_library(tmp_path: Path) -> None:
    csv_file(tmp_path, "x\n1\n2\n")
    (tmp_path / "s.yaml").write_text("columns: {x: {kind: integer, lower: 0, upper: 9}}")
    paths = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", WATCHED],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    seen = json.loads(run.stdout)
    assert seen["rows"] == 2
    assert {Path(name).name for name in seen["sqlite3"]} == {"reticent.db"}
    assert {Path(uri.partition("?")[0]).name for uri in seen["adbc"]} == {"reticent-vault.db"}
