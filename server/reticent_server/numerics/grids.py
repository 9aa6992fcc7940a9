# SPDX-License-Identifier: Apache-2.0
"""Public grids of candidate values for private quantiles, and the cell of a record's value.

A grid is a function of a column's declared kind and bounds, and a record's cell one of its own
value. Values that tie fall into one cell; mechanisms.quantile_tree spreads a cell's records over
sub-cells.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.grid import Grid
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray

_SUB_CELLS = 1 << 18  # in all: 25 ms for the selections of one level of a recursion
# from which on sorting them first is faster; speed only
_MANY_VALUES, _LONG_GRID = 1 << 12, 1 << 10
_MOST_REPEATS = 1 << 10  # short grids, whose values tie most, are repeated most


def candidate_grid(column: Column) -> Grid:
    """Candidates between the column's bounds."""
    return Grid(column.lower, column.upper, column.kind.is_whole)


def repeats(grid: Grid) -> int:
    """R: of how many sub-cells each cell is made, a power of two."""
    return 1 << min(_MOST_REPEATS, max(1, _SUB_CELLS // len(grid))).bit_length() - 1


def _found(points: FloatArray, values: FloatArray) -> FloatArray:
    """(rows,) the place of the first point ≥ value. Many values are looked up in increasing order,
    in which the processor foresees the search: a third of the time on a long grid."""
    if len(values) < _MANY_VALUES or len(points) < _LONG_GRID:
        return np.searchsorted(points, values, side="left").astype(np.float64)
    order = np.argsort(values)
    codes = np.empty(len(values))
    codes[order] = np.searchsorted(points, values[order], side="left")
    return codes


def cell_codes(values: FloatArray, grid: Grid, used: NDArray[np.bool_] | None = None) -> FloatArray:
    """(rows,) codes: the first candidate ≥ value, or the last; −1 where not used or not finite.

    values: (rows,) in the grid's units.
    """
    codes = _found(grid.points, values)
    np.minimum(codes, len(grid) - 1, out=codes)
    codes[~np.isfinite(values)] = -1.0
    if used is not None:
        codes[~used] = -1.0
    return codes
