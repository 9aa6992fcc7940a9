# SPDX-License-Identifier: Apache-2.0
"""What a cluster's worker does: the sums of parts of a table, or a constant status.

Whatever goes wrong is caught, so that no text, trace or type of an exception, which may depend on a
private cell, reaches a log or another machine. It is *not* turned into a part of zeros: one record
could then take the contributions of a million others away, and no noise is made for that. A part
that fails is a failed release, which is the same constant whatever the cause; and a map does not
fail, because it is total on records, and rows are read so that none can make the reading fail
(vault.registered).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from reticent_server.allocator import keep_pages
from reticent_server.domain.scratch import ReusedScratch
from reticent_server.domain.steps import SumStep
from reticent_server.engine.block_sums import added, block_sums
from reticent_server.engine.blocks import Table
from reticent_server.engine.cache import ColumnCache
from reticent_server.errors import Unavailable

FAILED, UNREADABLE = "failed", "unreadable"


def sums_of_parts(
    parts: Sequence[Table], step: SumStep, block_rows: int, cache_bytes: int
) -> list[Any] | str:
    """The step's integer sums over the parts, or FAILED, or UNREADABLE.

    cache_bytes: of encoded columns, kept in this process for the passes that follow.
    """
    keep_pages()
    try:
        return _sums(parts, step, block_rows, _cache(cache_bytes))
    except Unavailable:
        return UNREADABLE
    except Exception:  # noqa: BLE001 - its text may depend on a private cell
        return FAILED


def _sums(parts: Sequence[Table], step: SumStep, block_rows: int, cache: ColumnCache) -> list[Any]:
    totals: list[Any] | None = None
    scratch = ReusedScratch()
    for part in parts:
        for piece in part.pieces(cache, block_rows, step.subset):
            totals = added(totals, block_sums(step, piece.block(scratch)))
    return totals or []


@lru_cache(maxsize=1)
def _cache(cache_bytes: int) -> ColumnCache:
    return ColumnCache(cache_bytes)
