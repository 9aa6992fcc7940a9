# SPDX-License-Identifier: Apache-2.0
"""The pace that is kept between two starts: used where it is this machine's, checked first."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reticent_server.pipeline import calibration
from reticent_server.pipeline.calibration import ANOTHER_MACHINE, checked
from reticent_server.pipeline.pace import Pace
from reticent_server.pipeline.pace_file import KeptPace, PaceFile
from reticent_server.settings import Settings
from support.databases.migrated import SetClock

KEPT = KeptPace(1.5, {"count": {10_000: 0.2, 131_072: 0.4}}, 50.0)


def file_in(folder: Path, **settings: Any) -> PaceFile:
    return PaceFile(Settings(vault_url=f"sqlite:///{folder}/vault.db", **settings))


def test_it_is_read_as_it_was_written_and_only_by_the_server_s_account(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    assert file.read() is None
    file.write(KEPT)
    file.write(KEPT)
    assert file.read() == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["vault.db.pace"]
    assert (tmp_path / "vault.db.pace").stat().st_mode & 0o777 == 0o600


def test_a_server_with_other_threads_or_blocks_takes_none(tmp_path: Path) -> None:
    file_in(tmp_path).write(KEPT)
    assert file_in(tmp_path, threads=7).read() is None
    assert file_in(tmp_path, block_rows=4096).read() is None


@pytest.mark.parametrize(
    "change",
    [
        {"made_by": None},
        {"speed": 0},
        {"speed": "fast"},
        {"speed": float("nan")},
        {"check_ms": -1.0},
        {"check_ms": None},
        {"shares": [1]},
        {"shares": {"count": {"many": 1.0}}},
        {"shares": {"count": {"10000": float("inf")}}},
    ],
    ids=str,
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, change: dict[str, Any]) -> None:
    file = file_in(tmp_path)
    file.write(KEPT)
    path = tmp_path / "vault.db.pace"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert file.read() is None
    for text in ("", "[]", "{", "\x00"):
        path.write_text(text)
        assert file.read() is None


def test_where_it_cannot_be_written_nothing_happens(tmp_path: Path) -> None:
    file_in(tmp_path / "missing").write(KEPT)
    none = PaceFile(Settings(vault_url="postgresql://vault@db/vault"))
    none.write(KEPT)
    assert none.read() is None


def test_it_is_as_slow_as_the_machine_is_now_and_never_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took = [50.0]
    monkeypatch.setattr(calibration, "check_milliseconds", lambda _rows: took[0])
    assert checked(None, 512) is None
    assert checked(KEPT, 512) == KEPT
    took[0] = 30.0
    assert checked(KEPT, 512) == KEPT
    took[0] = 100.0
    slower = checked(KEPT, 512)
    assert slower == KeptPace(3.0, {"count": {10_000: 0.4, 131_072: 0.8}}, 100.0)
    for other in (50.0 * ANOTHER_MACHINE * 1.01, 50.0 / ANOTHER_MACHINE / 1.01):
        took[0] = other
        assert checked(KEPT, 512) is None


def test_a_server_starts_with_what_the_last_one_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paces: list[tuple[float, Any]] = []

    class Noting(Pace):
        def measured(self, speed: float, processes: int, shares: Any = None) -> None:
            paces.append((speed, shares))
            super().measured(speed, processes, shares)

    class Started:
        settings = Settings(vault_url=f"sqlite:///{tmp_path}/vault.db", reply_grid_ms=5)
        pace = Noting(SetClock())

    found: Sequence[float] = (1.5, 2.5)
    monkeypatch.setattr(calibration, "check_milliseconds", lambda _rows: KEPT.check_ms)
    for speed in found:
        monkeypatch.setattr(calibration, "measured", lambda *_, s=speed: (s, KEPT.shares))
        calibration._measure(Started(), 1)  # type: ignore[arg-type]
    assert [speed for speed, _ in paces] == [1.5, 1.5, 2.5]
    assert PaceFile(Started.settings).read() == replace(KEPT, speed=2.5)


def test_the_short_check_asks_a_few_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FEW", 100)
    asked: list[int] = []

    def milliseconds(_engine: Any, plans: Sequence[Any], rounds: int) -> list[float]:
        asked.extend([len(plans), rounds])
        return [1.0] * len(plans)

    monkeypatch.setattr(calibration, "milliseconds", milliseconds)
    assert calibration.check_milliseconds(512) == calibration.CHECKED
    assert asked == [calibration.CHECKED, calibration.ROUNDS]
