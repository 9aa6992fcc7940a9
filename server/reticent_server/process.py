# SPDX-License-Identifier: Apache-2.0
"""What every process of this program does first, as it may hold private cells and secrets in
memory; what a server does beside; and how it starts others."""

import ctypes
import os
import resource
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Protocol

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
_TURN_SECONDS = 0.0005  # that a thread keeps the interpreter while others wait
_GRACE_SECONDS = 5  # a process that was told to end and has not by then is killed


def keep_to_itself() -> None:
    """No core file, no reading of its memory by other processes of its user, no file for others.

    Child processes start anew by running this, too: a program that is executed may be read again.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)


def take_short_turns() -> None:
    """Of a server: its threads give Python's interpreter to each other after half a millisecond.

    By default a thread that computes keeps it for 5 ms, and a request whose threads come by it ten
    times waits for it ten times: under a flood of free work a balance came after 1.3 s (.12 with
    this), and a fit took five times as long as alone.
    """
    sys.setswitchinterval(_TURN_SECONDS)


class Closable(Protocol):
    """An end of a line."""

    def close(self) -> None:
        """Gives up what it holds: connections, threads, processes."""


def child(module: str, line: socket.socket, *arguments: str) -> "subprocess.Popen[bytes]":
    """A process of this program that runs a module with the number of its end of a line, and other
    arguments. It gets none of this process' settings and files, and talks to nobody else."""
    environment = {k: os.environ[k] for k in _KEPT_VARIABLES if k in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-P", "-m", module, str(line.fileno()), *arguments],
        pass_fds=(line.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
        env=environment,
    )


def ended(process: "subprocess.Popen[bytes]", *lines: Closable) -> None:
    """Hangs up, which ends the process."""
    for line in lines:
        with suppress(OSError):
            line.close()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
