# SPDX-License-Identifier: Apache-2.0
"""The places of a population's persons, which every table, wave and link of it shares.

A population declares N places (domain.source.Spine). A person keeps its place in every table and
version, whoever else is there; a person without rows leaves it empty, and a person without a place
is left out of the table. So the size of every table is N·m, a declared number: no sum, difference
or list of sizes says who is in a table.

In a spine that grows, whoever comes first takes the next free place, in an order of digests. Which
persons have places already is read off the tables that were loaded into them; these are kept for
ever, as old versions are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.source import Spine, VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault.adbc import DRIVER_ERRORS, Permits, VaultUrl, stream
from reticent_server.vault.names import PERSON
from reticent_server.vault.registered import UNREADABLE

OUTSIDE = -1
"""The place of a person without one."""

_NO_PLACES = (
    "The places of the population's persons cannot be read; nothing was loaded. Restore the vault; "
    "if it is lost, declare the places anew with `reticent population renew`: that frees no budget."
)


@dataclass(frozen=True, slots=True)
class Placing:
    """Who has which place of a spine. known: hash of a name → place. is_complete: whether everybody
    must have a row."""

    spine: Spine
    known: Mapping[int, int]
    is_complete: bool = False

    def places(self, names: Sequence[str]) -> NDArray[np.int64]:
        """(persons,) the place of each hash (a whole number as text), OUTSIDE for who is left out.

        Raises CuratorError where a growing population has no free place left.
        """
        known = dict(self.known)
        if self.spine.grows:
            new = [name for name in names if int(name) not in known]
            if len(known) + len(new) > self.spine.n:
                raise CuratorError(
                    f"With this file the population has {len(known) + len(new)} persons, and "
                    f"{self.spine.n} places "
                    "are declared; nothing was loaded. Declare more with `reticent population "
                    "widen`."
                )
            new.sort(key=lambda name: blake2b(name.encode()).digest())
            known.update((int(name), place) for place, name in enumerate(new, len(known)))
        return np.fromiter((known.get(int(name), OUTSIDE) for name in names), np.int64, len(names))

    def check(self, present: int) -> None:
        """present: how many persons have a row. Raises CuratorError where that must be
        everybody."""
        if self.is_complete and present != self.spine.n:
            raise CuratorError(
                f"{self.spine.n - present} of the population's {self.spine.n} persons have no "
                "row in the file. Every person "
                f"has exactly one in {self.spine.dataset}: add their rows, or load the file as "
                "another data set of the "
                "population, in which a person may have no row."
            )


def placing(
    vault: VaultUrl, spine: Spine, tables: Sequence[VaultTable], *, is_complete: bool = False
) -> Placing:
    """Who has a place of `spine`. tables: those of the population. Raises CuratorError."""
    known: dict[int, int] = {}
    placed = [table for table in tables if table.spine == spine.id] if spine.grows else []
    try:
        for table in ([] if spine.table is None else [spine.table]) + placed:
            names, places = persons_of(vault, table)
            known.update(zip(names.tolist(), places.tolist(), strict=True))
    except Unavailable:
        raise CuratorError(_NO_PLACES) from None
    return Placing(spine, known, is_complete)


def persons_of(
    vault: VaultUrl, table: VaultTable, permits: Permits | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The hashes of a table's persons, each once, and the place of each, by place. Raises
    Unavailable (a constant text)."""
    # Every name in the statement was generated at load.
    sql = f"SELECT position, {PERSON} FROM {table.table} ORDER BY position"  # noqa: S608
    failed, parts = False, [np.zeros((2, 0), np.int64)]
    try:
        for batch in stream(vault, sql, permits=permits):
            columns = [np.asarray(batch.column(i)).astype(np.int64) for i in range(2)]
            parts.append(np.stack(columns))
    except DRIVER_ERRORS:
        failed = True
    if failed:  # outside the handler: no driver text is kept as context
        raise Unavailable(UNREADABLE)
    position, names = np.concatenate(parts, axis=1)
    places, first = np.unique(position // table.max_rows, return_index=True)
    return names[first], places
