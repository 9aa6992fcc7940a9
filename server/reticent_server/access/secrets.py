# SPDX-License-Identifier: Apache-2.0
"""The secrets as one JSON document, and the file that holds it: written by `reticent init`,
readable by its owner only. URLs of registered databases, which hold passwords, are added to it.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex
from stat import S_IMODE, S_ISREG

from reticent_server.access.peppers import FIRST, PEPPER_BYTES, Peppers
from reticent_server.errors import CuratorError

LARGEST_FILE = 1 << 20
"""Bytes: thousands of URLs."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """peppers: the HMAC keys under which API keys are stored. sources: URLs of databases, by name.
    persons: the key under which the vault keeps names of persons; empty: none yet. signing: the key
    of documents that the installation signs, a JSON Web Key; empty: none yet."""

    peppers: Peppers
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    persons: bytes = field(default=b"", repr=False)
    signing: Mapping[str, str] = field(default_factory=dict, repr=False)


def create_secrets(path: Path) -> Secrets:
    """Writes new secrets to `path` with mode 0600. Raises CuratorError where a file exists."""
    secrets = Secrets(Peppers({FIRST: token_bytes(PEPPER_BYTES)}, FIRST))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CuratorError(f"{path} exists already; secrets are never overwritten.") from None
    except OSError as error:
        raise CuratorError(f"{path} cannot be written: {error.strerror}.") from None
    _write(descriptor, secrets)
    return secrets


def change_secrets(path: Path, made: Callable[[Secrets], Secrets]) -> None:
    """Replaces the file at once: a reader sees the old one or the new one. Raises CuratorError."""
    with _locked(path):
        secrets = made(load_secrets(path))
        new = path.with_name(f".{path.name}.{token_hex(8)}")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            _write(descriptor, secrets)
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise CuratorError(f"{path} cannot be written: {error.strerror}.") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time, by a lock on the directory, which replacing the file does not
    change."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(descriptor: int, secrets: Secrets) -> None:
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, 0o600)
        file.write(secrets_text(secrets))
        file.flush()
        os.fsync(descriptor)


def secrets_text(secrets: Secrets) -> str:
    """The document, as `parse_secrets` reads it."""
    peppers = {pepper_id: pepper.hex() for pepper_id, pepper in secrets.peppers.by_id.items()}
    document: dict[str, object] = {"peppers": peppers, "newest": secrets.peppers.newest}
    if secrets.sources:
        document["sources"] = dict(secrets.sources)
    if secrets.persons:
        document["persons"] = secrets.persons.hex()
    if secrets.signing:
        document["signing"] = dict(secrets.signing)
    return json.dumps(document)


def load_secrets(path: Path) -> Secrets:
    """The secrets in `path`. Raises CuratorError if absent, malformed, or open to other users."""
    try:
        with path.open("rb") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(LARGEST_FILE)
    except OSError as error:
        raise CuratorError(
            f"{path} cannot be read ({error.strerror}); `reticent init` writes it."
        ) from None
    if not S_ISREG(mode) or S_IMODE(mode) & 0o077:
        raise CuratorError(f"{path} is open to other users; run `chmod 600` on it.")
    return parse_secrets(str(path), text)


def parse_secrets(place: str, text: bytes) -> Secrets:
    """The secrets of a document, or of one from when there was one pepper. Raises CuratorError."""
    try:
        document = json.loads(text)
        by_id = document["peppers"] if "peppers" in document else {FIRST: document["pepper"]}
        peppers = {str(pepper_id): bytes.fromhex(pepper) for pepper_id, pepper in by_id.items()}
        newest = str(document.get("newest", FIRST))
        sources = {str(name): str(url) for name, url in document.get("sources", {}).items()}
        persons = bytes.fromhex(document.get("persons", ""))
        signing = {str(k): str(value) for k, value in document.get("signing", {}).items()}
        return Secrets(Peppers(peppers, newest), sources, persons, signing)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CuratorError(f"{place} is not a secrets file; restore it from a backup.") from None
