# SPDX-License-Identifier: Apache-2.0
"""The search for an amount reaches its target, in few forecasts."""

from typing import Any

import numpy as np
import pytest

from reticent_server.pipeline.rho_search import least_rho, rough_rho


@pytest.mark.parametrize("target", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("start", [1, 10**6, 10**15])
def test_the_amount_for_a_target(target: float, start: int) -> None:
    asked = []

    def worst(rho: Any) -> Any:
        asked.append(rho)
        return 3e4 / np.sqrt(rho) * (1.1 if rho < 10**8 else 1.0)

    found = least_rho(worst, target, start, (1, 10**16))
    assert worst(found) <= target <= worst(int(found * 0.9))
    assert len(asked) <= 20


def test_a_target_out_of_reach_has_no_amount() -> None:
    assert least_rho(lambda rho: 2.0, 1.0, 10**6, (1, 10**12)) is None
    assert least_rho(lambda rho: 0.1, 1.0, 10**6, (10, 10**12)) <= 11


@pytest.mark.parametrize("target", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("start", [1, 10**6, 10**15])
@pytest.mark.parametrize("jump", [0.5, 1.0, 2.0])
def test_the_amount_for_a_target_by_three_forecasts(target: float, start: int, jump: float) -> None:
    """It reaches the target, wherever a forecast jumps; where there is no jump it is at most a
    fifth too large.
    """
    asked = []

    def worst(rho: Any) -> Any:
        asked.append(rho)
        return 3e4 / np.sqrt(rho) * (jump if rho < 10**8 else 1.0)

    found = rough_rho(worst, target, start, (1, 10**16))
    assert len(asked) <= 3
    assert found is not None
    assert worst(found) <= target
    if jump == 1.0:
        assert worst(int(found * 0.8)) >= target


def test_an_amount_that_is_not_reached_is_none_after_two_forecasts() -> None:
    asked: list[int] = []
    assert rough_rho(lambda rho: asked.append(rho) or 2.0, 1.0, 10**6, (1, 10**12)) is None  # type: ignore[func-returns-value]
    assert asked == [10**6, 10**12]
    assert rough_rho(lambda _: np.inf, 1.0, 10**6, (1, 10**12)) is None
