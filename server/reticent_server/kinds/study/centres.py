# SPDX-License-Identifier: Apache-2.0
"""A public value in the middle of each column: what a missing cell is filled with."""

from collections.abc import Iterable, Mapping

import numpy as np

from reticent_server.domain.facts import ColumnProfile, DatasetFacts
from reticent_server.domain.schema import Column


def public_centres(facts: DatasetFacts, names: Iterable[str]) -> Mapping[str, float]:
    """By column the released median within the declared bounds; without one the middle of the
    bounds, and of columns of 0 and 1 and of factors the lower bound."""
    known = facts.profile.columns if facts.profile else {}
    columns = {column.name: column for column in facts.schema.columns}
    return {name: _centre(columns[name], known.get(name)) for name in names}


def _centre(column: Column, released: ColumnProfile | None) -> float:
    if column.levels or column.is_dummy:
        return column.lower
    if released is None or not released.quantiles:
        return column.lower + (column.upper - column.lower) / 2
    probabilities = released.probabilities[: len(released.quantiles)]
    median = float(np.interp(0.5, probabilities, released.quantiles))
    return min(max(median, column.lower), column.upper)
