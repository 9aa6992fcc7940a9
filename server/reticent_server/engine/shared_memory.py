"""Arrays that other processes of this server can map: in anonymous files, which have no name and no path.

An array is an ordinary one where the system has no such files or none are left.
"""

import mmap
import os
import weakref
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES = 1 << 12
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
    if size < LEAST_BYTES or not hasattr(os, "memfd_create"):
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
