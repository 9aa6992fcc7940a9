# SPDX-License-Identifier: Apache-2.0
"""The blocks of a table: cached columns cut into views, or batches streamed from the reader."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import ABSENT, Schema
from reticent_server.domain.steps import Block, ByGroup, GramSum, PowerSum, SumStep, VectorSum
from reticent_server.engine.block_sums import GROUPED
from reticent_server.engine.cache import ColumnCache, Columns
from reticent_server.engine.pieces import Arrays, RowSlice
from reticent_server.engine.prefetch import prefetched
from reticent_server.engine.shared_memory import shared_empty
from reticent_server.mechanisms.disjoint_groups import GroupsMap
from reticent_server.vault.ports import MarkingReader, PartitionedReader, Reader

MISSING, BAD = ":missing", ":bad"
_ENDS = ":ends"  # of records in the order of groups: where each group ends
# 2 MiB of float64: a block's arrays stay in the processor's second cache; speed and memory only
CELLS_PER_BLOCK = 1 << 18
LEAST_ROWS = 1 << 9  # below it a block's fixed cost is more than its work; speed only
MOST_GROUPED_ROWS = 1 << 19  # of such a block: sums of 2²⁰ rows are exact (mechanisms.noisy_sum)
BATCHES_AHEAD = 2  # read while one is worked on: a third would only take memory


class Table:
    """One version's rows, by blocks of at most `block_rows`; private, for the engine only.

    first: the stored position of the first row, where it is a part of a table. due: when what is
    computed of it is to be shown (engine.workers). release: under which name columns are kept that
    are given up with a release; "" where none are kept for one.
    """

    def __init__(
        self,
        reader: Reader,
        version_id: str,
        schema: Schema,
        names: Sequence[str],
        first: int = 0,
        due: float = inf,
        release: str = "",
    ) -> None:
        self.due = due
        self._release = release
        self._reader = reader
        self._version_id = version_id
        self._schema = schema
        self._first = first
        self._width = 1
        self._parts: list[Table] | None = None
        self.n = reader.n
        self._names = list(names)
        self._masks = [c.name for c in schema.columns if c.name in names and c.may_be_missing]
        self._unit_rows = schema.unit.max_rows
        self._absent = [ABSENT] if schema.unit.many_rows else []
        marks = isinstance(reader, MarkingReader) and reader.marks_bad_cells
        self._bad = [name + BAD for name in self._names] if marks else []

    def rows_per_block(self, limit: int, step: SumStep) -> int:
        """Rows, at most `limit`, whose arrays stay in the processor's cache, for any design.

        A design shows its width in its first sums; a step of counts in between works with it too.
        What a person adds is one array for all of the person's rows.
        """
        sizes = (
            p.size if isinstance(p, PowerSum) else p.size // (p.groups * p.person_rows)
            for p in step.parts
            if isinstance(p, VectorSum | GramSum | PowerSum)
        )
        self._width = max(self._width, *sizes, 1)
        if isinstance(step.joint, ByGroup):  # whose arrays are one group's at a time
            limit = min(limit * GROUPED, MOST_GROUPED_ROWS)
            cells = CELLS_PER_BLOCK * GROUPED
        else:
            cells = CELLS_PER_BLOCK
        rows = min(limit, max(LEAST_ROWS, cells // (self._width + 1) // 64 * 64))
        return self.whole_units(rows)

    def whole_units(self, rows: int) -> int:
        """So many rows, or a few more or less, that no unit is divided by blocks of them."""
        return max(1, rows // self._unit_rows) * self._unit_rows

    def parts(self) -> "list[Table] | None":
        """The table in parts that other processes can read; None where they cannot."""
        if self._parts is None and isinstance(self._reader, PartitionedReader):
            self._parts = [
                Table(reader, f"{self._version_id}@{first}", self._schema, self._names, first)
                for first, reader in self._reader.partitions()
            ]
        return self._parts

    def blocks(self, cache: ColumnCache, block_rows: int) -> Generator[Block, None, None]:
        """Every record once, in stored order."""
        for piece in self.pieces(cache, self.whole_units(block_rows)):
            yield piece.block()

    def rows(self, subset: RowSubset | None) -> int:
        """How many records the subset has (None: the table)."""
        return self.n if subset is None else subset.count(self._first + self.n, self._first)

    def pieces(
        self,
        cache: ColumnCache,
        block_rows: int,
        subset: RowSubset | None = None,
        threads: int = 1,
        groups: GroupsMap | None = None,
    ) -> Generator[RowSlice, None, None]:
        """Every record of the subset (None: of the table) once, in stored order, or in that of
        groups.

        threads: by which the pieces will be worked on. groups: of a step by groups.

        Where there is no room for the columns, there may be for the subset's part of them.
        """
        load = partial(self._load, threads=threads)
        with cache.hold(self._version_id, self._sizes(self.n), load) as arrays:
            if subset is not None:
                yield from self._part(cache, block_rows, subset, arrays, threads)
            elif arrays is not None and groups is not None and self._release:
                yield from self._ordered(cache, block_rows, groups, arrays, threads)
            elif arrays is not None:
                yield from self._cut(arrays, self._first, self.n, block_rows)
            else:
                yield from self._streamed(block_rows, None)

    def _part(
        self,
        cache: ColumnCache,
        block_rows: int,
        subset: RowSubset,
        whole: Columns | None,
        threads: int,
    ) -> Iterator[RowSlice]:
        """The subset's records: taken out once for all passes of a release, where there is room,
        and none is made for them where the whole table has its own."""
        rows = self.rows(subset)
        key = f"{self._version_id}/{subset.stride}/{subset.key.hex()}"
        if whole is None:
            load = partial(self._load, threads=threads, subset=subset)
        else:
            index = partial(_indices, subset, self._first, self._first + self.n)
            load = partial(_records_at, whole, index, threads)
        with cache.hold(key, self._sizes(rows), load, evict=whole is None) as arrays:
            if arrays is not None:
                yield from self._cut(arrays, self._first, rows, block_rows)
            elif whole is not None:
                yield from self._cut(whole, self._first, self.n, block_rows, subset)
            else:
                yield from self._streamed(block_rows, subset)

    def _ordered(
        self,
        cache: ColumnCache,
        block_rows: int,
        groups: GroupsMap,
        whole: Columns,
        threads: int,
    ) -> Iterator[RowSlice]:
        """The records in the order of the groups, in which they are brought once for all passes of
        a release where there is room: a pass then need not look for them."""
        codes = sha256(repr((groups.column, groups.codes)).encode()).hexdigest()
        key = f"{self._version_id}/{codes}/{self._release}"
        # the places are there while columns are taken out
        sizes = self._sizes(self.n) | {_ENDS: self.n * np.dtype(np.int64).itemsize}
        load = partial(self._in_order, groups, whole, threads)
        with cache.hold(key, sizes, load, evict=False) as arrays:
            found = whole if arrays is None else arrays
            yield from self._cut(found, self._first, self.n, block_rows)

    def _in_order(
        self, groups: GroupsMap, whole: Columns, threads: int, keys: list[str]
    ) -> Columns:
        block = RowSlice(self._arrays(whole), self._first, 0, self.n).block()
        order, ends = groups.order(block)
        kept = [key for key in keys if key != _ENDS]
        taken = _records_at(whole, lambda: order, threads, kept)
        return taken | {_ENDS: np.array(ends, dtype=np.int64)}

    def _sizes(self, rows: int) -> dict[str, int]:
        return {key: rows * np.dtype(_kind(key)).itemsize for key in self._keys()}

    def _load(self, keys: list[str], *, threads: int, subset: RowSubset | None = None) -> Columns:
        names = [n for n in dict.fromkeys(key.partition(":")[0] for key in keys) if n != ABSENT]
        chosen = subset or RowSubset(1)
        position = self._first
        rows = chosen.count(position + self.n, position)
        arrays = {key: _empty(rows, key, threads) for key in keys}
        start = 0
        for batch in self._reader.batches(names):
            record_batch = batch.unwrap()
            end = position + record_batch.num_rows
            stop = start + chosen.count(end, position)
            index = None if subset is None else _indices(subset, position, end)
            for key, array in arrays.items():
                values = _numpy(record_batch, key)
                array[start:stop] = values if index is None else values[index]
            start, position = stop, end
        return arrays

    def _streamed(self, block_rows: int, subset: RowSubset | None) -> Iterator[RowSlice]:
        start = self._first
        for arrays, rows in prefetched(self._batches(), BATCHES_AHEAD):
            yield from self._cut(arrays, start, rows, block_rows, subset)
            start += rows

    def _batches(self) -> Iterator[tuple[Columns, int]]:
        kept: Columns = {}
        for batch in self._reader.batches(self._names):
            record_batch = batch.unwrap()
            arrays = {key: _numpy(record_batch, key) for key in self._keys()}
            rows = record_batch.num_rows
            if self._unit_rows > 1:  # the places of one person come in one piece
                arrays, kept, rows = self._without_rest(_joined(kept, arrays))
            yield arrays, rows

    def _without_rest(self, arrays: Columns) -> tuple[Columns, Columns, int]:
        """The rows of whole units, the rest, and the number of the first."""
        rows = len(arrays[ABSENT + MISSING]) // self._unit_rows * self._unit_rows
        whole = {key: array[:rows] for key, array in arrays.items()}
        return whole, {key: array[rows:] for key, array in arrays.items()}, rows

    def _keys(self) -> list[str]:
        """What is kept of a record: values, masks, and marks of bad cells."""
        masks = (name + MISSING for name in [*self._absent, *self._masks])
        return [*self._names, *masks, *self._bad]

    def _cut(
        self,
        arrays: Columns,
        start: int,
        rows: int,
        block_rows: int,
        subset: RowSubset | None = None,
    ) -> Iterator[RowSlice]:
        """Pieces of `rows` records, of which the first is at the stored position `start`.

        With a subset, of about block_rows records of it each; pieces without any are left out.
        """
        whole = self._arrays(arrays)
        step = block_rows * (subset.stride if subset else 1)
        for low in range(0, rows, step):
            high = min(low + step, rows)
            records = _indices(subset, start + low, start + high) if subset else None
            if records is None or len(records):
                yield RowSlice(whole, start + low, low, high, records)

    def _arrays(self, arrays: Columns) -> Arrays:
        return Arrays(
            columns={name: arrays[name] for name in self._names},
            missing={name: arrays[name + MISSING] for name in [*self._absent, *self._masks]},
            marks=tuple(arrays[key] for key in self._bad),
            ends=tuple(arrays[_ENDS].tolist()) if _ENDS in arrays else None,
        )


def _indices(subset: RowSubset, start: int, stop: int) -> NDArray[np.int64]:
    """Which of the records at [start, stop) are the subset's."""
    return subset.positions(start, stop) - start


def _records_at(
    whole: Columns, indices: Callable[[], NDArray[np.int64]], threads: int, keys: list[str]
) -> Columns:
    """Some records of some of the arrays."""
    index = indices()

    def take(key: str) -> Any:
        array = _empty(len(index), key, threads)
        return whole[key].take(index, out=array, mode="clip")

    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(keys, pool.map(take, keys), strict=True))


def _empty(rows: int, key: str, threads: int) -> Any:
    """Memory for a column: where threads have processes that help, such as these can map."""
    return shared_empty(rows, _kind(key)) if threads > 1 else np.empty(rows, dtype=_kind(key))


def _joined(first: Columns, second: Columns) -> Columns:
    if not first:
        return second
    return {key: np.concatenate([first[key], array]) for key, array in second.items()}


def _kind(key: str) -> type[np.generic]:
    return np.bool_ if key.endswith((MISSING, BAD)) else np.float64


def _numpy(record_batch: Any, key: str) -> Any:
    return np.asarray(record_batch.column(key).to_numpy(zero_copy_only=False), dtype=_kind(key))
