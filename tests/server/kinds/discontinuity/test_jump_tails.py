# SPDX-License-Identifier: Apache-2.0
"""What a jump's cut takes: slopes of residuals by side and sign, the allowance, and what is
declined."""

from typing import Any

import numpy as np

from reticent_server.domain.private import Private
from reticent_server.domain.steps import Released
from reticent_server.fitting import trust
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.kinds.discontinuity.kind import KIND, Discontinuity
from reticent_server.kinds.discontinuity.tails import residual_tails, signed_cut
from reticent_server.mechanisms import registry
from support.fits.regressions import drive, facts_of, numeric, profile_of, whole
from support.kinds.named_tests import offer
from support.seeds import seeded

N = 20_000
COLUMNS = [numeric("x", -10, 10), numeric("y", -50, 5000)]


def counted(values: Any, lines: Any, count: int) -> tuple[LengthGrid, Released]:
    """Numbers by line with hardly any noise."""
    grid = LengthGrid(0.5)
    part = grid.part(10**9, 1, count)
    codes = grid.codes(np.abs(values))
    placed = np.where(codes < 0, -1.0, lines * len(grid.edges) + codes)
    return grid, registry.release(part, Private(registry.encode(part, placed)))


def test_the_slowest_side_and_sign_is_told() -> None:
    rng = seeded(0)
    residuals, lines = rng.normal(size=N), rng.integers(0, 4, size=N)
    light = residual_tails(*counted(residuals, lines, 4), N)
    one = np.where(lines == 3, rng.pareto(1.5, N), residuals)
    heavy = residual_tails(*counted(one, lines, 4), N)
    assert light.slope is not None
    assert heavy.slope is not None
    assert light.slope > 2
    assert 0.5 < heavy.slope < 1.5


def test_the_allowance_is_at_least_what_a_power_law_leaves() -> None:
    rng = seeded(1)
    values = rng.normal(size=N)
    grid, released = counted(values, (values > 0).astype(float), 2)
    curve = signed_cut(grid, released, N, 40.0, None)
    heavy = signed_cut(grid, released, N, 40.0, 1.5)
    assert heavy.excess > 2 * curve.excess
    assert heavy.length == curve.length
    taken = np.sum(np.maximum(values - curve.length, 0.0))
    assert curve.excess > taken


def declined(law: Any) -> tuple[bool, str]:
    rng = seeded(3)
    x = rng.uniform(-10, 10, N)
    y = 0.5 * (x >= 0) + 0.1 * x + np.where(x >= 0, law(rng), 0.5 * rng.normal(size=N))
    data = {"x": x, "y": np.clip(y, -50, 5000)}
    facts = facts_of(N, COLUMNS, profile_of(data, COLUMNS), 1)
    plan = KIND.plan(facts, Discontinuity("y", "x", 0.0, 5.0), offer(2))
    result = drive(plan.run(), whole(data)).result
    assert result["cut"]["allowances"][1] > 0
    assert result["standard_errors"][1] ** 2 > (
        result["privacy_standard_errors"][1] ** 2 + result["cut"]["allowances"][1] ** 2
    )
    return result["confidence_intervals"][1][0] is None, " ".join(result["warnings"])


def test_a_heavy_tail_on_one_side_is_declined_and_a_light_one_is_not() -> None:
    assert not declined(lambda rng: rng.normal(size=N))[0]
    heavy, words = declined(lambda rng: rng.pareto(1.5, N) - 2)
    assert heavy
    assert "few records" in words


def test_a_forecast_says_where_noise_hides_the_tails() -> None:
    few = facts_of(3000, COLUMNS, None, 1)
    plan: Any = KIND.plan(few, Discontinuity("y", "x", 0.0, 5.0), offer(1))
    assert plan.forecast["privacy_to_sampling"] == [None]
    assert np.isinf(plan.precision.privacy[0])


def test_a_slow_tail_is_declined_but_within_bounds() -> None:
    assert trust.jump_tail(2.0, 0.005, told=True, bounded=False).intervals
    slow = trust.jump_tail(1.2, 0.005, told=True, bounded=False)
    assert "logarithm" in slow.sentences[0]
    assert not trust.jump_tail(2.0, 0.02, told=True, bounded=False).intervals
    assert trust.jump_tail(1.2, 0.02, told=True, bounded=True).intervals
