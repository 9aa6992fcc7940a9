# SPDX-License-Identifier: Apache-2.0
"""The processes below another one, by Linux's /proc."""

from contextlib import suppress
from pathlib import Path


def children(pid: int | str) -> list[int]:
    """Of a process ("self": this one). Threads, and with them the process, may end meanwhile: those
    that have ended have none.
    """
    found: list[int] = []
    with suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> set[int]:
    """Its children, theirs, and so on."""
    return {each for child in children(pid) for each in (child, *descendants(child))}
