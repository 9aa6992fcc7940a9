# SPDX-License-Identifier: Apache-2.0
"""Records over all columns of noisy tables of some, by the graphical model of McKenna, Sheldon &
Miklau (2019) that the package mbi fits: of all joint laws with the tables' margins the one of the
largest entropy.

Tables are taken from the most informative on, as long as the model's junction tree stays below
_LARGEST: with pairs of many columns that gives about the tree of largest mutual information.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from reticent import _optional
from reticent.results.cell_table import CellTable

_LARGEST = 0.5  # MB of the junction tree's tables: compiling and fitting take a minute or so
_ITERATIONS = 1000  # of mirror descent, mbi's own default


def joint_records(
    tables: Sequence[CellTable], sizes: Mapping[str, int], rows: int, seed: int = 0
) -> dict[str, Any]:
    """Column → (rows,) places of its levels."""
    mbi = _optional.mbi()
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    known = [
        mbi.LinearMeasurement(table.counts.ravel(), table.columns, stddev=table.sigma)
        for table in _fitting(mbi, domain, tables)
    ]
    total = float(np.mean([table.number for table in tables]))
    model = mbi.estimation.MirrorDescent().estimate(
        domain, known, known_total=total, iters=_ITERATIONS
    )
    with _seeded(seed):
        records = model.synthetic_data(rows=rows)
    return {name: np.asarray(records.data[name]) for name in sizes}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """numpy's global generator, of which mbi draws, at `seed`; afterwards as it was."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)


def _fitting(mbi: Any, domain: Any, tables: Sequence[CellTable]) -> list[CellTable]:
    size = mbi.junction_tree.hypothetical_model_size
    kept: list[CellTable] = []
    for table in sorted(tables, key=information, reverse=True):
        if size(domain, [of.columns for of in (*kept, table)]) <= _LARGEST:
            kept.append(table)
    return kept


def information(table: CellTable) -> float:
    """The records' number times the χ² distance of the table from independent columns, over what
    noise makes of it: the part that is not noise, 0 at least.
    """
    N = table.number
    expected = np.full(table.counts.shape, N)
    for k in range(table.counts.ndim):
        margin = table.margin([table.columns[k]]).positive() / N
        expected = expected * np.expand_dims(
            margin, [j for j in range(table.counts.ndim) if j != k]
        )
    off = (table.counts - expected) ** 2 - table.sigma**2
    return max(float((off / np.maximum(expected, table.sigma)).sum()), 0.0)
