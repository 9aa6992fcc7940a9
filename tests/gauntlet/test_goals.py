# SPDX-License-Identifier: Apache-2.0
"""What counts as a miss: by luck almost never, and the failures that the gauntlet is for always."""

from typing import Any

import numpy as np
import pytest
from benchmarks.gauntlet import goals
from benchmarks.gauntlet.goals import IntervalCounts
from benchmarks.gauntlet.replies import Estimates
from benchmarks.gauntlet.summary import fit_line, gathered
from benchmarks.gauntlet.targets import WholeTableTarget
from scipy.stats import norm

from support.seeds import seeded

RUNS, TERMS = 24, ("a", "b", "c")


def replies(
    bias: float = 0.0, error: float = 1.0, estimable: bool = True, seed: int = 0
) -> list[Any]:
    """Estimates of 0 with standard errors 1, half of whose variance is noise; their errors are the
    normal law's.
    """
    rng, q = seeded(seed), len(TERMS)
    z = norm.ppf((np.arange(RUNS) + 0.5) / RUNS)
    drawn = np.column_stack([rng.permutation(z) for _ in TERMS])
    return [
        Estimates(
            TERMS,
            bias + each,
            np.full(q, error),
            np.full(q, error / np.sqrt(2)),
            np.full(q, estimable),
        )
        for each in drawn
    ]


def line_of(found: Any, forecast: Any = 1.0) -> Any:
    target = WholeTableTarget(np.zeros(3), np.full(3, 1 / np.sqrt(2)))
    forecasts = [np.full(3, forecast)] * len(found)
    return fit_line("m", "k", 100, 1.0, gathered(found, forecasts, target), 0.0)


def missed(line: Any) -> Any:
    return goals.names(line.verdicts(), missed=True)


def test_right_intervals_meet_every_goal_and_miss_none() -> None:
    line = line_of(replies())
    assert missed(line) == []
    assert goals.names(line.verdicts(), missed=False) == []
    assert (line.noise, line.forecast, line.flagged) == pytest.approx((1.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("changed", "goal"),
    [
        ({"bias": 3.0}, "coverage"),
        ({"bias": 3.0}, "rms z"),
        ({"error": 30.0}, "wild"),
        ({"error": 0.4}, "short"),
        ({"estimable": False}, "answered"),
    ],
)
def test_what_went_wrong_is_missed(changed: dict[str, Any], goal: str) -> None:
    assert goal in missed(line_of(replies(**changed)))


def test_a_forecast_that_is_far_off_is_missed() -> None:
    assert "forecast" in missed(line_of(replies(), forecast=0.5))
    assert "forecast" in missed(line_of(replies(), forecast=2.0))


def test_flags_are_needless_where_the_noise_is_small() -> None:
    found = replies()
    flagged = [
        Estimates(e.terms, e.coefficients, e.errors, e.privacy, np.array([True, True, False]))
        for e in found
    ]
    line = line_of(flagged)
    assert missed(line) == ["needless flags"]
    assert line.flagged == pytest.approx(1 / 3)


def test_a_declined_model_is_judged_by_nothing_else() -> None:
    line = line_of(replies(bias=9.0, estimable=False))
    assert [v.goal for v in line.verdicts()] == ["answered"]


@pytest.mark.parametrize("runs", [8, 24, 100])
def test_limits_hold_for_fits_whose_coefficients_all_go_together(runs: int) -> None:
    """At the edge of a goal one coefficient in ten is outside, in all coefficients of a fit at
    once.
    """
    rng = seeded(runs)
    shares = (rng.random((20_000, runs)) < goals.LEAST_COVERAGE).mean(axis=1)
    assert not any(goals.coverage_verdict(c, runs).missed for c in np.unique(shares))
    roots = np.sqrt(np.mean((goals.RMS_Z[1] * rng.normal(size=(20_000, runs))) ** 2, axis=1))
    assert not goals.rms_verdict(float(roots.max()), runs).missed


def test_the_divergence_is_that_of_two_coins() -> None:
    assert goals.divergence(0.5, 0.5) == 0
    assert goals.divergence(0.0, 0.9) == pytest.approx(np.log(10))
    assert goals.divergence(0.25, 0.5) == pytest.approx(0.25 * np.log(0.5) + 0.75 * np.log(1.5))


def test_a_level_is_missed_where_rejections_are_beyond_chance() -> None:
    assert not goals.level_verdict(7, 120).missed
    assert goals.level_verdict(30, 120).missed
    assert goals.level_verdict(7, 120).met


def test_a_family_s_mean_is_judged() -> None:
    assert goals.family_verdict([0.94, 0.96], 200).met
    assert not goals.family_verdict([0.90, 0.95], 20).missed
    assert goals.family_verdict([0.6, 0.7], 200).missed


def test_counts_are_of_samples() -> None:
    line = line_of(replies(error=30.0))
    assert line.counts == IntervalCounts(RUNS, RUNS, 0, 0, RUNS, 0, RUNS)
