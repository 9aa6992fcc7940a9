# SPDX-License-Identifier: Apache-2.0
"""An adversarial pool of units of the kinds' example table, and that table as a block.

The pool has the ends of every column's bounds, its middle, values that no cell may have, and
missing cells; a unit of several rows has copies of one record, records of several kinds, and places
without a row.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Unit
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.public_random import PublicGenerator, public_generator

FAR = (1e300, np.nan)
"""No cell holds these; maps and primitives have to withstand them all the same."""


def units(facts: DatasetFacts, size: int, seed: int) -> list[Block]:
    """A pool of `size` units, as blocks of their own."""
    rng, m = public_generator("pool of units", str(seed)), facts.schema.unit.max_rows
    columns = facts.schema.columns
    corners = list(product(*(_values(column, rng) for column in columns)))
    rows = [corners[k] for k in rng.permutation(len(corners))[: size * m]]
    unit = facts.schema.unit
    return [_unit(columns, rows, unit, k, rng) for k in range(size)]


def _values(column: Column, rng: PublicGenerator) -> Sequence[float]:
    ends = (column.lower, column.upper)
    if column.kind is ColumnKind.NUMERIC:
        middle = sum(ends) / 2  # a cut, or a centre, is often there
        return (*ends, middle, column.lower + rng.random() * (column.upper - column.lower))
    return ends if column.is_dummy else (*ends, float(round(sum(ends) / 2)))


def _unit(
    columns: Sequence[Column],
    rows: Sequence[tuple[float, ...]],
    unit: Unit,
    number: int,
    rng: PublicGenerator,
) -> Block:
    """m copies of one record; of every third unit different ones, of which none to all are absent,
    or the only one.
    """
    m = unit.max_rows
    mixed = m > 1 and number % 3 == 2
    taken = [rows[(number * m + (j if mixed else 0)) % len(rows)] for j in range(m)]
    values = dict(
        zip((c.name for c in columns), np.array(taken, dtype=np.float64).T.copy(), strict=True)
    )
    numeric = [c.name for c in columns if c.kind is ColumnKind.NUMERIC]
    if number % 8 == 7 and numeric:
        values[numeric[number // 8 % len(numeric)]][:] = FAR[number // 8 % len(FAR)]
    missing = {
        c.name: np.full(m, number % 5 == 4 and bool(rng.random() < 0.5))
        for c in columns
        if c.may_be_missing
    }
    if m > 1:
        present = number // 3 % (m + 1) if mixed else m
        missing[ABSENT] = np.arange(m) >= present
    elif unit.gaps:
        missing[ABSENT] = np.full(1, number % 3 == 2)
    for name, mask in missing.items():
        if name:
            values[name][mask] = 0.0
    return Block(0, m, values, missing)


def table_of(facts: DatasetFacts, cells: Mapping[str, FloatArray]) -> Block:
    """A whole table as one block, all places filled, nothing missing."""
    n = facts.slots
    missing = {c.name: np.zeros(n, dtype=bool) for c in facts.schema.columns if c.may_be_missing}
    if facts.schema.unit.many_rows:
        missing[ABSENT] = np.zeros(n, dtype=bool)
    return Block(0, n, dict(cells), missing)
