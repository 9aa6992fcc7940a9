# SPDX-License-Identifier: Apache-2.0
"""Computes a feature of each person from the person's rows.

A feature is a function of the multiset of a person's rows, to the last bit, whatever order they are
stored in: the rows are sorted by person and by the values themselves before anything is added or
taken, and numbers are added one after the other in that order (bincount; a pairwise or compensated
sum would be, too, but its order is the library's). Zeros lose their sign first, as -0 and 0 sort
alike. The proof of privacy rests on this, and on the bounds: domain.persons.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.persons import Feature
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import evaluate, holds

Bools = NDArray[np.bool_]
Slots = NDArray[np.int64]


def person_values(
    feature: Feature, rows: Block, slots: Slots, persons: int
) -> tuple[FloatArray, Bools]:
    """(persons,) values and which of them are missing, there 0.

    slots: (rows,) the person of each row, from 0 to persons − 1. missing masks of `rows` may be
    given for any column that is read; a row that is missing in one of them is not in use. All rows
    of a person must be there.
    """
    used, values, order = _in_use(feature, rows)
    of = slots[used]
    counts = np.bincount(of, minlength=persons)
    found = _combined(feature, of, values[used], order[used], counts)
    none = counts == 0
    found = np.clip(found, feature.column.lower, feature.column.upper)
    found[none] = 0.0 if feature.none is None else feature.none
    missing = none if feature.none is None else np.zeros(persons, dtype=np.bool_)
    return found, missing


def _in_use(feature: Feature, rows: Block) -> tuple[Bools, FloatArray, FloatArray]:
    """(rows,) which rows are in use, their values (of a condition 0 or 1), and what orders them."""
    used = np.ones(rows.rows, dtype=np.bool_)
    for name in feature.reads:
        if name in rows.missing:
            used &= ~rows.missing[name]
    if feature.where is not None:
        used &= holds(feature.where, rows)
    values = np.ones(rows.rows)
    if feature.condition is not None:
        values = holds(feature.condition, rows).astype(np.float64)
    elif feature.value is not None:
        values = evaluate(feature.value, rows) + 0.0
    order = values if feature.by is None else rows.columns[feature.by] + 0.0
    return used & np.isfinite(values) & np.isfinite(order), values, order


def _combined(
    feature: Feature, of: Slots, values: FloatArray, order: FloatArray, counts: NDArray[np.int64]
) -> FloatArray:
    """(persons,) the function over each person's values; anything where there are none.

    of: (k,) persons, values, order: (k,) of the rows in use. counts: (persons,) of them.
    """
    if feature.value is not None:  # sums of 0 and 1 are exact in any order
        sort = np.lexsort((values, of) if feature.by is None else (values, order, of))
        of, values = of[sort], values[sort]
    sums = np.bincount(of, values, len(counts))
    ends = np.cumsum(counts)
    starts, present = ends - counts, counts > 0
    match feature.function:
        case "count" | "sum":
            return np.asarray(sums, dtype=np.float64)
        case "mean" | "share":
            return np.asarray(sums / np.maximum(counts, 1), dtype=np.float64)
        case "any":
            return np.asarray(sums > 0, dtype=np.float64)
        case "all":
            return np.asarray(sums == counts, dtype=np.float64)
        case "first" | "min":
            return _taken(values, starts, present)
        case "last" | "max":
            return _taken(values, ends - 1, present)


def _taken(values: FloatArray, places: NDArray[np.int64], present: Bools) -> FloatArray:
    found = np.zeros(len(present))
    found[present] = values[places[present]]
    return found
