# SPDX-License-Identifier: Apache-2.0
"""Σ ψ_c(x_i − θ) by its definition, in whole numbers of any size."""

from typing import Any

import numpy as np

from reticent_server.numerics.huber_sums import huber_sums
from support.seeds import seeded


def by_definition(x: Any, c: Any, points: Any) -> list[Any]:
    return [sum(max(-c, min(c, v - t)) for v in x) for t in points]


def test_sums_are_those_of_the_definition() -> None:
    rng = seeded(0)
    for n, c, reach in (
        (1, 1, 3),
        (5, 4, 10),
        (40, 65_536, 10**6),
        (300, 7, 20),
        (60, 65_536, 2**52),
    ):
        x = rng.integers(-reach, reach, n)
        points = np.sort(
            np.append(rng.integers(-2 * reach, 2 * reach, 50), [x[0] - c, x[0] + c, x[0]])
        )
        assert huber_sums(x, c, points).tolist() == by_definition(x.tolist(), c, points.tolist())


def test_running_sums_beyond_int64_come_back() -> None:
    """2,000 records of 2⁵²: their sum is no int64, S is."""
    x = np.full(4000, 2**52)
    assert huber_sums(x, 5, np.array([0, 2**52 - 1, 2**52, 2**52 + 9])).tolist() == [
        20_000,
        4000,
        0,
        -20_000,
    ]
