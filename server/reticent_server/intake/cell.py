# SPDX-License-Identifier: Apache-2.0
"""A process of its own for what reads a curator's file, so that no file takes the server's memory
or time.

The server sends an order (what to do) and gets bytes back, at most so many; a process that needs
more memory or time than its limits is ended, and whoever waits for it is told so in one sentence.
The order is ours and is pickled; the reply may be the work of a file, and is read as JSON by
whoever gave the order. What the process writes elsewhere (tracebacks, words of libraries) may quote
cells, and goes nowhere.
"""

import fcntl
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import structlog

from reticent_server.errors import (
    Conflict,
    CuratorError,
    InvalidRequest,
    LibraryMissing,
    NotFound,
    PolicyRefused,
    ReticentError,
    SecondPerson,
    Unavailable,
)

DONE, REFUSED = b"+", b"-"
"""How a reply begins: what was asked for, or the error that the order raised."""

_MODULE = "reticent_server.intake.inside"
_SECRETLESS = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""Variables of a process that needs no settings, and no credentials of a service."""

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}
"""Libraries reserve address space for each thread, and for pools of their own: it would count as
memory."""

_POLL_SECONDS = 0.05
_BUSY = "Another file is being read at the moment; try again in a minute."
_ERRORS: Mapping[str, type[ReticentError]] = {
    each.code: each
    for each in (
        CuratorError,
        LibraryMissing,
        InvalidRequest,
        Conflict,
        NotFound,
        PolicyRefused,
        Unavailable,
    )
}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CellLimits:
    """The limits of one process. memory: bytes beyond what its libraries take. seconds: of
    processor time; waits: of any time. reply: bytes. writes: whether it may write files, and has
    the server's environment."""

    memory: int
    seconds: int
    waits: int
    reply: int
    writes: bool = False


Order = Callable[[], bytes]
"""What is done there: a value that pickles, and gives the reply's bytes or raises a
ReticentError."""


def in_cell(order: Order, limits: CellLimits, file: str) -> bytes:
    """What the order gives, from a process of its own. file: its name, for messages. Raises what
    the order raises, and CuratorError where the process was ended."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-P", "-m", _MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
        env=_environment(limits),
    )
    late = Timer(limits.waits, process.kill)
    late.daemon = True
    late.start()
    try:
        with process:
            reply = _said(process, pickle.dumps((limits, order)), limits.reply)
    finally:
        late.cancel()
    return _result(reply, limits, file, process.returncode)


def _environment(limits: CellLimits) -> dict[str, str]:
    kept = (
        os.environ if limits.writes else {k: os.environ[k] for k in _SECRETLESS if k in os.environ}
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**kept, **_ONE_THREAD, "PYTHONPATH": paths}


def _said(process: "subprocess.Popen[bytes]", order: bytes, most: int) -> bytes:
    """Its reply; empty where it says too much, or breaks off."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    try:
        process.stdin.write(order)
        process.stdin.close()
    except BrokenPipeError:
        pass
    reply = process.stdout.read(most + 2)
    if len(reply) <= most + 1:
        return reply if process.wait() == 0 else b""
    process.kill()
    return b""


def _result(reply: bytes, limits: CellLimits, file: str, exit_code: int) -> bytes:
    if reply[:1] == DONE:
        return reply[1:]
    if reply[:1] == REFUSED:
        raise _refusal(reply[1:])
    log.warning("cell_ended", exit_code=exit_code)
    raise CuratorError(
        f"{file} cannot be read: it is broken, or takes more than {limits.memory >> 20} MB of "
        "memory or "
        f"{limits.seconds} s. Write it anew as CSV with short cells, or load it with `reticent "
        "dataset load`."
    )


def _refusal(said: bytes) -> ReticentError:
    code, text = json.loads(said)
    if code == SecondPerson.code:
        return SecondPerson(text)
    return _ERRORS.get(code, CuratorError)(text)


def refused(error: ReticentError) -> bytes:
    """The reply that says so."""
    text = error.proposal_id if isinstance(error, SecondPerson) else error.detail
    return REFUSED + json.dumps([error.code, text]).encode()


@contextmanager
def turn(folder: Path, kind: str, patience: float) -> Iterator[None]:
    """One process of a kind at a time, of all servers on this machine with that folder; it ends
    with whoever holds it. patience: seconds until it is said that another has it. Raises
    Unavailable."""
    place = folder / f".turn-{kind}"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + patience
        while not _locked(handle):
            if time.monotonic() >= until:
                raise Unavailable(_BUSY)
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
