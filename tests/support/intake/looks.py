# SPDX-License-Identifier: Apache-2.0
"""Orders for a cell that look at several files, since a process of its own for each takes a
second.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from reticent_server.errors import CuratorError
from reticent_server.vault.draft import propose
from support.seeds import seeded_random


@dataclass(frozen=True, slots=True)
class LooksAt:
    """What is said of each of several files, one after the other, in one process."""

    files: tuple[Path, ...]

    def __call__(self) -> bytes:
        return json.dumps([_said_of(file) for file in self.files]).encode()


def _said_of(file: Path) -> str:
    try:
        return f"{len(propose(file).columns)} columns"
    except CuratorError as error:
        return error.detail


@dataclass(frozen=True, slots=True)
class LooksAtChanged:
    """A file with some bytes changed, again and again; the reply: how often it could be read, of
    how many. folder: where the changed ones are written.
    """

    file: Path
    folder: Path
    seeds: range

    def __call__(self) -> bytes:
        data, read = self.file.read_bytes(), 0
        for seed in self.seeds:
            changed = self.folder / f"{seed}{self.file.suffix}"
            changed.write_bytes(_changed(data, seeded_random(seed)))
            read += _said_of(changed).endswith(" columns")
            changed.unlink()
        return b"%d of %d" % (read, len(self.seeds))


def _changed(data: bytes, random: Random) -> bytes:
    """Up to ten bytes are others, half of them in the header; a fifth of the files break off."""
    made = bytearray(data)
    for _ in range(random.choice((1, 3, 10))):
        length = min(len(made), 600) if random.random() < 0.5 else len(made)
        made[random.randrange(length)] = random.choice((0, 255, 127, 128, random.randrange(256)))
    return bytes(made[: random.randrange(len(made))] if random.random() < 0.2 else made)
