# SPDX-License-Identifier: Apache-2.0
"""What a process for planning does (pipeline.planner): functions of public values, within limits of
time and memory.

It gets none of the server's settings, opens no database, and ends with the server.
"""

import os
import pickle
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from multiprocessing.connection import Connection
from time import process_time
from typing import Any

from threadpoolctl import threadpool_limits

from reticent_server.allocator import give_pages_back
from reticent_server.domain.patience import Patience
from reticent_server.errors import InvalidQuery, ReticentError
from reticent_server.kinds import KINDS
from reticent_server.process import keep_to_itself

READY, STOP = b"ready", b"stop"

_NICE = 5
"""A third of the weight of fits and reads, which come first; not so little that plans stand still
beside them."""

_GRACE_SECONDS = 5
"""Of processor time beyond a piece's own limit, at which the system ends the process: between two
checkpoints less passes."""

_TOO_LARGE = "This takes too much memory to plan: ask with fewer terms, levels, groups or curves."


@dataclass(frozen=True, slots=True)
class PlanningOrder:
    """A function of a module, its arguments, and the processor time that it may take, in
    seconds."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float


Done = tuple[Any, Exception | None, float, bool]
"""What came of it: the result, or the error, the processor time in seconds, and whether the process
is spent: after an error that nobody has foreseen it is not used again."""


def serve(line: Connection) -> None:
    """Answers until the server hangs up."""
    line.send_bytes(READY)
    while True:
        message = line.recv_bytes()
        if message != STOP:  # of a piece that has ended meanwhile
            line.send_bytes(_answer(line, pickle.loads(message)))  # noqa: S301 - from the server


def _answer(line: Connection, order: PlanningOrder) -> bytes:
    patience = Patience(order.seconds, partial(line.poll, 0))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    until = ceil(process_time() + order.seconds) + _GRACE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (until, most))
    result: Any = None
    error: Exception | None = None
    spent = False
    try:
        with patience.limits():
            result = order.function(*order.arguments)
    except MemoryError:
        error, spent = InvalidQuery(_TOO_LARGE), True
    except ReticentError as refusal:
        error = refusal
    except Exception as unexpected:  # noqa: BLE001 - the server answers as to one of its own
        error, spent = RuntimeError(type(unexpected).__name__), True
    return pickle.dumps((result, error, patience.spent, spent))


def main() -> None:
    """Plans for the parent until it hangs up. Arguments: the descriptor, and the memory limit in
    MiB."""
    keep_to_itself()
    give_pages_back()
    os.nice(_NICE)
    threadpool_limits(1)
    size = int(sys.argv[2]) << 20
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    assert KINDS  # noqa: S101 - imported before the first piece
    with suppress(EOFError, OSError):
        serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
