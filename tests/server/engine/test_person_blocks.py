# SPDX-License-Identifier: Apache-2.0
"""Blocks of a table of persons: whole persons, whatever the batches, the cache and the block
size.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.private import Private
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.engine.blocks import Table
from reticent_server.engine.cache import ColumnCache
from support.seeds import seeded

PERSONS, M = 701, 7
SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, -10, 10),), Unit("id", M))


ARRAYS = {
    "x": seeded(1).normal(size=PERSONS * M),
    ":missing": seeded(2).random(PERSONS * M) < 0.4,
}


class PersonReader:
    """Places in memory, in batches of a size that divides persons."""

    n = PERSONS * M

    def __init__(self) -> None:
        self.arrays = ARRAYS

    def batches(self, columns: Any) -> Any:
        names = [*columns, ":missing"]
        for low in range(0, self.n, 1000):
            cut = {k: pa.array(self.arrays[k][low : low + 1000]) for k in names}
            yield Private(pa.RecordBatch.from_pydict(cut))


@pytest.mark.parametrize("block_rows", [1, 10, 500, 1 << 14])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 24])
def test_no_block_divides_a_person(block_rows: Any, cache_bytes: Any) -> None:
    table = Table(PersonReader(), "v1", SCHEMA, ("x",))
    blocks = list(table.blocks(ColumnCache(cache_bytes), block_rows))
    assert all(block.rows % M == block.start % M == 0 for block in blocks)
    assert all(block.rows <= max(block_rows, M) for block in blocks)
    x = np.concatenate([block.columns["x"] for block in blocks])
    absent = np.concatenate([block.missing[ABSENT] for block in blocks])
    assert np.array_equal(x, ARRAYS["x"])
    assert np.array_equal(absent, ARRAYS[":missing"])
