"""Public grids of candidate values for private quantiles, and the cell of a record's value.

A grid is a function of a column's declared kind and bounds. Each cell is repeated, and a record falls
into one of the repeats by its stored position: values that tie (a column that is 75 % zeros) then
fall into many cells with the same candidate, and a recursion that splits the records at a quantile
can split a tie as well. A position is public and the same for neighbours.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray

CELLS = 4096
CODES = 8 * CELLS
MAX_REPEATS = 1024
_LOG_RANGE = 2.0**-24


def candidate_grid(column: Column) -> tuple[float, ...]:
    """Increasing candidates from the lower to the upper bound, at most CELLS + 1 of them.

    Every integer where an integer column has that few; else half of the cells uniform and half in
    geometric progression away from zero, so that wide bounds do not cost resolution near zero.
    """
    return grid_between(column.lower, column.upper, integers=column.kind is not ColumnKind.NUMERIC)


def grid_between(lower: float, upper: float, *, integers: bool = False) -> tuple[float, ...]:
    """The grid of candidate_grid for any bounds (those of a derived term, for one)."""
    if integers and upper - lower < CELLS:
        return tuple(float(v) for v in np.arange(lower, upper + 1))
    if not lower < upper:
        return (float(lower),)
    pieces = [np.linspace(lower, upper, CELLS // 2), *_geometric(lower, upper)]
    points = np.unique(np.concatenate(pieces))
    if integers:
        points = np.unique(np.rint(points))
    return tuple(float(v) for v in points[(points >= lower) & (points <= upper)])


def _geometric(lower: float, upper: float) -> list[FloatArray]:
    if lower > 0 or upper < 0:
        return [np.geomspace(lower, upper, CELLS // 2)]
    sides = [s for s in (lower, upper) if s != 0]
    count = CELLS // 2 // len(sides)
    return [np.zeros(1)] + [np.geomspace(side * _LOG_RANGE, side, count) for side in sides]


def repeats(grid: tuple[float, ...]) -> int:
    """How often each candidate is repeated: short grids, whose values tie most, are repeated most."""
    return min(MAX_REPEATS, max(1, CODES // len(grid)))


def spread(grid: tuple[float, ...]) -> tuple[float, ...]:
    """The grid with each candidate repeated: the candidates of a QuantileTree."""
    return tuple(float(v) for v in np.repeat(np.asarray(grid), repeats(grid)))


def cell_codes(
    values: FloatArray, grid: tuple[float, ...], start: int, used: NDArray[np.bool_] | None = None
) -> FloatArray:
    """(rows,) codes into spread(grid): first candidate ≥ value; −1 where not used or not finite.

    values: (rows,) in the grid's units. start: the stored position of the first record.
    """
    cells = np.searchsorted(np.asarray(grid), values, side="left")
    cells = np.minimum(cells, len(grid) - 1)
    positions = np.arange(start, start + len(values))
    codes = (cells * repeats(grid) + positions % repeats(grid)).astype(np.float64)
    codes[~np.isfinite(values)] = -1.0
    if used is not None:
        codes[~used] = -1.0
    return codes
