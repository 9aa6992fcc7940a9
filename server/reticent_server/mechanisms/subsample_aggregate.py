# SPDX-License-Identifier: Apache-2.0
"""Estimates of a model by subsample and aggregate: winsorised means over secret random blocks.

Domain: n records, of which a unit has at most m = `unit_rows`; k blocks, k public. Output: for each
estimate of the model, quartiles over the blocks and a noisy mean. Always replies. Tier:
unconditional.

1. The records are divided into k blocks of public sizes, by a secret order
   (mechanisms.secret_blocks).
2. The model is fitted to each block (numerics.block_fits) in a fixed number of steps. A block
   without an estimate counts as the public default; estimates are clipped to public bounds: T₁, …,
   T_k.
3. For each estimate j, the quartiles of the T_b on a public grid (mechanisms.quantile_tree), q₁ ≤
   q₃.
4. The mean of clip(T_b, [c − h, c + h]), c = (q₁ + q₃)/2, h = 2(q₃ − q₁) or two cells of the grid,
   by one noisy sum of k integers (mechanisms.noisy_sum).

Proof. Fix the division. A record is in one block, whatever it holds: a mask or a missing value only
changes what its own block is fitted to, never k or another block. T_b is a function of the records
of block b and of public values, so replacing the records of one unit changes at most min(m, k) of
the T_b: (T₁, …, T_k) is a table of k records whose units have min(m, k) rows, and a neighbour's is
a neighbour of it. Steps 3 and 4 release this table through mechanisms proved for that: a quantile
tree of cost rho_quartiles, and, its window being a function of what was released, a sum of cost
rho_mean. ρ adds over them and over the estimates (adaptive composition of zCDP), and the whole does
not depend on the division, nor on the order of the rows, by mechanisms.secret_blocks.

Nothing about single blocks leaves: neither how many had an estimate, nor how long a fit took. The
number of steps is fixed, and what is not finite is replaced before it is used. Errors: none that
depend on the data. Source: Smith (2011), "Privacy-preserving statistical estimation with optimal
convergence rates"; Dwork & Smith (2009), Algorithm 1; Nissim, Raskhodnikova & Smith (2007).
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from reticent_server.domain.columns import BlockMean, BlockModel, SubsampleAggregate
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, QuantileTree, Released, VectorSum
from reticent_server.mechanisms import noisy_sum, quantile_tree
from reticent_server.mechanisms.secret_blocks import IntArray, division, secret_order
from reticent_server.numerics.block_fits import Blocks, block_estimates
from reticent_server.numerics.grids import cell_codes, repeats

# of the blocks' estimates: the window's middle and width, and the sampling error
QUARTILES = (0.25, 0.75)
# quartile ranges on either side: 2.7 standard deviations of normal estimates, .7 % of which are
# clipped
_REACH = 2.0
_ROWS_AT_A_TIME = 1 << 14  # of blocks that are fitted together; memory and speed only

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def cost(part: SubsampleAggregate) -> PrivacyCost:
    """Σ over the estimates of the quartiles' ρ and the mean's."""
    return PrivacyCost(0, 0, sum(m.rho_quartiles + m.rho_mean for m in part.means))


def touched(part: SubsampleAggregate) -> int:
    """min(m, k): blocks that the records of one unit can be in."""
    return min(part.unit_rows, part.blocks)


def quartile_tree(part: SubsampleAggregate, mean: BlockMean) -> QuantileTree:
    """The part that releases the quartiles of an estimate over blocks."""
    grid = mean.candidates
    return QuantileTree(grid, QUARTILES, mean.rho_quartiles, touched(part), repeats(grid))


def mean_sum(part: SubsampleAggregate, mean: BlockMean) -> VectorSum:
    """The part that releases the sum of (clip(T_b) − c)/h."""
    return VectorSum(1, 1.0, mean.rho_mean, touched(part))


def release(part: SubsampleAggregate, values: Private[FloatArray], each: Each = map) -> Released:
    """Mean, standard deviation of its noise, and quartiles of each estimate. each: as `map`."""
    rows = values.unwrap()
    table = Private(estimates(part, rows, secret_order(rows.shape[1]), each))
    released = [_released(part, mean, j, table) for j, mean in enumerate(part.means)]
    return Released(np.concatenate(released), 0.0)


def estimates(
    part: SubsampleAggregate, rows: FloatArray, order: IntArray, each: Each = map
) -> FloatArray:
    """(m, k) estimates of the blocks of an order of the records, within their bounds: private."""
    positions = division(order, part.blocks)
    count = max(1, _ROWS_AT_A_TIME // positions.shape[1])
    pieces = [positions[start : start + count] for start in range(0, part.blocks, count)]
    fits = each(lambda piece: _fitted(part.model, rows, piece), pieces)
    return bounded(part, np.concatenate(list(fits)).T)


def _fitted(model: BlockModel, rows: FloatArray, positions: IntArray) -> FloatArray:
    """(blocks, m) estimates of some blocks. A record with a cell that is not finite is not in
    use."""
    taken = rows[:, np.maximum(positions, 0)]
    used = (positions >= 0) & (taken[0] > 0) & np.isfinite(taken[1:]).all(axis=0)
    taken = np.where(used, taken, 0.0)
    design = np.ascontiguousarray(np.moveaxis(taken[2:], 0, 2))
    return block_estimates(model, Blocks(design, taken[1], used.astype(np.float64)))


def bounded(part: SubsampleAggregate, fits: FloatArray) -> FloatArray:
    """The estimates (m, k) with defaults for what is not finite, clipped to their public bounds."""
    limits = np.array([(m.default, m.candidates.lower, m.candidates.upper) for m in part.means])
    default, lower, upper = (column[:, None] for column in limits.T)
    return np.clip(np.where(np.isfinite(fits), fits, default), lower, upper)


def _released(
    part: SubsampleAggregate, mean: BlockMean, j: int, table: Private[FloatArray]
) -> FloatArray:
    """(4,) mean, standard deviation of its noise, quartiles."""
    T = table.unwrap()[j]
    tree = quartile_tree(part, mean)
    codes = cell_codes(T, mean.candidates)
    quartiles = quantile_tree.release(tree, Private(quantile_tree.encode(tree, codes))).values
    centre, half = window(mean, float(quartiles[0]), float(quartiles[1]))
    unit = mean_sum(part, mean)
    scaled = np.clip((T - centre) / half, -1.0, 1.0)[None, :]
    total = noisy_sum.release(unit, Private(noisy_sum.encode(unit, scaled)))
    value = centre + half * float(total.values[0]) / part.blocks
    return np.array([value, half * total.sd / part.blocks, *quartiles])


def window(mean: BlockMean, first: float, third: float) -> tuple[float, float]:
    """(c, h) of the interval to which estimates are clipped, from released quartiles."""
    grid = mean.candidates.points
    k = int(np.clip(np.searchsorted(grid, (first + third) / 2), 1, len(grid) - 1))
    cell = float(grid[k] - grid[k - 1])
    return (first + third) / 2, max(_REACH * (third - first), 2 * cell)
