# SPDX-License-Identifier: Apache-2.0
"""Places without a row: a table of persons is read as if every person had max_rows rows.

Whoever reads it meets N·m rows whatever anybody's number of them, in blocks that everybody's rows
leave where they are. A place without a row has cells of 0, and the mask ABSENT_MASK says so.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent_server.domain.schema import ABSENT
from reticent_server.vault.registered import MASK_SUFFIX

ABSENT_MASK = ABSENT + MASK_SUFFIX
PLACES_AT_ONCE = 1 << 16


def filled(batches: Iterator[pa.RecordBatch], places: int) -> Iterator[pa.RecordBatch]:
    """Batches of consecutive places, `places` in all; rows come with increasing positions.

    Rows whose positions are no places are left out, so that a table that was changed by others is
    short.
    """
    start, rest = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        position = batch.column("position").to_numpy(zero_copy_only=False)
        stop = min(int(position[-1]) + 1, places)
        while start < stop:
            end = min(start + PLACES_AT_ONCE, stop)
            low, high = np.searchsorted(position, (start, end))
            yield _filled(batch.slice(low, high - low), position[low:high] - start, end - start)
            start = end
        rest = batch.slice(0, 0)
    while rest is not None and start < places:
        end = min(start + PLACES_AT_ONCE, places)
        yield _filled(rest, np.empty(0, np.int64), end - start)
        start = end


def _filled(rows: pa.RecordBatch, where: NDArray[np.int64], places: int) -> pa.RecordBatch:
    absent = np.ones(places, np.bool_)
    absent[where] = False
    fields = {ABSENT_MASK: pa.array(absent)}
    for name in rows.schema.names:
        if name != "position":
            cells = rows.column(name).to_numpy(zero_copy_only=False)
            whole = np.zeros(places, cells.dtype)
            whole[where] = cells
            fields[name] = pa.array(whole)
    return pa.RecordBatch.from_pydict(fields)
