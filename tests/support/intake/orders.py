# SPDX-License-Identifier: Apache-2.0
"""Orders for a cell that do what a hostile file might make a library do."""

import os
import sys
import time
from dataclasses import dataclass

import numpy as np

from reticent_server.errors import Conflict, SecondPerson

SECRET = "Zanzibar-cell"


@dataclass(frozen=True, slots=True)
class Says:
    length: int

    def __call__(self) -> bytes:
        return b"x" * self.length


class Spins:
    def __call__(self) -> bytes:
        while True:
            pass


class Sleeps:
    def __call__(self) -> bytes:
        time.sleep(600)
        return b""


@dataclass(frozen=True, slots=True)
class Takes:
    """Memory, in bytes."""

    size: int

    def __call__(self) -> bytes:
        return b"%d" % np.ones(self.size // 8).size


class Writes:
    def __call__(self) -> bytes:
        with open("written-by-a-cell", "wb") as file:  # noqa: PTH123
            file.write(b"x" * 10)
        return b"written"


class Tells:
    """Writes a cell wherever a library might, and fails with it."""

    def __call__(self) -> bytes:
        sys.stderr.write(SECRET)
        raise ValueError(SECRET)


class Refuses:
    def __call__(self) -> bytes:
        raise Conflict("It is there already.")


class Proposes:
    def __call__(self) -> bytes:
        raise SecondPerson("prop_1")


class Lists:
    """The names of its environment's variables."""

    def __call__(self) -> bytes:
        return " ".join(os.environ).encode()
