# SPDX-License-Identifier: Apache-2.0
"""Keeps the memory of a block's arrays in the process, where the next block takes it up."""

import ctypes
import sys
from contextlib import suppress
from functools import cache

# names and numbers of <malloc.h>, and glibc's largest values
_M_TRIM_THRESHOLD, _TRIM_BYTES = -1, 1 << 28
"""Free memory at the end of the heap that is kept: 256 MiB, many times the arrays of a block."""

_M_MMAP_THRESHOLD, _MMAP_BYTES = -3, 1 << 25
"""Arrays below 32 MiB, the most that glibc takes, come from the heap and not from the system."""


@cache
def keep_pages() -> None:
    """Once a process, of helpers as of workers. Those of Dask are started with a limit of 64 KiB,
    by which every block's arrays come from the system and are cleared page by page: a fifth of a
    pass's processor time. Speed only; nothing where it is not glibc."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
            library.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
