# SPDX-License-Identifier: Apache-2.0
"""Where the secrets come from: a file, the environment, or the output of a command (of a key
management service, say). Only a file is written here.
"""

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_bytes, token_hex
from threading import Lock
from typing import Protocol

from reticent_server.access.peppers import Peppers
from reticent_server.access.secrets import (
    LARGEST_FILE,
    Secrets,
    change_secrets,
    load_secrets,
    parse_secrets,
)
from reticent_server.errors import CuratorError
from reticent_server.events import EventLogger
from reticent_server.settings import Settings

PERSONS_KEY_BYTES = 32
"""256 bits, of the 512 that BLAKE2b takes: guessing is out of reach."""

_NO_PERSONS_KEY = (
    "The secrets lack the key under which the vault names persons, and it cannot be written "
    "there: add "
    '"persons": "…" with 64 random hexadecimal digits to the document.'
)

COMMAND_SECONDS = 30
"""For the command: a service in another country answers in a second or two."""

_READ_ONLY = (
    "{} gives the secrets, and nothing is written there: change the document where it is kept. "
    "(Commands "
    "of `reticent secrets` print the new one with --print.)"
)

log = EventLogger(__name__)


class SecretsPlace(Protocol):
    """Where the server's secrets are kept: a file, a variable, or what a command prints."""

    def load(self) -> Secrets:
        """The secrets as they are now. Raises CuratorError."""
        ...

    def change(self, made: Callable[[Secrets], Secrets], /) -> None:
        """Replaces them at once. Raises CuratorError, too where this place is not written here."""
        ...

    def stamp(self) -> object:
        """Another value where they may have changed."""
        ...


@dataclass(frozen=True, slots=True)
class SecretsFile(SecretsPlace):
    """A file, the only place that the server itself can write. path: the file's."""

    path: Path

    def load(self) -> Secrets:
        return load_secrets(self.path)

    def change(self, made: Callable[[Secrets], Secrets]) -> None:
        change_secrets(self.path, made)

    def stamp(self) -> object:
        """What replacing the file changes; None while it is away."""
        try:
            now = self.path.stat()
        except OSError:
            return None
        return now.st_ino, now.st_mtime_ns, now.st_size


@dataclass(frozen=True, slots=True)
class SecretsText(SecretsPlace):
    """The environment variable RETICENT_SECRETS_JSON."""

    text: str = field(repr=False)

    def load(self) -> Secrets:
        return parse_secrets("RETICENT_SECRETS_JSON", self.text.encode())

    def change(self, _made: Callable[[Secrets], Secrets]) -> None:
        raise CuratorError(_READ_ONLY.format("RETICENT_SECRETS_JSON"))

    def stamp(self) -> object:
        """Constant: a variable does not change while the process runs."""
        return None


@dataclass(frozen=True, slots=True)
class SecretsCommand(SecretsPlace):
    """The output of a command, which is run without a shell, at every start."""

    line: str

    def load(self) -> Secrets:
        try:
            done = subprocess.run(  # noqa: S603 - the administrator's own command
                shlex.split(self.line),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=COMMAND_SECONDS,
                check=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise CuratorError(
                f"RETICENT_SECRETS_COMMAND failed ({type(error).__name__})."
            ) from None
        return parse_secrets("RETICENT_SECRETS_COMMAND", done.stdout[:LARGEST_FILE])

    def change(self, _made: Callable[[Secrets], Secrets]) -> None:
        raise CuratorError(_READ_ONLY.format("RETICENT_SECRETS_COMMAND"))

    def stamp(self) -> object:
        """Constant: a command is not run again while the process runs."""
        return None


def place_of(settings: Settings) -> SecretsPlace:
    """The place that the settings name. Raises CuratorError where they name two."""
    if settings.secrets_json and settings.secrets_command:
        raise CuratorError("Set RETICENT_SECRETS_JSON or RETICENT_SECRETS_COMMAND, not both.")
    if settings.secrets_json:
        return SecretsText(settings.secrets_json)
    if settings.secrets_command:
        return SecretsCommand(settings.secrets_command)
    return SecretsFile(settings.secrets_file)


class KeptPeppers:
    """The peppers of a place, read again where the place has changed: a rotation needs no restart.

    While the place is away, those that were read last go on.
    """

    def __init__(self, place: SecretsPlace) -> None:
        self._place = place
        self._stamp = place.stamp()
        self._known = place.load().peppers
        self._lock = Lock()

    def __call__(self) -> Peppers:
        stamp = self._place.stamp()
        if stamp not in (None, self._stamp):
            with self._lock:
                try:
                    self._known, self._stamp = self._place.load().peppers, stamp
                except CuratorError:
                    log.error("secrets_not_read")
        return self._known


def source_url(place: SecretsPlace, name: str) -> str:
    """The URL kept under a name, which may be newer than this process. Raises CuratorError."""
    url = place.load().sources.get(name)
    if url is None:
        raise CuratorError("The secrets lack the URL of a registered database; restore a backup.")
    return url


def persons_key(place: SecretsPlace) -> bytes:
    """The key under which names of persons are kept, made at the first use. Raises CuratorError."""
    known = place.load().persons
    if known:
        return known
    made = token_bytes(PERSONS_KEY_BYTES)
    try:
        place.change(lambda now: replace(now, persons=now.persons or made))
    except CuratorError:
        raise CuratorError(_NO_PERSONS_KEY) from None
    return place.load().persons


def add_source(place: SecretsPlace, url: str) -> str:
    """Keeps the URL of a database; the name under which it is found. Raises CuratorError."""
    known = {kept: name for name, kept in place.load().sources.items()}
    if url in known:
        return known[url]
    name = token_hex(8)
    place.change(lambda now: replace(now, sources={**now.sources, name: url}))
    return name
