# SPDX-License-Identifier: Apache-2.0
"""Cells of many values are those of the same values one by one."""

import numpy as np

from reticent_server.domain.grid import Grid
from reticent_server.numerics.grids import cell_codes
from support.seeds import seeded


def test_many_values_have_the_cells_that_few_have() -> None:
    grid, rng = Grid(-20.0, 30.0), seeded(7)
    values = np.concatenate(
        [
            rng.normal(size=5_000),
            rng.choice(grid.points, 2_000),
            np.nextafter(rng.choice(grid.points, 2_000), np.inf),
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300] * 10,
        ]
    )
    rng.shuffle(values)
    used = rng.random(len(values)) < 0.9
    few = [cell_codes(values[k : k + 100], grid, used[k : k + 100]) for k in range(0, 9_070, 100)]
    np.testing.assert_array_equal(cell_codes(values, grid, used), np.concatenate(few))
    assert len(grid.points) > 1 << 14
