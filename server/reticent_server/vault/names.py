# SPDX-License-Identifier: Apache-2.0
"""Names of persons as the vault keeps them: a keyed hash of 64 bits.

By it a new wave finds the persons of the old one, and tables about the same persons are linked; the
identifiers themselves are not stored, and without the key of the secrets file a hash cannot be
tried for a known identifier. It is private as every cell is. Two persons of N have one hash with
probability below N²/2⁶⁵ (3·10⁻⁸ for a million): their rows would be one person's, which is what the
guarantee then protects.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PERSON = "person"
"""The stored column of hashes."""

_MARK_READ = 1 << 20  # bytes at once: few calls, and little memory
_BYTES = 8  # of a hash: a whole number that both databases store
_FILE_BYTES = 16  # of a file's hash: no two files of a curator's have the same by chance
_MARK_BYTES = 8  # of a fingerprint: enough to tell one key from another


def hashes(names: Sequence[str], key: bytes) -> NDArray[np.int64]:
    """(rows,) the hash of each name, stripped of blanks as units are."""
    known = {name: _hash(name, key) for name in dict.fromkeys(names)}
    return np.array([known[name] for name in names], dtype=np.int64)


def _hash(name: str, key: bytes) -> int:
    digest = blake2b(name.encode(), digest_size=_BYTES, key=key).digest()
    return int.from_bytes(digest, "big", signed=True)


def file_mark(path: Path, key: bytes) -> str:
    """The key's fingerprint, a colon, and a keyed hash of a file's bytes, by which the same file is
    known again in another population; empty without a key."""
    if not key:
        return ""
    digest = blake2b(digest_size=_FILE_BYTES, key=key)
    with path.open("rb") as file:
        while part := file.read(_MARK_READ):
            digest.update(part)
    return f"{fingerprint(key)}:{digest.hexdigest()}"


def fingerprint(key: bytes) -> str:
    """A name of the key, by which tables say that they were hashed with the same one."""
    return blake2b(b"names of persons", digest_size=_MARK_BYTES, key=key).hexdigest()
