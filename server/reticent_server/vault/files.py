"""Opens a private file by the ending of its name."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.csv_file import csv_blocks
from reticent_server.vault.parquet_file import parquet_blocks

_READERS = {".csv": csv_blocks, ".parquet": parquet_blocks}


def read_blocks(path: Path, wanted: Sequence[str]) -> Iterator[FileBlock]:
    """The wanted columns of a .csv or .parquet file, in the file's order. Raises CuratorError."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CuratorError(f"{path.name}: the file's name must end in .csv or .parquet.")
    return reader(path, wanted)
