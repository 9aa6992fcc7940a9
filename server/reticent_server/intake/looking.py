# SPDX-License-Identifier: Apache-2.0
"""A look at a private file, from a cell: how it is read, what its columns may be, and its first
rows.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.errors import CuratorError
from reticent_server.intake.cell import CellLimits, in_cell
from reticent_server.vault.draft import Proposal, propose
from reticent_server.vault.files import FileFormat, file_format
from reticent_server.vault.parquet_file import unpacked_bytes

LIMITS = CellLimits(memory=256 << 20, seconds=20, waits=300, reply=4 << 20)
"""2²¹ cells, in blocks, take 60 MB and 6 s; 500 columns with five cells of 40 characters
and names of 256, spelled as JSON, take less than 2 MB."""

OWN_LIMITS = CellLimits(memory=2 << 30, seconds=600, waits=1800, reply=4 << 20)
"""On the command line, where a curator looks at a file of his or her own: an Excel sheet of 30
million cells takes 1 GB.
"""

EXPANSION = 16
"""How many times its limit in bytes a file that was sent may hold when it is unpacked: a gigabyte
of 64 MB, more than tables of numbers are compressed.
"""


_PROPOSAL = TypeAdapter(Proposal)


@dataclass(frozen=True, slots=True)
class Look:
    """The order. most: bytes of a file that was sent; None: of one that stays where it is, which
    has no limit. said: how it is read, as far as its curator says it.
    """

    path: Path
    most: int | None
    said: Reading = UNSAID

    def __call__(self) -> bytes:
        """Raises CuratorError."""
        if self.most is not None:
            refuse_unpacked(self.path, self.most)
        return _PROPOSAL.dump_json(propose(self.path, self.said))


def looked(look: Look, limits: CellLimits | None = None) -> Proposal:
    """What a cell sees. limits: None for LIMITS. Raises CuratorError."""
    return _PROPOSAL.validate_json(in_cell(look, limits or LIMITS, look.path.name))


def refuse_unpacked(path: Path, most: int) -> None:
    """Raises CuratorError for a Parquet file that holds more than was agreed to take."""
    if file_format(path) is FileFormat.PARQUET and unpacked_bytes(path) > EXPANSION * most:
        raise CuratorError(
            f"{path.name} holds more than {EXPANSION * most >> 20} MB when it is unpacked; load "
            "it with "
            "`reticent dataset load`, or register it where it is."
        )
