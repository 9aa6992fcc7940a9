# SPDX-License-Identifier: Apache-2.0
"""Sums by sampling unit, attacked: no two records are farther apart than is billed, some are as
far."""

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum, VectorSum
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.sum.kind import Sum
from reticent_server.mechanisms.quantise import granule
from support.attacks.privacy_losses import farthest_records
from support.fits.clusters import G, asked, clustered_table
from support.fits.regressions import totals, whole

QUERIES = {
    "mean": Mean("y", "x > 0", weights="w", cluster="g", strata="h"),
    "total": Sum("y", "x > 0", weights="w", cluster="g"),
    "strata": Mean("y", strata="h"),
}


def extreme_records() -> dict[str, Any]:
    ends = (-10.0, 0.0, 10.0, 1e300, np.inf, np.nan)
    weights = (0.0, 1.0, 2.0, 9.0, 1e300, np.nan)
    cells = product(ends, (-5.0, 5.0), weights, (0.0, 7.0, -1.0, 2.5, np.nan), (0.0, 2.0))
    return dict(zip("yxwgh", np.array(list(cells)).T, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_no_two_records_are_farther_apart_than_is_billed_and_some_are_as_far(name: str) -> None:
    first, second = asked(QUERIES[name], 20.0, clustered_table(4000, 0.05, 1))[1].steps
    cells = {"mean": 3 * G, "total": G, "strata": 3}[name]
    sums, squares, numbers = second.parts  # type: ignore[union-attr]
    assert sums == VectorSum(cells, 1.0, sums.rho, groups=cells)
    assert squares == GramSum(3, sqrt(3), squares.rho)
    assert numbers == CountSum(cells, numbers.rho)
    found = [share for _, share in farthest_records(second, extreme_records())]
    assert all(share <= 1 for share in found)
    m = second.map_fn.m  # type: ignore[union-attr]
    apart = 1 / (1 + abs(m))  # z = ±1; two records of z = −sign(m) in two cells are √½ apart
    assert found[0] == pytest.approx(max(apart, sqrt(0.5)), rel=1e-3)
    assert found[2] == pytest.approx(1)
    assert 0.999 < max(share for _, share in farthest_records(first, extreme_records())) <= 1


def test_noise_of_another_scale_is_told() -> None:
    """The sums' noise is √2/√ρ in each of 120 entries: .7 and 1.3 of it are told."""
    table = clustered_table(3000, 0.05, 1)
    _, trace = asked(QUERIES["mean"], 1.0, table)
    part, released = trace.steps[-1].parts[0], trace.released[-1][0]  # type: ignore[union-attr]
    exact = totals(trace.steps[-1], whole(table))[0] * granule(part)
    expected = np.sqrt(2 / (part.rho / RHO_UNITS))
    assert released.sd == pytest.approx(expected, rel=1e-3)
    spread = float(np.sqrt(np.mean((released.values - exact) ** 2)))
    assert 0.8 * expected < spread < 1.2 * expected
