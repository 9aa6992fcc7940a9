# SPDX-License-Identifier: Apache-2.0
"""A process keeps its memory and its files to itself; what dead ones left behind is removed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from reticent_server.app import create_app
from reticent_server.cli import temporary
from reticent_server.cli.temporary import temporary_folder
from reticent_server.pipeline.services import Services
from support.installations.in_thread import in_thread
from support.installations.small import Installation, serving
from support.processes.children import descendants
from support.processes.waiting import until

KEPT = """
import ctypes, json, os, resource
from reticent_server.process import keep_to_itself
keep_to_itself()
print(json.dumps([
    resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), os.umask(0)
]))
"""
LOGGER = """
import structlog
from reticent_server.api.logs import configure_logging
configure_logging("info")
log = structlog.get_logger("x")
for number in range(1500):
    log.info("request", method="POST", route="/v1/releases", status=number)
"""


def python(code: str, **given: int) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env=environment, text=True, **given)  # type: ignore[call-overload,no-any-return]


def test_no_core_file_no_reading_of_memory_and_no_file_for_others() -> None:
    done = python(KEPT, stdout=subprocess.PIPE)
    core, dumpable, mask = json.loads(done.communicate(timeout=600)[0])
    assert (core, dumpable, mask) == ([0, 0], 0, 0o077)


def _core_limit(pid: int) -> list[str]:
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max core file size"):
            return line.split()[4:6]
    raise AssertionError("no limit is named")


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_every_process_of_a_server_does_and_none_outlives_it(installation: Installation) -> None:
    """The server, its workers, and the helpers that map blocks for a worker's threads. Killed, it
    cannot end its workers: they end by themselves.
    """
    with serving(installation, "--workers", "2") as server:
        everybody = {server.process.pid} | {
            pid
            for pid in descendants(server.process.pid)
            if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        }
        assert len(everybody) >= 3
        for pid in everybody:
            assert _core_limit(pid) == ["0", "0"]
        server.end(signal.SIGKILL)
        until(lambda: not any(map(_is_alive, everybody)), every=0.05)


@pytest.mark.slow
def test_lines_of_several_processes_do_not_mix() -> None:
    read, write = os.pipe()
    loggers = [python(LOGGER, stderr=write) for _ in range(4)]
    os.close(write)
    with os.fdopen(read) as together:
        lines = together.read().splitlines()
    assert [logger.wait() for logger in loggers] == [0] * 4
    assert [json.loads(line)["event"] for line in lines] == ["request"] * (4 * 1500)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_its_process_s_and_goes_with_it(folders: Path) -> None:
    with temporary_folder("reticent-x-") as first, temporary_folder("reticent-x-") as second:
        assert {first, second} == {str(path) for path in folders.iterdir()}
        assert Path(first).stat().st_mode & 0o777 == 0o700
    assert list(folders.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next(folders: Path) -> None:
    code = (
        "import tempfile, time; from reticent_server.cli.temporary import temporary_folder\n"
        f"tempfile.tempdir = {str(folders)!r}\n"
        "with temporary_folder('reticent-x-') as name: print(name, flush=True); time.sleep(60)"
    )
    process = python(code, stdout=subprocess.PIPE)
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    with temporary_folder("reticent-x-"):
        assert left.exists(), "its process is alive"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert left.exists()
    (folders / "reticent-x-something").mkdir()
    (folders / "reticent-x-link").symlink_to(folders)
    with temporary_folder("reticent-x-"):
        assert not left.exists()
    assert {p.name for p in folders.iterdir()} == {"reticent-x-something", "reticent-x-link"}


def test_a_folder_that_was_taken_for_a_dead_one_is_made_again(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary._locked
    calls = iter([False])
    monkeypatch.setattr(temporary, "_locked", lambda fd: next(calls, None) or real(fd))
    with temporary_folder("reticent-x-") as name:
        assert Path(name).is_dir()


def test_threads_of_a_server_give_the_interpreter_to_each_other_soon(services: Services) -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        with in_thread(create_app(services)) as served:
            assert httpx.get(f"{served.url}/healthz").status_code == 200
            assert sys.getswitchinterval() <= 0.001
    finally:
        sys.setswitchinterval(before)
