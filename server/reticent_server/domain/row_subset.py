# SPDX-License-Identifier: Apache-2.0
"""A random part of a table's rows: of each unit, with probability 1/stride, chosen by a secret key.

A plan names the stride only; the engine draws the key anew for every release
(mechanisms.secret_rows), from the system's CSPRNG, and never shows it. Given the key, membership is
a function of the stored position: the same in every process, for every source, and before a cell is
read.

Units are chosen one by one, independently, so the law of the choice is the same for every order of
the units. The guarantee therefore does not rest on the order in which a table came
(domain.steps.SumStep), and a table in the order of a column is sampled as well as any other. The
places of a unit of several rows come together, or not at all: what is made of a person's rows needs
all of them.

Source of the bits: SHAKE-128 (FIPS 202) of the key and the chunk's number, one byte for each
position.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray

# units whose bits are made at once: those of a chunk are found without the chunks before it
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class RowSubset:
    """One unit of `stride`, a power of two up to 2⁸, on average; 1: all rows. key: 16 secret bytes.
    unit: the places of a unit, which follow one another from position 0 on."""

    stride: int
    key: bytes = field(default=b"", repr=False)
    unit: int = 1

    def positions(self, start: int, stop: int) -> NDArray[np.int64]:
        """The stored positions of the subset in [start, stop), increasing."""
        units = np.concatenate([np.empty(0, dtype=np.int64), *self._pieces(start, stop)])
        if self.unit == 1:
            return units
        places = (units[:, None] * self.unit + np.arange(self.unit)).ravel()
        return places[slice(*np.searchsorted(places, (start, stop)))]

    def count(self, stop: int, start: int = 0) -> int:
        """How many positions of the subset are in [start, stop)."""
        if self.stride == 1:
            return max(stop - start, 0)
        if start % self.unit or stop % self.unit:
            return len(self.positions(start, stop))
        units = self._chunks(start // self.unit, stop // self.unit)
        return self.unit * sum(len(chosen) for _, chosen in units)

    def _pieces(self, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
        """The numbers of the chosen units that have a place in [start, stop)."""
        for first, chosen in self._chunks(start // self.unit, -(-stop // self.unit)):
            yield chosen.astype(np.int64) + first

    def _chunks(self, start: int, stop: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """The first unit of each chunk that meets [start, stop), and what is chosen from there."""
        for chunk in range(start // CHUNK, -(-stop // CHUNK)):
            first = chunk * CHUNK
            chosen = _chosen(self.stride, self.key, chunk)
            if first < start or stop < first + CHUNK:
                low, high = np.searchsorted(chosen, (start - first, stop - first))
                chosen = chosen[low:high]
            yield first, chosen


@lru_cache(maxsize=256)
def _chosen(stride: int, key: bytes, chunk: int) -> NDArray[np.int32]:
    """The subset's units within a chunk, increasing."""
    stream = shake_128(key + chunk.to_bytes(8, "big")).digest(CHUNK)
    bits = np.frombuffer(stream, dtype=np.uint8) & (stride - 1)
    return np.flatnonzero(bits == 0).astype(np.int32)
