# SPDX-License-Identifier: Apache-2.0
"""A folder for files that need not outlive the machine: in memory where there is room for them.

A new PostgreSQL database is about a thousand files, and every commit of SQLite waits for the disk;
in memory both take a tenth of the time.
"""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
DISK = Path("/tmp")
"""Short, as a socket's path has to be; TMPDIR of macOS is not."""
ROOM = 4 << 30
"""Bytes that have to be free there: the files of a whole run on all its processes are a tenth of
it.
"""


def folder() -> Path:
    free = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    return MEMORY if free else DISK
