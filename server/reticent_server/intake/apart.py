# SPDX-License-Identifier: Apache-2.0
"""A load or a registration for the console, in a cell: it opens the databases itself, and commits
all or nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from reticent_server.domain.clock import SystemClock
from reticent_server.intake.cell import CellLimits, in_cell
from reticent_server.intake.loading import FileToLoad, load_file
from reticent_server.intake.registering import register_folder
from reticent_server.opening import books_on, ready_engine
from reticent_server.settings import Settings

LIMITS = CellLimits(memory=512 << 20, seconds=3600, waits=7200, reply=1 << 20, writes=True)
"""Blocks take 100 MB; rows of persons, which are put in order in memory, 9 bytes a cell: a CSV file
of 64 MB has at most 32 million. An hour of reading is a billion cells.
"""

OWN_LIMITS = CellLimits(memory=4 << 30, seconds=36_000, waits=72_000, reply=1 << 20, writes=True)
"""On the command line: an Excel sheet is read as a whole, of 60 million cells 2 GB."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """What has become of it: the version's id, and for the curator's eyes what LoadedVersion
    says.
    """

    version_id: str
    clipped: Mapping[str, int]
    left_out: int
    outside: int


_STORED = TypeAdapter(StoredVersion)


@dataclass(frozen=True, slots=True)
class LoadApart:
    """The order. stays: a folder of files that are registered where they are. by: who does it, for
    the audit trail.
    """

    settings: Settings = field(repr=False)
    wanted: FileToLoad = field(repr=False)
    stays: bool
    by: str

    def __call__(self) -> bytes:
        """Raises as load_file and register_folder."""
        books = books_on(ready_engine(self.settings), self.settings, SystemClock())
        catalog, approvals = books.catalog, books.approvals
        if self.stays:
            loaded = register_folder(self.settings, catalog, approvals, self.wanted, by=self.by)
        else:
            loaded = load_file(self.settings, catalog, approvals, self.wanted, by=self.by)
        stored = StoredVersion(
            loaded.facts.version_id, loaded.clipped, loaded.left_out, loaded.outside
        )
        return _STORED.dump_json(stored)


def loaded_apart(order: LoadApart, limits: CellLimits = LIMITS) -> StoredVersion:
    """What a cell has stored. Raises CuratorError and what the order raises."""
    return _STORED.validate_json(in_cell(order, limits, order.wanted.file.name))
