# SPDX-License-Identifier: Apache-2.0
"""Anchors: an older copy of the database, or a rewritten one, is not served."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event

import httpx
import pytest

from reticent_server.app import build_services
from reticent_server.chain.anchors import Anchor, Anchors
from reticent_server.chain.entries import GENESIS
from reticent_server.cli.init import prepare
from reticent_server.domain.roles import STAFF
from reticent_server.errors import CuratorError
from reticent_server.opening import open_catalog, open_ledger
from reticent_server.pipeline.anchoring import keep_anchored
from reticent_server.settings import Settings
from support.installations.small import Installation, opened, serving


def anchors(path: Path, kind: str) -> Anchors:
    if kind == "directory":
        path.mkdir()
    return Anchors(path)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_was_written_is_read_again(tmp_path: Path, kind: str) -> None:
    kept = anchors(tmp_path / "anchors", kind)
    written = [Anchor(k, f"{k:064x}", "2024-05-01T12:00:00+00:00") for k in (0, 3, 120, 4711)]
    for anchor in written:
        kept.write(anchor)
        assert kept.last() == anchor
    assert list(kept.all()) == written
    files = [kept.path, *kept.path.glob("*")] if kind == "file" else list(kept.path.glob("*"))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_directory_s_files_are_never_written_again(tmp_path: Path) -> None:
    kept = anchors(tmp_path / "anchors", "directory")
    kept.write(Anchor(3, "a" * 64, "first"))
    kept.write(Anchor(3, "a" * 64, "second"))
    assert [anchor.at for anchor in kept.all()] == ["first"]


def test_a_line_that_a_crash_has_cut_is_left_out(tmp_path: Path) -> None:
    kept = Anchors(tmp_path / "anchors")
    for k in range(100):
        kept.write(Anchor(k, "a" * 64, "2024"))
    text = kept.path.read_text()
    kept.path.write_text(text[:-40])
    last = kept.last()
    assert last is not None
    assert last.seq == 98
    kept.write(Anchor(101, "b" * 64, "2024"))
    assert [anchor.seq for anchor in kept.all()] == [*range(99), 101]


def test_a_file_of_a_directory_that_a_crash_has_cut_is_left_out(tmp_path: Path) -> None:
    kept = anchors(tmp_path / "anchors", "directory")
    kept.write(Anchor(3, "a" * 64, "2024"))
    (kept.path / f"{4:020d}.json").write_text("")
    assert kept.last() == Anchor(3, "a" * 64, "2024")
    assert [anchor.seq for anchor in kept.all()] == [3]
    for path in kept.path.iterdir():
        path.write_text("{")
    with pytest.raises(CuratorError, match="no anchors"):
        kept.last()


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(CuratorError, match="reticent init"):
        Anchors(tmp_path / "absent").last()
    (tmp_path / "other").write_text("something else\n")
    with pytest.raises(CuratorError, match="no anchors"):
        Anchors(tmp_path / "other").last()
    (tmp_path / "empty").write_text("")
    assert Anchors(tmp_path / "empty").last() is None


@pytest.fixture
def anchored(installation: Installation) -> Settings:
    """Settings with a place for anchors, in which `init` has written the first."""
    path = installation.directory / "anchors"
    settings = installation.settings.model_copy(update={"anchor_file": path})
    assert {"part": "anchors", "state": "written"} in prepare(settings)
    assert {"part": "anchors", "state": "kept"} in prepare(settings)
    return settings


def write_down(settings: Settings) -> bool:
    """As a server does when it ends; whether the last anchor was in the chain."""
    ended = Event()
    ended.set()
    with opened(settings) as services:
        return keep_anchored(services, ended, writes=True)


def grant_something(settings: Settings) -> None:
    with opened(settings) as services:
        services.access.add_curator(f"c{len(services.access.curators())}", STAFF, by="t")


def test_an_older_copy_is_refused_by_every_command_but_verify_says_why(
    anchored: Settings, installation: Installation
) -> None:
    database = installation.directory / "reticent.db"
    shutil.copy(database, installation.directory / "backup.db")
    grant_something(anchored)
    assert write_down(anchored)
    with opened(anchored) as services:  # today's database is served
        assert services.ledger.verify() == []
    for name in ("reticent.db-wal", "reticent.db-shm"):
        (installation.directory / name).unlink(missing_ok=True)
    shutil.copy(installation.directory / "backup.db", database)
    with pytest.raises(CuratorError, match="older copy"):
        build_services(anchored)
    with pytest.raises(CuratorError, match="older copy"), open_catalog(anchored):
        pass
    with closing(open_ledger(anchored)) as ledger:
        assert ledger.verify() == []
        heads = [anchor.hash for anchor in Anchors(anchored.anchor_file or Path()).all()]
        problem, _ = ledger.verify(*heads)
    assert "anchored head" in problem
    with opened(installation.settings):  # without anchors nobody can know
        pass


def test_an_anchor_is_written_only_where_the_head_has_moved(anchored: Settings) -> None:
    path = anchored.anchor_file or Path()
    assert write_down(anchored)
    assert write_down(anchored)
    assert len(path.read_text().splitlines()) == 1
    grant_something(anchored)
    assert write_down(anchored)
    first, second = Anchors(path).all()
    assert first.seq < second.seq


def test_a_rewritten_chain_is_refused(anchored: Settings, installation: Installation) -> None:
    path = anchored.anchor_file or Path()
    last = Anchors(path).last()
    assert last is not None
    Anchors(path).write(replace(last, hash="f" * 64))
    with pytest.raises(CuratorError, match="rewritten"):
        build_services(anchored)


def test_an_empty_chain_can_be_anchored(tmp_path: Path) -> None:
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 'r.db'}",
        vault_url=f"sqlite:///{tmp_path / 'v.db'}",
        secrets_file=tmp_path / "s.json",
        anchor_file=tmp_path / "anchors",
    )
    prepare(settings)
    assert json.loads((tmp_path / "anchors").read_text())["hash"] == GENESIS
    with opened(settings) as services:
        assert services.ledger.verify(GENESIS) == []


def test_a_file_of_anchors_that_is_gone_is_said(anchored: Settings) -> None:
    (anchored.anchor_file or Path()).unlink()
    with pytest.raises(CuratorError, match="anchors"):
        build_services(anchored)


def test_what_cannot_be_known_now_ends_no_server(anchored: Settings) -> None:
    with opened(anchored) as services:
        (anchored.anchor_file or Path()).unlink()
        ended = Event()
        ended.set()
        assert keep_anchored(services, ended, writes=True)


@pytest.mark.slow
def test_a_server_writes_anchors_and_ends_when_its_database_is_rolled_back(
    anchored: Settings, installation: Installation
) -> None:
    path = anchored.anchor_file or Path()
    database = installation.directory / "reticent.db"
    given = {"anchor_file": path, "anchor_seconds": 1}
    with serving(installation, **given) as server:
        grant_something(installation.settings)
        while len(path.read_text().splitlines()) < 2:
            assert server.process.poll() is None
            Event().wait(0.05)
        assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
        with closing(sqlite3.connect(database)) as connection:  # back by two entries
            connection.execute("DROP TRIGGER ledger_entries_no_delete")
            connection.execute(
                "DELETE FROM ledger_entries WHERE seq > (SELECT seq - 2 FROM ledger_head)"
            )
            connection.commit()
        assert server.process.wait(300) == 0
    assert "anchor_missing" in (installation.directory / "serve.log").read_text()
    with pytest.raises(CuratorError):
        build_services(anchored)
