# SPDX-License-Identifier: Apache-2.0
"""Processes that begin with the server imported: a new interpreter imports for two seconds first.

A process that has imported it, and done nothing else, is forked (multiprocessing's fork server, one
for each worker of the tests). What runs in the copy is the program itself, with arguments,
environment, standard output and log of its own, and with a process id that may be killed.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any
from unittest import mock

IMPORTED = [
    "reticent_server.cli.serve",
    "reticent_server.api.application",
    "reticent_server.console.application",
    "reticent_server.intake.inside",
]


class Forked:
    """A process as subprocess.Popen has it. stdout: what it prints, as text."""

    def __init__(self, process: ForkServerProcess, printed: Connection) -> None:
        assert process.pid is not None
        self.pid: int = process.pid
        self.stdout: TextIOWrapper = os.fdopen(os.dup(printed.fileno()), encoding="utf-8")
        self._process = process

    def poll(self) -> int | None:
        """The exit status, negative after a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def forked(
    program: Callable[..., object],
    arguments: Sequence[Any],
    environment: Mapping[str, str],
    log: Path,
) -> Forked:
    """Calls a function of a module in a new process. log: gets what it writes to standard error.

    program, arguments: go there by pickle.
    """
    context = fork_context()
    printed, out = context.Pipe(duplex=False)
    given = (program, tuple(arguments), dict(environment), str(log), out)
    process = context.Process(target=_run, args=given)
    process.start()
    out.close()
    with printed:
        return Forked(process, printed)


@cache
def fork_context() -> ForkServerContext:
    """Fork server and all: it is started with this process's search path, which it else would not
    know.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with mock.patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(sys.path)}):
        forkserver.ensure_running()
    return context


def _run(
    program: Callable[..., object],
    arguments: tuple[Any, ...],
    environment: dict[str, str],
    log: str,
    out: Connection,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with open(log, "ab") as file:  # noqa: PTH123 - a descriptor is wanted
        os.dup2(file.fileno(), 2)
    os.dup2(out.fileno(), 1)
    out.close()
    program(*arguments)


def forked_child(module: str, line: socket.socket, *arguments: str) -> Forked:
    """In place of reticent_server.process.child; it has none of the settings either. The libraries
    of the whole server reserve more memory than those of a child.
    """
    process = forked(_run_module, (module, line, arguments), {}, Path(os.devnull))
    process.stdout.close()
    return process


def _run_module(module: str, line: socket.socket, arguments: tuple[str, ...]) -> None:
    sys.argv = [module, str(line.detach()), *arguments]
    import_module(module).main()


def serve(arguments: list[str]) -> None:
    """The command line; ends by SystemExit."""
    from reticent_server.cli import main

    main(arguments)


def command(directory: str, arguments: list[str]) -> None:
    """The command line in a directory; ends by SystemExit."""
    os.chdir(directory)
    serve(arguments)
