# SPDX-License-Identifier: Apache-2.0
"""A look at a file that waits, from a cell: what its columns may be, and its first rows."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from reticent_server.errors import CuratorError
from reticent_server.intake.cell import CellLimits, in_cell
from reticent_server.vault.draft import ProposedColumn, propose
from reticent_server.vault.files import FileFormat, file_format
from reticent_server.vault.parquet_file import unpacked_bytes
from reticent_server.vault.preview import Preview, preview

LIMITS = CellLimits(memory=256 << 20, seconds=10, waits=300, reply=4 << 20)
"""The first block of the widest table (2¹⁹ cells) takes 60 MB and 2 s; 500 columns with five cells of 40 characters
and names of 256, spelled as JSON, take less than 2 MB."""

EXPANSION = 16
"""How many times its limit in bytes a file that was sent may hold when it is unpacked: a gigabyte of 64 MB, more than
tables of numbers are compressed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that waits, as its curator sees it."""

    columns: tuple[ProposedColumn, ...]
    preview: Preview = field(repr=False)


_OPENED = TypeAdapter(Opened)


@dataclass(frozen=True, slots=True)
class Look:
    """The order. most: bytes of a file that was sent; None: of one that stays where it is, which has no limit."""

    path: Path
    most: int | None

    def __call__(self) -> bytes:
        """Raises CuratorError."""
        if self.most is not None:
            refuse_unpacked(self.path, self.most)
        return _OPENED.dump_json(Opened(propose(self.path), preview(self.path)))


def looked(look: Look) -> Opened:
    """What a cell sees. Raises CuratorError."""
    return _OPENED.validate_json(in_cell(look, LIMITS, look.path.name))


def refuse_unpacked(path: Path, most: int) -> None:
    """Raises CuratorError for a Parquet file that holds more than was agreed to take."""
    if file_format(path) is FileFormat.PARQUET and unpacked_bytes(path) > EXPANSION * most:
        raise CuratorError(
            f"{path.name} holds more than {EXPANSION * most >> 20} MB when it is unpacked; load it with "
            "`reticent dataset load`, or register it where it is."
        )
