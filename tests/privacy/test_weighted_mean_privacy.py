# SPDX-License-Identifier: Apache-2.0
"""Weighted means, attacked: no two records are farther apart than is billed, and some
are as far."""

from dataclasses import replace
from itertools import product
from math import sqrt

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, VectorSum
from reticent_server.kinds import registry
from reticent_server.kinds.mean.kind import Mean
from support.attacks.privacy_losses import farthest_records
from support.fits.regressions import whole
from support.kinds.named_tests import offer, people_facts


@pytest.mark.parametrize("where", [None, "x > 0"])
def test_no_two_records_are_farther_apart_than_is_billed_and_some_are_as_far(
    where: str | None,
) -> None:
    plan = registry.plan(people_facts(2000), Mean("y", where, weights="k"), offer(1))
    step = next(plan.run())
    sums, squares = step.parts  # type: ignore[union-attr]
    # the clips are rounded up to where the constant that all records have is a number of steps
    assert replace(sums, clip=1.0) == VectorSum(2, 1.0, sums.rho)
    assert replace(squares, clip=1.0) == GramSum(2, 1.0, squares.rho)
    assert 1 <= sums.clip <= 1 + 1e-6
    assert sqrt(2) <= squares.clip <= sqrt(2) * (1 + 1e-3)
    assert sums.rho + squares.rho == plan.rho == offer(1).rho
    ends = (-10.0, 0.0, 10.0, 1e300, np.inf, np.nan)
    cells = np.array(list(product(ends, (-5.0, 5.0), (0.0, 4.0, 9.0, 1e300, np.nan)))).T
    records = dict(zip("yxk", cells, strict=True))
    found = dict(farthest_records(step, records))  # type: ignore[arg-type]
    assert 0.999 < found[VectorSum] <= 1
    assert 0.999 < found[GramSum] <= 1


def test_the_sum_of_weights_comes_for_nothing() -> None:
    """(a − 1, az) is never longer than 1, so that its noise is that of a sum of z alone."""
    step = next(registry.plan(people_facts(2000), Mean("y", weights="k"), offer(1)).run())
    y, k = map(np.array, zip(*product(np.linspace(-10, 10, 21), range(10)), strict=True))
    sums, _ = step.map_fn(whole({"y": y, "k": k.astype(float)}))
    assert np.max(np.sum(np.asarray(sums) ** 2, axis=0)) == pytest.approx(1)
