# SPDX-License-Identifier: Apache-2.0
"""The rows of a table of persons, in an order that no other person decides.

Person k of N has the places k·m … k·m + m − 1. Persons stand in the order of a digest of their
names, and a person's rows in the order of their cells: the declared columns one after the other, a
missing cell after its value of 0. So where a person stands, and which m of more than m rows are
kept, are functions of that person alone, and neither the order of the file nor the number of
anybody's rows moves anybody else. A schema whose first column is the time keeps the earliest rows.
In a population with a spine person k is the one who has place k there (vault.placing).
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent_server.domain.schema import Unit
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.placing import OUTSIDE, Placing
from reticent_server.vault.units import unit_texts

MOST_PLACES = 1 << 30  # N·m: a column of them takes 8 GiB while it is read
_BATCH_ROWS = 1 << 16


class PersonRows:
    """Collects encoded rows in memory, then gives them with their positions.

    placing: the population's places, where persons are told by hashes of their names; None: their
    own order is theirs.
    """

    def __init__(self, unit: Unit, placing: Placing | None = None) -> None:
        self._unit = unit
        self._placing = placing
        self._numbers: dict[str, int] = {}
        self._persons: list[NDArray[np.int64]] = []
        self._columns: list[dict[str, pa.Array]] = []
        self.left_out = 0
        self.outside = 0

    @property
    def count(self) -> int:
        """N: how many places there are, or persons where there is no spine."""
        return len(self._numbers) if self._placing is None else self._placing.spine.n

    def add(self, block: FileBlock, columns: dict[str, pa.Array]) -> None:
        """Takes up a block's rows. Raises CuratorError naming a row without a unit."""
        self.add_named(unit_texts(block, self._unit.column or ""), columns)

    def add_named(self, units: Sequence[str], columns: dict[str, pa.Array]) -> None:
        """Takes up rows, each of the person of that name."""
        numbers = (self._numbers.setdefault(unit, len(self._numbers)) for unit in units)
        self._persons.append(np.fromiter(numbers, np.int64, len(units)))
        self._columns.append(columns)

    def batches(self) -> Iterator[tuple[pa.Array, dict[str, pa.Array]]]:
        """(positions, columns) of the rows that are kept, by position. Raises CuratorError for too
        many places."""
        if not self._persons:
            return
        if self.count * self._unit.max_rows > MOST_PLACES:
            raise CuratorError(
                f"{self.count} persons of up to {self._unit.max_rows} rows are more than "
                f"{MOST_PLACES} places "
                "for rows: declare a smaller `max_rows`."
            )
        columns = {
            name: np.concatenate(
                [part[name].to_numpy(zero_copy_only=False) for part in self._columns]
            )
            for name in self._columns[0]
        }
        self._columns.clear()
        rows, positions = self._placed(columns)
        for start in range(0, len(rows), _BATCH_ROWS):
            part = rows[start : start + _BATCH_ROWS]
            where = pa.array(positions[start : start + _BATCH_ROWS])
            yield where, {name: pa.array(values[part]) for name, values in columns.items()}

    def _placed(
        self, columns: dict[str, NDArray[np.generic]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which rows are kept, and their positions, increasing."""
        person = self._places()[np.concatenate(self._persons)]
        rows = np.lexsort((*reversed(columns.values()), person))
        rows = rows[np.count_nonzero(person == OUTSIDE) :]
        person = person[rows]
        rank = np.arange(len(rows)) - np.searchsorted(person, person)
        kept = rank < self._unit.max_rows
        self.left_out = int(np.count_nonzero(~kept))
        return rows[kept], (person * self._unit.max_rows + rank)[kept]

    def _places(self) -> NDArray[np.int64]:
        """(persons,) where each person stands, by the number that it was given."""
        if self._placing is not None:
            places = self._placing.places(list(self._numbers))
            self.outside = int(np.count_nonzero(places == OUTSIDE))
            self._placing.check(len(places) - self.outside)
            return places
        names = sorted(self._numbers, key=lambda name: blake2b(name.encode()).digest())
        places = np.empty(len(names), np.int64)
        places[[self._numbers[name] for name in names]] = np.arange(len(names))
        return places
