# SPDX-License-Identifier: Apache-2.0
"""The injected clock: everything that needs the time gets one of these."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time, injected so that tests can set it."""

    def now(self) -> datetime:
        """The time of day, with a zone (UTC)."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits for a number of seconds, which may be a fraction."""


class SystemClock(Clock):
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
