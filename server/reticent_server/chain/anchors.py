# SPDX-License-Identifier: Apache-2.0
"""Anchors: places of the chain that were written down outside the database, for good.

A file gets a line more for each; a directory (on write-once storage, say) a file more. An older
copy of the database, or a rewritten one, does not have the last anchor in its chain, and is not
served.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from reticent_server.errors import CuratorError

_TAIL = 4096
"""Bytes at the end of a file in which its last line is looked for; a line has fewer than 200."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The number and the hash of an entry, and when they were written down (ISO 8601, UTC)."""

    seq: int
    hash: str
    at: str


class Anchors:
    """The anchors at a path: a file, or a directory that is there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self) -> Anchor | None:
        """The newest; None where none is written yet. Raises CuratorError where they cannot be
        read."""
        with _said_to_the_curator(self.path):
            texts = self._last_texts()
        anchors = [anchor for anchor in map(_parsed, texts) if anchor is not None]
        if texts and not anchors:
            raise CuratorError(f"{self.path} holds no anchors; restore it, or move it away.")
        return anchors[-1] if anchors else None

    def all(self) -> Iterator[Anchor]:
        """Oldest first; what cannot be parsed (a line that a crash has cut) is left out."""
        with _said_to_the_curator(self.path):
            texts = (
                [path.read_text("ascii", "replace") for path in self._files()]
                if self.path.is_dir()
                else self.path.read_text("ascii", "replace").splitlines()
            )
        yield from (anchor for anchor in map(_parsed, texts) if anchor is not None)

    def write(self, anchor: Anchor) -> None:
        """Writes an anchor to the disk, as the newest. Raises CuratorError.

        In a directory, files are numbered as their entries are; after an older copy was accepted,
        they go on after the last number, so that the newest is the last one.
        """
        line = json.dumps(asdict(anchor)).encode() + b"\n"
        with _said_to_the_curator(self.path), suppress(FileExistsError):
            if self.path.is_dir():
                files, last = self._files(), self.last()
                number = anchor.seq
                if last is not None and last.hash != anchor.hash:
                    number = max(number, int(files[-1].stem) + 1)
                _write(self.path / f"{number:020d}.json", os.O_EXCL, line)
            else:
                _write(self.path, os.O_APPEND, _after_a_cut_line(self.path) + line)

    def _last_texts(self) -> list[str]:
        """The last two: a crash may have cut the last one."""
        if self.path.is_dir():
            return [path.read_text("ascii", "replace") for path in self._files()[-2:]]
        with self.path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read().decode("ascii", "replace").splitlines()[-2:]

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("[0-9]*.json"))


def _write(path: Path, how: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _after_a_cut_line(path: Path) -> bytes:
    """A new line, where a crash has left the last one without its end."""
    if not path.exists() or path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return b"" if file.read() == b"\n" else b"\n"


def _parsed(text: str) -> Anchor | None:
    try:
        anchor = Anchor(**json.loads(text))
    except (ValueError, TypeError):
        return None
    return anchor if type(anchor.seq) is int and isinstance(anchor.hash, str) else None


@contextmanager
def _said_to_the_curator(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CuratorError(
            f"The anchors at {path} cannot be used ({error.strerror}); `reticent init` makes the "
            "file."
        ) from None
