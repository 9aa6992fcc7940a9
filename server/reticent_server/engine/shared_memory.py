# SPDX-License-Identifier: Apache-2.0
"""Arrays that other processes of this server can map: in anonymous files, which have no name and no
path.

An array is an ordinary one where the system has no such files, or where they would take more than a
quarter of the descriptors that this process may have: sockets and databases need the others.
"""

import mmap
import os
import resource
import weakref
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES = 1 << 12  # a page: a smaller array would take a page and a descriptor to share
# of this process: room for 2 each of thousands of arrays; fewer only means arrays that are not
# shared
WANTED_DESCRIPTORS = 1 << 14
_EACH = 2  # ours, and the mapping's own
# pages are mapped at once where the system can: a fault each would be slower
_FLAGS = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)


@dataclass(frozen=True, slots=True)
class File:
    """Where an array lies; number: different for every array of this process."""

    number: int
    descriptor: int
    kind: str
    rows: int


_numbers = count()
_files: dict[int, File] = {}


def shared_empty(rows: int, kind: type[np.generic]) -> NDArray[Any]:
    """An array (rows,) with arbitrary contents; its file is closed when the array goes."""
    size = rows * np.dtype(kind).itemsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = soft == resource.RLIM_INFINITY or 4 * _EACH * len(_files) < soft
    if size < LEAST_BYTES or not room or not hasattr(os, "memfd_create"):
        return np.empty(rows, dtype=kind)
    try:
        descriptor = os.memfd_create("columns", os.MFD_CLOEXEC)
    except OSError:
        return np.empty(rows, dtype=kind)
    try:
        os.ftruncate(descriptor, size)
        array = np.frombuffer(mmap.mmap(descriptor, size, _FLAGS), dtype=kind)
    except OSError:
        os.close(descriptor)
        return np.empty(rows, dtype=kind)
    _files[id(array)] = File(next(_numbers), descriptor, np.dtype(kind).str, rows)
    weakref.finalize(array, _close, id(array))
    return array


def _close(key: int) -> None:
    os.close(_files.pop(key).descriptor)


def make_room() -> None:
    """Lets this process have more descriptors, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(WANTED_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def file_of(array: NDArray[Any]) -> File | None:
    """The file that an array of shared_empty lies in (not: a view of one)."""
    return _files.get(id(array))


def numbers() -> set[int]:
    """Those of the arrays that are still there."""
    return {file.number for file in list(_files.values())}


def mapped(descriptor: int, kind: str, rows: int) -> NDArray[Any]:
    """The array of another process, to be read only; closes the descriptor."""
    size = rows * np.dtype(kind).itemsize
    try:
        memory = mmap.mmap(descriptor, size, _FLAGS, mmap.PROT_READ)
    finally:
        os.close(descriptor)
    return np.frombuffer(memory, dtype=kind)
