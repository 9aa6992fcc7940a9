# SPDX-License-Identifier: Apache-2.0
"""Arrow files (Feather, IPC) block by block, in the order of their batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from reticent_server.domain.reading import Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, FileColumn, find_columns, rows_per_block


def arrow_columns(path: Path, reading: Reading) -> list[FileColumn]:  # noqa: ARG001
    """The columns of an Arrow file. Raises CuratorError."""
    with _opened(path) as file:
        return [FileColumn(field.name) for field in file.schema]


def arrow_blocks(
    path: Path,
    wanted: Sequence[str],
    reading: Reading,  # noqa: ARG001
    most: int | None = None,
) -> Iterator[FileBlock]:
    """The wanted columns with the file's types. most: rows of a block. Raises CuratorError."""
    with _opened(path) as file:
        find_columns(file.schema.names, wanted, path.name)
        size = most or rows_per_block(len(wanted))
        start, count = 0, max(1, file.num_record_batches)
        for k in range(file.num_record_batches):
            batch = file.get_batch(k)
            for first in range(0, batch.num_rows, size):
                part = batch.slice(first, size)
                columns = {name: part.column(name) for name in wanted}
                yield FileBlock(start, part.num_rows, columns, (k + 1) / count)
                start += part.num_rows


@contextmanager
def _opened(path: Path) -> Iterator[pa.ipc.RecordBatchFileReader]:
    failed = False
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            yield file
    except FileNotFoundError:
        raise CuratorError(f"{path} cannot be opened: no such file.") from None
    except MemoryError:  # Arrow's, too: no fault of the file's form
        raise
    except (pa.ArrowException, OSError):  # their texts may quote the file's bytes
        failed = True
    if failed:
        raise CuratorError(f"{path.name} cannot be read as Arrow.")
