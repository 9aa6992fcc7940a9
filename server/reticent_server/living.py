# SPDX-License-Identifier: Apache-2.0
"""Marks of processes, by which another process of the same machine knows whether one is alive
still.

A mark is of the machine as processes see it (this start of it, and the namespace in which they are
numbered) and of the process (its number, and when it began, as numbers are used again). It tells
nobody else anything. Where the system does not say who is alive (other systems than Linux, or
processes that are hidden), there are no marks, and nobody is gone.
"""

import os
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

MARK = 12
"""Characters of a mark: six of the machine and six of the process, 36 bits each. A living process
with a dead one's mark (one in 10⁷ among a thousand) keeps it alive, which is the safe side."""

_HALF = MARK // 2
_PROC = Path("/proc")
_BEGAN = 19
"""Place of the time of its beginning among the fields after a process's name (proc_pid_stat(5): the
22nd of all)."""


def own_mark() -> str:
    """This process's; empty where there are none."""
    return _own_mark(os.getpid())


def gone(marks: Collection[str]) -> set[str]:
    """Those of processes of this machine that are alive no more."""
    machine = _machine()
    if not machine or not _everybody_is_seen():
        return set()
    ours = {mark for mark in marks if len(mark) == MARK and mark.startswith(machine)}
    return ours - set(_living(machine)) if ours else ours


@cache
def _own_mark(pid: int) -> str:
    machine, began = _machine(), _began(pid)
    return _mark(machine, pid, began) if machine and began else ""


def _living(machine: str) -> Iterator[str]:
    for each in _PROC.iterdir():
        if each.name.isdecimal():
            began = _began(int(each.name))
            if began:
                yield _mark(machine, int(each.name), began)


def _mark(machine: str, pid: int, began: str) -> str:
    return machine + _short(f"{machine} {pid} {began}")


@cache
def _machine() -> str:
    """Of this start of the machine and this namespace of processes; empty where the system does not
    say."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii")
        return _short(f"{boot} {(_PROC / 'self/ns/pid').readlink()}")
    return ""


def _everybody_is_seen() -> bool:
    """Whether the first process is, which is another user's: with hidepid it would not be."""
    return bool(_began(1))


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty where there is none, or only what
    is left of one."""
    with suppress(OSError):
        fields = (
            (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        )
        return "" if fields[0] in "ZX" else fields[_BEGAN]
    return ""


def _short(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest())[:_HALF].decode()
