"""The blocks of a table: cached columns cut into views, or batches streamed from the reader."""

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Schema
from reticent_server.domain.steps import Block, GramSum, SumStep, VectorSum
from reticent_server.engine.cache import ColumnCache, Columns
from reticent_server.engine.prefetch import prefetched
from reticent_server.vault.ports import MarkingReader, PartitionedReader, Reader

MISSING, BAD = ":missing", ":bad"
CELLS_PER_BLOCK = 1 << 18
LEAST_ROWS = 1 << 9
BATCHES_AHEAD = 2


class Table:
    """One version's rows, by blocks of at most `block_rows`; private, for the engine only.

    first: the stored position of the first row, where it is a part of a table.
    """

    def __init__(
        self,
        reader: Reader,
        version_id: str,
        schema: Schema,
        names: Sequence[str],
        first: int = 0,
    ) -> None:
        self._reader = reader
        self._version_id = version_id
        self._schema = schema
        self._first = first
        self._width = 1
        self.n = reader.n
        self._names = list(names)
        self._masks = [c.name for c in schema.columns if c.name in names and c.may_be_missing]
        marks = isinstance(reader, MarkingReader) and reader.marks_bad_cells
        self._bad = [name + BAD for name in self._names] if marks else []

    def rows_per_block(self, limit: int, step: SumStep) -> int:
        """Rows, at most `limit`, whose arrays stay in the processor's cache, for any design.

        A design shows its width in its first sums; a step of counts in between works with it too.
        """
        sizes = (part.size for part in step.parts if isinstance(part, VectorSum | GramSum))
        self._width = max(self._width, *sizes, 1)
        return min(limit, max(LEAST_ROWS, CELLS_PER_BLOCK // (self._width + 1) // 64 * 64))

    def parts(self) -> "list[Table] | None":
        """The table in parts that other processes can read; None where they cannot."""
        if not isinstance(self._reader, PartitionedReader):
            return None
        return [
            Table(reader, f"{self._version_id}@{first}", self._schema, self._names, first)
            for first, reader in self._reader.partitions()
        ]

    def blocks(
        self, cache: ColumnCache, block_rows: int, subset: RowSubset | None = None
    ) -> Generator[Block, None, None]:
        """Every record of the subset (None: of the table) once, in stored order.

        Where there is no room for the columns, there may be for the subset's part of them.
        """
        with cache.hold(self._version_id, self._sizes(self.n), self._load) as arrays:
            if subset is not None:
                yield from self._part(cache, block_rows, subset, arrays)
            elif arrays is not None:
                yield from self._cut(arrays, self._first, self.n, block_rows)
            else:
                yield from self._streamed(block_rows, None)

    def _part(
        self, cache: ColumnCache, block_rows: int, subset: RowSubset, whole: Columns | None
    ) -> Iterator[Block]:
        """The subset's records: taken out once for all passes of a release, where there is room, and
        none is made for them where the whole table has its own."""
        rows = subset.count(self._first + self.n, self._first)
        key = f"{self._version_id}/{subset.stride}/{subset.key.hex()}"
        if whole is None:
            load = partial(self._load, subset=subset)
        else:
            load = partial(_taken, whole, subset, self._first, self._first + self.n)
        with cache.hold(key, self._sizes(rows), load, evict=whole is None) as arrays:
            if arrays is not None:
                yield from self._cut(arrays, self._first, rows, block_rows)
            elif whole is not None:
                yield from self._cut(whole, self._first, self.n, block_rows, subset)
            else:
                yield from self._streamed(block_rows, subset)

    def _sizes(self, rows: int) -> dict[str, int]:
        return {key: rows * np.dtype(_kind(key)).itemsize for key in self._keys()}

    def _load(self, keys: list[str], subset: RowSubset | None = None) -> Columns:
        names = list(dict.fromkeys(key.partition(":")[0] for key in keys))
        chosen = subset or RowSubset(1)
        position = self._first
        rows = chosen.count(position + self.n, position)
        arrays = {key: np.empty(rows, dtype=_kind(key)) for key in keys}
        start = 0
        for batch in self._reader.batches(names):
            record_batch = batch.unwrap()
            end = position + record_batch.num_rows
            stop = start + chosen.count(end, position)
            index = _indices(subset, position, end)
            for key, array in arrays.items():
                values = _numpy(record_batch, key)
                array[start:stop] = values if index is None else values[index]
            start, position = stop, end
        return arrays

    def _streamed(self, block_rows: int, subset: RowSubset | None) -> Iterator[Block]:
        start = self._first
        for arrays, rows in prefetched(self._batches(), BATCHES_AHEAD):
            yield from self._cut(arrays, start, rows, block_rows, subset)
            start += rows

    def _batches(self) -> Iterator[tuple[Columns, int]]:
        for batch in self._reader.batches(self._names):
            record_batch = batch.unwrap()
            arrays = {key: _numpy(record_batch, key) for key in self._keys()}
            yield arrays, record_batch.num_rows

    def _keys(self) -> list[str]:
        """What is kept of a record: values, masks, and marks of bad cells."""
        return [*self._names, *(name + MISSING for name in self._masks), *self._bad]

    def _cut(
        self,
        arrays: Columns,
        start: int,
        rows: int,
        block_rows: int,
        subset: RowSubset | None = None,
    ) -> Iterator[Block]:
        """Views of `rows` records, of which the first is at the stored position `start`.

        With a subset, of about block_rows records of it each; views without any are left out.
        """
        step = block_rows * (subset.stride if subset else 1)
        for low in range(0, rows, step):
            high = min(low + step, rows)
            records = _indices(subset, start + low, start + high)
            if records is not None and not len(records):
                continue
            yield Block(
                start=start + low,
                rows=high - low,
                columns={name: arrays[name][low:high] for name in self._names},
                missing={name: arrays[name + MISSING][low:high] for name in self._masks},
                unusable=self._unusable(arrays, low, high),
                records=records,
            )

    def _unusable(self, arrays: Columns, low: int, high: int) -> NDArray[np.bool_] | None:
        if not self._bad:
            return None
        marks = [arrays[key][low:high] for key in self._bad]
        return np.asarray(np.logical_or.reduce(marks), dtype=np.bool_)


def _indices(subset: RowSubset | None, start: int, stop: int) -> NDArray[np.int64] | None:
    """Which of the records at [start, stop) are the subset's; None where all are."""
    return None if subset is None else subset.positions(start, stop) - start


def _taken(whole: Columns, subset: RowSubset, first: int, end: int, keys: list[str]) -> Columns:
    """The subset's part of some of the arrays of the records at [first, end)."""
    index = subset.positions(first, end) - first
    return {key: whole[key][index] for key in keys}


def _kind(key: str) -> type[np.generic]:
    return np.bool_ if key.endswith((MISSING, BAD)) else np.float64


def _numpy(record_batch: Any, key: str) -> Any:
    return np.asarray(record_batch.column(key).to_numpy(zero_copy_only=False), dtype=_kind(key))
