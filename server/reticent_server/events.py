# SPDX-License-Identifier: Apache-2.0
"""The log's events: structlog's loggers, which is imported when the first event is written.

Most commands write none, and structlog takes a tenth of the time in which they start.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_waiting: list[Callable[[], None]] = []
"""How structlog is to be set up once it is there: the last that was asked for."""


@dataclass(frozen=True, slots=True)
class EventLogger:
    """Writes events under a module's name; fields are public facts, as `api.logs` says."""

    name: str

    def __getattr__(self, method: str) -> Any:
        """structlog's method of that name: `info`, `warning`, `error`, …"""
        if method.startswith("_"):
            raise AttributeError(method)
        return getattr(_structlog().get_logger(self.name), method)


def set_up(configure: Callable[[], None]) -> None:
    """Calls `configure` before the next event, at once where structlog is in use already."""
    _waiting[:] = [configure]
    if "structlog" in sys.modules:
        _structlog()


def _structlog() -> Any:
    import structlog  # noqa: PLC0415 - see above

    while _waiting:
        _waiting.pop()()
    return structlog
