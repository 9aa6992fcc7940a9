# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that do not outlive their processes for long: the next one removes what is
left.

A process that is killed (kill −9) removes nothing. So each folder has a file that its process keeps
locked; a folder whose file nobody locks is a dead process's.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

_LOCK = ".alive"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """A new folder, readable by its owner only, which is removed at the end. prefix: of all folders
    of its kind, of which those of dead processes are removed first.
    """
    for left in Path(gettempdir()).glob(f"{prefix}*"):
        _remove_left(left)
    folder, lock = _new(prefix)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _new(prefix: str) -> tuple[Path, int]:
    """A folder and the descriptor that locks it."""
    while True:
        folder = Path(mkdtemp(prefix=prefix))
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_WRONLY, 0o600)
        if _locked(lock) and (folder / _LOCK).exists():
            return folder, lock
        # Another process took it for a dead one's, in the moment before it was locked.
        os.close(lock)


def _remove_left(folder: Path) -> None:
    """Removes a dead process's folder; leaves others' and what is no folder of this program."""
    with suppress(OSError):
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            if _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
