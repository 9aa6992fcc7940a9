"""The secrets file: written by `reticent init`, readable by its owner only.

The pepper is never written again. URLs of registered databases, which hold passwords, are added.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex
from stat import S_IMODE, S_ISREG

from reticent_server.errors import CuratorError

PEPPER_BYTES = 32
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Secrets:
    """pepper: the HMAC key under which API keys are stored. sources: URLs of databases, by name."""

    pepper: bytes = field(repr=False)
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)


def create_secrets(path: Path) -> Secrets:
    """Writes new secrets to `path` with mode 0600. Raises CuratorError where a file exists."""
    secrets = Secrets(pepper=token_bytes(PEPPER_BYTES))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CuratorError(f"{path} exists already; secrets are never overwritten.") from None
    except OSError as error:
        raise CuratorError(f"{path} cannot be written: {error.strerror}.") from None
    _write(descriptor, secrets)
    return secrets


def add_source(path: Path, url: str) -> str:
    """Keeps the URL of a database; the name under which it is found. Raises CuratorError.

    The file is replaced at once: a reader sees the old one or the new one.
    """
    with _locked(path):
        known = load_secrets(path)
        name = next((n for n, kept in known.sources.items() if kept == url), token_hex(8))
        new = path.with_name(f".{path.name}.{token_hex(8)}")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            _write(descriptor, Secrets(known.pepper, {**known.sources, name: url}))
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise CuratorError(f"{path} cannot be written: {error.strerror}.") from None
    return name


def source_url(path: Path, name: str) -> str:
    """The URL kept under a name, which may be newer than this process. Raises CuratorError."""
    found = load_secrets(path).sources.get(name)
    if found is None:
        raise CuratorError(f"{path} lacks the URL of a registered database; restore a backup.")
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time, by a lock on the directory, which replacing the file does not change."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(descriptor: int, secrets: Secrets) -> None:
    document: dict[str, object] = {"pepper": secrets.pepper.hex()}
    if secrets.sources:
        document["sources"] = dict(secrets.sources)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, 0o600)
        json.dump(document, file)
        file.flush()
        os.fsync(descriptor)


def load_secrets(path: Path) -> Secrets:
    """The secrets in `path`. Raises CuratorError if absent, malformed, or open to other users."""
    try:
        with path.open("rb") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(_LARGEST_FILE)
    except OSError as error:
        raise CuratorError(
            f"{path} cannot be read ({error.strerror}); `reticent init` writes it."
        ) from None
    if not S_ISREG(mode) or S_IMODE(mode) & 0o077:
        raise CuratorError(f"{path} is open to other users; run `chmod 600` on it.")
    return _parse(path, text)


def _parse(path: Path, text: bytes) -> Secrets:
    try:
        document = json.loads(text)
        pepper = bytes.fromhex(document["pepper"])
        sources = {str(name): str(url) for name, url in document.get("sources", {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pepper, sources = b"", {}
    if len(pepper) < PEPPER_BYTES:
        raise CuratorError(f"{path} is not a secrets file; restore it from a backup.")
    return Secrets(pepper, sources)
