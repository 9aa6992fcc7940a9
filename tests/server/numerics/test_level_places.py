# SPDX-License-Identifier: Apache-2.0
"""Places of levels: exact, whatever the cell, with levels that follow each other and others."""

import numpy as np
import pytest

from reticent_server.numerics.level_places import level_places

CELLS = np.array(
    [
        0.0,
        1,
        2,
        3,
        4,
        5,
        -1,
        0.5,
        2.5,
        1e300,
        -1e300,
        np.inf,
        -np.inf,
        np.nan,
        -0.0,
        1e-20,
        2.0**63,
        -(2.0**63),
    ]
)


@pytest.mark.parametrize(
    "codes", [(0.0,), (0.0, 1, 2), (2.0, 3, 4), (2.0, 1, 3), (0.0, 0.5, 2), (4.0, 0), (-1.0, 0, 1)]
)
def test_a_place_is_that_of_the_equal_code_and_of_no_other(codes: tuple[float, ...]) -> None:
    expected = [next((k for k, code in enumerate(codes) if code == cell), -1) for cell in CELLS]
    assert level_places(codes, CELLS).tolist() == expected
