# SPDX-License-Identifier: Apache-2.0
"""Arrays of a block take no new pages from the system, whatever the process was started with."""

import os
import platform
import subprocess
import sys

import pytest

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="sets options of glibc")

BLOCKS = """
import resource, sys
import numpy as np
from reticent_server.allocator import keep_pages
if sys.argv[1] == "kept":
    keep_pages()
def block():
    arrays = [np.ones(1 << 18) for _ in range(4)]
    return sum(array[-1] for array in arrays)
block()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    block()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages that twenty blocks of 8 MiB take, in a process with the limit of Dask's workers."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS, how],
        env=os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "131072"},
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


@pytest.mark.slow
def test_pages_are_kept_between_blocks() -> None:
    taken, kept = faults("taken"), faults("kept")
    assert taken > 1000
    assert kept < taken / 10


MEMORY = """
import ctypes, re, sys
from threading import Barrier, Thread
import numpy as np
from reticent_server import allocator
if sys.argv[1] == "set":
    getattr(allocator, sys.argv[2])()
def resident():
    with open("/proc/self/status") as file:
        return int(re.search(r"RssAnon:\\s+(\\d+)", file.read())[1]) // 1024
"""

FREED = """
before = resident()
arrays = [np.ones(1 << 18) for _ in range(16)]
del arrays
print(resident() - before)
"""

THREADS = """
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
places, barrier = set(), Barrier(16)
def work():
    barrier.wait()
    place = library.malloc(1000)
    places.add(place >> 26)  # arenas of threads begin at multiples of 64 MiB
    barrier.wait()
    library.free(place)
threads = [Thread(target=work) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(places))
"""


def measured(script: str, how: str, function: str, **variables: str) -> int:
    """What the script prints, in a process of its own; how: "set" calls the allocator's function
    first."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY + script, how, function],
        env=plain | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


@glibc
def test_freed_arrays_go_back_to_the_system() -> None:
    keeping = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
    given = measured(FREED, "set", "give_pages_back", **keeping)
    assert given < 4
    assert measured(FREED, "not", "-", **keeping) > 28


@glibc
def test_threads_share_two_arenas() -> None:
    shared, own = measured(THREADS, "set", "share_arenas"), measured(THREADS, "not", "-")
    assert shared <= 3, "the main arena may lie across a multiple of 64 MiB"
    assert own > 3
