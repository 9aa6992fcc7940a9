# SPDX-License-Identifier: Apache-2.0
"""What ε means in plain words, and the geometry of the burn-down chart."""

from datetime import UTC, datetime, timedelta
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.console.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, burn_down
from reticent_server.pipeline.account_history import AccountPoint
from reticent_server.web.filters import percent
from reticent_server.web.words import bound, plain_words

GUARANTEE = {"tier": "unconditional", "unit": "row", "epsilon": 1.0, "delta": 1e-6}
START = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.floats(0, 50), st.floats(1e-6, 1 - 1e-6))
def test_posterior_odds_grow_by_the_factor_exactly(epsilon: float, prior: float) -> None:
    after = bound(epsilon, prior)
    assert prior * (1 - 1e-12) <= after <= 1
    if epsilon < 5:
        odds = after / (1 - after) if after < 1 else float("inf")
        assert odds == pytest.approx(exp(epsilon) * prior / (1 - prior), rel=1e-6)


def test_a_huge_epsilon_promises_nothing_and_says_so() -> None:
    assert bound(1e9, 0.5) == 1.0
    assert percent(bound(1e9, 0.5)) == "100\N{NO-BREAK SPACE}%"
    assert percent(bound(10.0, 0.5)) == ">\N{NO-BREAK SPACE}99.9\N{NO-BREAK SPACE}%"


def test_the_words_of_a_guarantee() -> None:
    words = plain_words(GUARANTEE)
    assert words.who == "one row"
    assert [f"{b.after:.3f}" for b in words.beliefs] == ["0.027", "0.232", "0.731"]
    assert "1 in 1,000,000" in words.failure
    assert "whatever is in the table" in words.reach
    pure = plain_words(GUARANTEE | {"delta": 0.0, "unit": "person"})
    assert "no exception" in pure.failure
    assert pure.who.startswith("what is in the rows that share one value of person (how many")
    lax = plain_words(GUARANTEE | {"tier": "conditional", "assumptions": ["a density exists"]})
    assert ("only" in lax.reach, lax.assumptions) == (True, ("a density exists",))
    assert "nothing is promised" in plain_words(GUARANTEE | {"delta": 1.0}).failure


def point(hours: float, cap: float, spent: float, *, sets_cap: bool = False) -> AccountPoint:
    return AccountPoint((START + timedelta(hours=hours)).isoformat(), cap, spent, sets_cap)


def test_what_is_spent_rises_in_steps_towards_the_cap() -> None:
    points = [point(0, 4, 0, sets_cap=True), point(5, 4, 1), point(10, 4, 3)]
    chart = burn_down(points, START + timedelta(hours=20))
    assert chart is not None
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 4
    heights = [TOP + (HEIGHT - TOP - BOTTOM) * (1 - spent / 4) for spent in (0, 1, 3)]
    assert chart.line.startswith(
        f"M{LEFT:.1f},{heights[0]:.1f}H{middle:.1f}V{heights[1]:.1f}H{2 * middle - LEFT:.1f}"
    )
    assert chart.line.endswith(f"H{WIDTH - RIGHT:.1f}V{heights[2]:.1f}")
    assert [tick.label for tick in chart.y_ticks] == ["0", "1", "2", "3", "4"]
    assert chart.x_ticks[-1].at == WIDTH - RIGHT


def test_a_raised_cap_is_a_step_of_the_cap_and_leaves_what_was_spent() -> None:
    points = [point(0, 4, 0, sets_cap=True), point(5, 4, 3), point(10, 8, 3, sets_cap=True)]
    chart = burn_down(points, START + timedelta(hours=20))
    assert chart is not None

    def y(value: float) -> str:
        return f"{TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / 8):.1f}"

    assert chart.cap.startswith(f"M{LEFT:.1f},{y(4)}H")
    assert chart.cap.endswith(f"H{WIDTH - RIGHT:.1f}V{y(8)}")
    assert chart.line.endswith(f"V{y(3)}H{WIDTH - RIGHT:.1f}V{y(3)}")
    assert chart.caps == ("ε 4 from 2026-01-01 00:00", "ε 8 from 2026-01-01 10:00")


def test_a_chart_of_one_moment_and_of_none() -> None:
    assert burn_down([], START) is None
    chart = burn_down([point(0, 0, 0)], START - timedelta(days=1))
    assert chart is not None
    assert "nan" not in chart.line + chart.cap + chart.area
