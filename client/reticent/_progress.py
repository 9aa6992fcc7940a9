# SPDX-License-Identifier: Apache-2.0
"""Waiting for a release that is answered later, with a bar that shows its planned progress."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TextIO

_WIDTH = 30
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Wire(Protocol):
    """What waiting needs of the connection."""

    def get(self, path: str) -> Any:
        """The decoded JSON of a path."""

    def delete(self, path: str) -> Any:
        """Sends DELETE to a path, and gives the decoded JSON of the reply."""


class Bar:
    """One line that is written again and again, and is gone at the end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._longest = 0

    def show(self, progress: Mapping[str, Any]) -> None:
        """progress: of a pending release."""
        fraction = min(1.0, max(0.0, float(progress["fraction"])))
        full = round(_WIDTH * fraction)
        seconds = max(0, int(progress["remaining_ms"])) / 1000
        bar = "#" * full + "." * (_WIDTH - full)
        self._write(f"[{bar}] {fraction:4.0%} {progress['state']}, {seconds:.0f} s left by plan")

    def clear(self) -> None:
        """Removes the bar from the terminal's line."""
        if self._longest:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._longest = max(self._longest, len(text))
        self._stream.write("\r" + text.ljust(self._longest))
        self._stream.flush()


def wait(wire: Wire, document: Any, sleep: Callable[[float], None], bar: Bar | None) -> Any:
    """The settled document of a release that may be pending.

    An interruption (Ctrl-C) tries to cancel it: where its computation has not begun, it costs
    nothing.
    """
    path = f"/v1/releases/{document['id']}"
    try:
        while document["status"] == "pending":
            progress = document["progress"]
            if bar is not None:
                bar.show(progress)
            sleep(_pause(progress))
            document = wire.get(path)
    except KeyboardInterrupt:
        _cancelled(wire, path)
        raise
    finally:
        if bar is not None:
            bar.clear()
    return document


def _pause(progress: Mapping[str, Any]) -> float:
    remaining = float(progress["remaining_ms"]) / 1000
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, remaining / 20))


def _cancelled(wire: Wire, path: str) -> None:
    try:
        wire.delete(path)
    except Exception:  # noqa: BLE001 - it has begun, or nobody answers: the interruption is the news
        return
