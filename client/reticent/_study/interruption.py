# SPDX-License-Identifier: Apache-2.0
"""Where long computations on a study's moments may be ended by whoever runs them, such as a server
whose reader has left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECK: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)


@contextmanager
def interruptible(check: Callable[[], object]) -> Iterator[None]:
    """Computations of the block call `check` again and again; what it raises ends them."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def checkpoint() -> None:
    """Calls the check of this computation, where it has one."""
    check = _CHECK.get()
    if check is not None:
        check()
