# SPDX-License-Identifier: Apache-2.0
"""Cells that begin with their libraries imported, for tests of what a curator is shown: a new
interpreter imports for half a second first, and some of these tests look at a file ten times.

What runs in the copy is the program of a cell. That a cell is an interpreter of its own, without
the server's settings, and has limits of memory (libraries of a new one reserve less of it) is
tested with real ones (tests/server/intake/test_cell.py).
"""

import os
import subprocess
import sys
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, Self

import pytest

from reticent_server.intake import cell, inside
from support.processes.forked import fork_context


def forked_cells(patch: pytest.MonkeyPatch) -> None:
    own = {"Popen": ForkedCell, "PIPE": subprocess.PIPE, "DEVNULL": subprocess.DEVNULL}
    patch.setattr(cell, "subprocess", SimpleNamespace(**own))


class ForkedCell:
    """A process as `intake.cell` uses subprocess.Popen."""

    def __init__(self, *_: object, **__: object) -> None:
        context = fork_context()
        order, ordered = context.Pipe(duplex=False)
        said, reply = context.Pipe(duplex=False)
        self._process = context.Process(target=_carry_out, args=(order, reply))
        self._process.start()
        order.close()
        reply.close()
        self.stdin = os.fdopen(os.dup(ordered.fileno()), "wb")
        self.stdout = os.fdopen(os.dup(said.fileno()), "rb")
        ordered.close()
        said.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join()
        return self.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()


def _carry_out(order: Connection, reply: Connection) -> None:
    sys.stdin = os.fdopen(os.dup(order.fileno()))
    sys.stdout = os.fdopen(os.dup(reply.fileno()), "w")
    order.close()
    reply.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os._exit(inside.main())
