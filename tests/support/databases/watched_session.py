# SPDX-License-Identifier: Apache-2.0
"""A whole session of one process, whose every opening of a file by sqlite3 or by ADBC is recorded
and printed at its end.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import adbc_driver_manager

from reticent_server.app import build_services, create_app
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.dataset_register import SourcePlace, register_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.query import Privacy
from reticent_server.domain.source import VaultTable
from reticent_server.kinds.mean.kind import Mean
from reticent_server.opening import open_catalog
from reticent_server.pipeline import answer
from reticent_server.settings import Settings
from reticent_server.vault.readers import open_reader


def main(directory: str) -> None:
    """In a directory with rows.csv, s.yaml and other.db."""
    os.chdir(directory)
    warnings.simplefilter("error")
    opened = recorded()
    settings = Settings()
    rows = loaded(settings)
    found = {"rows": rows, "statuses": answered(settings)}
    print(json.dumps(found | {library: sorted(files) for library, files in opened.items()}))


def recorded() -> dict[str, set[str]]:
    """The files that are opened from now on, by library."""
    opened: dict[str, set[str]] = {"sqlite3": set(), "adbc": set()}

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect":
            opened["sqlite3"].add(str(args[0]))

    class WatchedDatabase(adbc_driver_manager.AdbcDatabase):
        def __new__(cls, **options: Any) -> Any:
            opened["adbc"].add(options["uri"])
            return super().__new__(cls, **options)

    sys.addaudithook(watch)
    adbc_driver_manager.AdbcDatabase = WatchedDatabase  # type: ignore[misc]
    return opened


def loaded(settings: Settings) -> int:
    """Loads d twice and registers r; the rows of d, as they are read."""
    prepare(settings)
    for _ in range(2):
        facts = load_dataset(settings, "d", Path("rows.csv"), Path("s.yaml")).facts
    with open_catalog(settings) as catalog:
        source = catalog.source(facts.version_id)
    assert isinstance(source, VaultTable)
    batches = open_reader(settings.vault_url, source).batches(["x"])
    rows = sum(batch.unwrap().num_rows for batch in batches)
    Path("other.yaml").write_text(Path("s.yaml").read_text())
    place = SourcePlace(url="sqlite:///other.db", table="t")
    register_dataset(settings, "r", place, Path("other.yaml"))
    return int(rows)


def answered(settings: Settings) -> list[str]:
    """The statuses of answers about both."""
    services = build_services(settings)
    create_app(services)
    analyst_id, key = services.access.add_analyst("ana", by="t")
    statuses = []
    for name in ("d", "r"):
        services.ledger.set_population_cap(name, epsilon=9, delta=1e-3, rule="basic", by="t")
        services.ledger.set_analyst_budget(analyst_id, name, name, epsilon=9, delta=1e-3, by="t")
        services.access.grant(analyst_id, name, by="t")
        ask = answer.Ask(name, Mean("x"), Privacy(1.0))
        principal = services.access.authenticate(key)
        assert principal is not None
        body = answer.answer(services, principal, ask)
        statuses.append(json.loads(body)["status"])
    services.engine.close()
    return statuses
