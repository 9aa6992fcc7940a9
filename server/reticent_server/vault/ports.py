# SPDX-License-Identifier: Apache-2.0
"""What the engine asks of a reader of private rows."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from reticent_server.domain.private import Private


class Reader(Protocol):
    """Reads one version's rows in stored order; exactly `n` of them."""

    @property
    def n(self) -> int: ...

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        """Private[pyarrow.RecordBatch]es with the requested columns.

        Each column is float64 (numeric and integer values; boolean 0/1; categorical codes), NOT
        NULL, 0 where missing; a column that may be missing is followed by `<name>:missing` (bool).
        """
        ...


@runtime_checkable
class MarkingReader(Reader, Protocol):
    """A reader of rows that others may change after they were checked.

    Each column is followed by `<name>:bad` (bool): the cell cannot be read, and a value within the
    bounds stands in its place. The record is then to contribute nothing.
    """

    @property
    def marks_bad_cells(self) -> bool: ...


@runtime_checkable
class PartitionedReader(Reader, Protocol):
    """A reader whose rows other processes can read in parts."""

    def partitions(self) -> Sequence[tuple[int, Reader]]:
        """Readers that pickle, of consecutive rows, each with the position of its first row."""
        ...
