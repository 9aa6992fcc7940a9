# SPDX-License-Identifier: Apache-2.0
"""What the C library does with the memory of freed arrays: kept for the next block, or given back
to the system. Speed and size only; nothing where it is not glibc."""

import ctypes
import sys
from contextlib import suppress
from functools import cache

# names and numbers of <malloc.h>, and glibc's largest values
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_M_ARENA_MAX = -8
_TRIM_BYTES = 1 << 28
"""Free memory at the end of the heap that is kept: 256 MiB, many times the arrays of a block."""

_MMAP_BYTES = 1 << 25
"""Arrays below 32 MiB, the most that glibc takes, come from the heap and not from the system."""

_SMALL_BYTES = 1 << 20
"""Arrays from 1 MiB on go back: with 256 KiB plans take a tenth longer, and hardly less memory."""

_ARENAS = 2
"""In a flood of free work a server then takes 310 MB, 360 with as many as glibc makes."""


@cache
def keep_pages() -> None:
    """Once a process, of helpers as of workers. Those of Dask are started with a limit of 64 KiB,
    by which every block's arrays come from the system and are cleared page by page: a fifth of a
    pass's processor time."""
    _set({_M_TRIM_THRESHOLD: _TRIM_BYTES, _M_MMAP_THRESHOLD: _MMAP_BYTES})


def give_pages_back() -> None:
    """For a process that waits most of its time: arrays of 1 MiB and more come from the system, and
    go back as soon as they are freed. glibc by itself raises its limit with the largest array that
    it has seen, and keeps the next ones."""
    _set({_M_TRIM_THRESHOLD: _SMALL_BYTES, _M_MMAP_THRESHOLD: _SMALL_BYTES})


def share_arenas() -> None:
    """For a process with many threads, before the first: they share two arenas, where glibc makes
    eight for each core, each of which keeps what its threads have freed. Python lets one thread
    run at a time, so that few wait for an arena."""
    _set({_M_ARENA_MAX: _ARENAS})


def _set(options: dict[int, int]) -> None:
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            for option, value in options.items():
                library.mallopt(option, value)
