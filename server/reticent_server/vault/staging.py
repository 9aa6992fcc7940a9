# SPDX-License-Identifier: Apache-2.0
"""Files that curators have sent and not loaded yet: a folder that only the server's account can
read.

Each file has a folder of its own with a random name, and beside it what its curator has filled in
so far. It is deleted when it is loaded or given up, and KEPT_SECONDS after it was last looked at.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from reticent_server.domain.clock import Clock
from reticent_server.errors import Conflict, NotFound, Unavailable
from reticent_server.vault.adbc import parse_url

KEPT_SECONDS = 24 * 3600.0
"""A day: whoever is called away goes on the next morning, and what was forgotten does not stay."""

MOST = 4
"""Files of one curator that wait at a time: with the limit of each, a bound on the disk."""

UNREADABLE = "read.failed"
"""The field of a file that could not be read the last time that it was looked at."""

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_STATE = ".state.json"
_NAME_LENGTH = 80
"""Characters of a file's name that are kept: it is shown, and stands in messages."""

_NOTHING = (
    "There is no such file; it may have been given up, or have waited for more than a day. Send "
    "it again."
)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that waits, or a folder of them. fields: of its schema's form, as they were sent
    last.
    """

    id: str
    owner: str
    path: Path = field(repr=False)
    fields: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The file's name as it was uploaded."""
        return self.path.name

    @property
    def waits(self) -> bool:
        """Whether it could be read, as far as it was tried."""
        return UNREADABLE not in self.fields

    @property
    def stays(self) -> bool:
        """Whether it is a folder elsewhere, whose files are registered and not loaded."""
        return self.path.is_dir()


class Incoming:
    """A file that is being received: `write`, then `keep`; else `drop`."""

    def __init__(self, folder: Path, name: str, owner: str, clock: Clock) -> None:
        self._folder = folder
        self._path = folder / _plain(name)
        self._owner = owner
        self._clock = clock
        folder.mkdir(mode=0o700)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        self._file: BinaryIO = os.fdopen(os.open(self._path, flags, 0o600), "wb")

    def write(self, data: bytes) -> None:
        """Raises Unavailable where the disk takes no more."""
        try:
            self._file.write(data)
        except OSError:
            self.drop()
            raise Unavailable("The server has no room for this file.") from None

    def keep(self) -> StagedFile:
        """Ends the upload, and gives the file as staged."""
        self._file.close()
        staged = StagedFile(self._folder.name, self._owner, self._path, {})
        _save(self._folder, staged, self._clock)
        return staged

    def drop(self) -> None:
        """Ends the upload and deletes what has come."""
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Staging:
    """The files of all processes on one machine."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def receive(self, owner: str, name: str, most: int = MOST) -> Incoming:
        """owner: whose file it is; nobody else sees it. most: files of one owner. Raises Conflict
        where too many of hers or his wait.
        """
        self._make_room(owner, most)
        return Incoming(self._folder / token_hex(16), name, owner, self._clock)

    def refer(self, owner: str, folder: Path) -> StagedFile:
        """A folder of files that stay where they are, for which a schema is filled in. Raises
        Conflict.
        """
        self._make_room(owner)
        staged = StagedFile(token_hex(16), owner, folder.resolve(), {})
        (self._folder / staged.id).mkdir(mode=0o700)
        _save(self._folder / staged.id, staged, self._clock)
        return staged

    def _make_room(self, owner: str, most: int = MOST) -> None:
        """Files that could not be read do not wait: the next one takes their place."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for staged in [each for each in self._all() if each.owner == owner]:
            if not staged.waits:
                self.discard(staged)
        if len(self.of(owner)) >= most:
            raise Conflict(f"{most} of your files wait already; load or give up one of them.")

    def of(self, owner: str) -> list[StagedFile]:
        """The files of somebody that wait, by their names."""
        mine = (staged for staged in self._all() if staged.owner == owner and staged.waits)
        return sorted(mine, key=lambda staged: (staged.name, staged.id))

    def one(self, owner: str, file_id: str) -> StagedFile:
        """Raises NotFound, for files of somebody else as for absent ones."""
        staged = _read(self._folder / file_id) if _ID.fullmatch(file_id) else None
        if staged is None or staged.owner != owner:
            raise NotFound(_NOTHING)
        return staged

    def fill_in(self, staged: StagedFile, fields: Mapping[str, str]) -> StagedFile:
        """With the fields of its form, from now on."""
        filled = StagedFile(staged.id, staged.owner, staged.path, fields)
        _save(self._folder / filled.id, filled, self._clock)
        return filled

    def discard(self, staged: StagedFile) -> None:
        """Deletes a staged file; nothing happens where it is gone."""
        shutil.rmtree(self._folder / staged.id, ignore_errors=True)

    def sweep(self) -> None:
        """Deletes what nobody has looked at for KEPT_SECONDS, and what was never received
        wholly.
        """
        oldest = self._clock.now().timestamp() - KEPT_SECONDS
        for folder in self._folders():
            state = folder / _STATE
            kept = state if state.is_file() else folder
            try:
                forgotten = kept.stat().st_mtime < oldest
            except OSError:  # another process has just deleted it
                continue
            if forgotten:
                shutil.rmtree(folder, ignore_errors=True)

    def _all(self) -> Iterator[StagedFile]:
        return (staged for staged in map(_read, self._folders()) if staged is not None)

    def _folders(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [each for each in self._folder.iterdir() if _ID.fullmatch(each.name)]


def staging_folder(given: Path | None, vault_url: str) -> Path | None:
    """Where files wait: the folder that is set, or one beside a vault that is a file; else nowhere.
    CuratorError.
    """
    file = parse_url(vault_url).file
    beside = None if file is None else file.with_name(f"{file.name}.staging")
    return given or beside


def _plain(name: str) -> str:
    """A file's name without what could lead elsewhere."""
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last).lstrip("._-")[-_NAME_LENGTH:] or "table"


def _save(folder: Path, staged: StagedFile, clock: Clock) -> None:
    """Replaces the state at once, as of now by the clock."""
    state = folder / _STATE
    place = str(staged.path) if staged.stays else staged.name
    document = {"owner": staged.owner, "file": place, "fields": dict(staged.fields)}
    made = state.with_suffix(f".{token_hex(8)}")
    descriptor = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(document, file)
    now = clock.now().timestamp()
    os.utime(made, (now, now))
    made.replace(state)


def _read(folder: Path) -> StagedFile | None:
    """None where there is nothing, or nothing whole."""
    try:
        document = json.loads((folder / _STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return StagedFile(folder.name, document["owner"], folder / document["file"], document["fields"])
