# SPDX-License-Identifier: Apache-2.0
"""The process of a cell (intake.cell): takes its limits, carries out one order, says its reply, and
ends.

It says nothing of an error that is none of ours: the text may quote cells. Memory is limited as
address space, which Linux holds to; macOS does not, and has the limits of time, of the reply and of
what the file's header and footer say.
"""

import os
import pickle
import resource
import sys
from contextlib import suppress
from pathlib import Path

from reticent_server.errors import ReticentError
from reticent_server.intake.cell import DONE, CellLimits, Order, refused
from reticent_server.process import keep_to_itself

_NICENESS = 5
"""A third of the weight of those who answer analysts (sched(7)), so that these go first and a
curator still gets an answer."""

_FAILED = 1


def main() -> int:
    """The process's exit status: 0 where it has said a reply."""
    keep_to_itself()
    os.nice(_NICENESS)
    limits, order = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the server that has started this
    _limit(limits)
    try:
        reply = DONE + _carried_out(order)
    except ReticentError as error:
        reply = refused(error)
    except Exception:  # noqa: BLE001 - whatever a library raises may quote cells
        return _FAILED
    sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()
    return 0


def _carried_out(order: Order) -> bytes:
    return order()


def _limit(limits: CellLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    if not limits.writes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    most = _address_space() + limits.memory
    with suppress(ValueError, OSError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _address_space() -> int:
    """Bytes that this process has reserved by now, its libraries among them; 0 where the system
    does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:
        return 1 << 32  # what libraries reserve elsewhere
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
