# SPDX-License-Identifier: Apache-2.0
"""Arrays of a block take no new pages from the system, whatever the process was started with."""

import os
import subprocess
import sys

import pytest

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
