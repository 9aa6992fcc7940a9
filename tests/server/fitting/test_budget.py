# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes where: exact sums, the recursion, and the planned constants."""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum, VectorSum
from reticent_server.fitting.budget import (
    ROUNDS,
    SINGLE_ROUNDS,
    Signal,
    Sizes,
    allocate,
    forecast_errors,
    noise_ratio,
    plan_budget,
)
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.tuning import least_variance
from reticent_server.mechanisms import noisy_sum

HUBER = Signal(1.345, 0.82, scaled=True)


def sizes(q: int = 5, n: int = 10_000, expected: Any = None, rows: int = 1) -> Sizes:
    return Sizes(q, 2.0 * q, n, expected or float(n), rows)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    "signal",
    [
        *(HUBER, Signal(1, 0.2, False), Signal(1, 1, True, 1, True)),
        *(Signal(1, 1, True, centred=True), Signal(1, 1, True, centred=True, signed=True)),
    ],
)
@pytest.mark.parametrize("rho", [10**4, 10**9, 10**12, 10**20])
def test_the_parts_of_a_budget_are_the_whole(rho: int, signal: Any, masked: bool) -> None:
    for q, n in ((1, 50), (5, 10_000), (30, 10**6)):
        budget = plan_budget(sizes(q, n), rho, signal, masked=masked)
        joint = masked or signal.centred
        assert rho - (60 + rho // 10**10 if joint else 0) <= budget.rho <= rho
        parts = (*(r for r, _ in budget.rounds), *budget.gradients, *budget.scales)
        alone = sum(parts) + sum(budget.jacobians) + budget.meat + budget.count
        assert (alone > rho) is joint or rho == 10**4
        T = budget.steps
        assert len(budget.jacobians) == T
        assert budget.jacobians[-1] > 0
        assert (budget.count > 0) is masked
        assert len(budget.scales) == (T if signal.joint else T - 1) * signal.scaled
        assert budget.scale_steps == (T - 1) * signal.scaled
        assert tuple(r for _, r in budget.rounds) in {
            tuple(r for _, r in rounds) for rounds in (*ROUNDS, *SINGLE_ROUNDS)
        }


def test_where_noise_dominates_a_round_is_one_and_narrow() -> None:
    loud = plan_budget(sizes(n=500), 10**9, HUBER, masked=False)
    quiet = plan_budget(sizes(n=10**6), 10**12, HUBER, masked=False)
    assert len(loud.rounds) == 1
    assert loud.rounds[0][1] == 1.0
    assert [r for _, r in quiet.rounds] == [1.0, 4.0, 4.0]
    assert loud.precision > quiet.precision


def test_the_last_scale_of_skewed_scores_of_persons_has_half_of_what_scales_have() -> None:
    """Its noise moves their solution; that of symmetric ones it does not."""
    of_persons = replace(sizes(rows=3), person_rows=3)
    for skewed in (True, False):
        signal = replace(HUBER, skewed=skewed)
        scales = plan_budget(of_persons, 10**12, signal, masked=False).scales
        assert max(scales[:-1]) - min(scales[:-1]) <= 1
        share = 0.5 if skewed else 1 / len(scales)
        assert scales[-1] == pytest.approx(share * sum(scales), rel=1e-6)


def test_the_noise_ratio_is_that_of_one_whole_step() -> None:
    """η = √q·2RK·m/(n√(2ρ)κh̄), with the records in use."""
    s = sizes(rows=3, expected=2500.0)
    rho = 10**12
    whole = 2 * sqrt(s.radius_squared * 5) * 1.345 * 3 / (2500 * sqrt(2 * rho / RHO_UNITS))
    assert noise_ratio(s, rho, HUBER) == pytest.approx(whole / (s.mean_norm * 0.82))


def test_errors_fall_with_every_step_and_with_the_budget() -> None:
    shares = np.array([[0.1, 0.2, 0.3, 0.4]]).T
    more = [forecast_errors(shares[:t], 0.05, 0.1, 0.1, scaled=True)[0] for t in range(1, 5)]
    assert all(np.diff(more) < 0)
    by_noise = [forecast_errors(shares, eta, 0.1, 0.1, scaled=True)[0] for eta in (0.01, 0.1, 1.0)]
    assert all(np.diff(by_noise) > 0)


@pytest.mark.parametrize("rho", [7, 1000, 10**15])
def test_an_allocation_is_exact_and_leaves_nothing_out(rho: int) -> None:
    parts = allocate(rho, (0.3, 1e-12, 0.2, 0.5))
    assert sum(parts) == rho
    assert min(parts) >= 1


def test_planned_noise_is_the_mechanisms() -> None:
    parts = (
        VectorSum(4, 3.0, 10**9, 2),
        GramSum(4, 3.0, 10**9, 2),
        GramSum(4, 3.0, 10**9, 2, True),
        CountSum(1, 10**9, 2),
        CountSum(7, 10**9, 2),
    )
    for part in parts:
        assert planned_sd(part) == pytest.approx(noisy_sum.noise_sd(part), rel=1e-3)


def test_planned_constants_are_smaller_where_noise_is_larger() -> None:
    def chosen(rho: Any) -> Any:
        choices = [((c, r), r, Signal(c, 0.8, True), 1 / c) for c in (0.5, 4.0) for r in (1.0, 4.0)]
        return least_variance(sizes(n=2000), rho, choices)

    assert chosen(10**9) == (0.5, 1.0)
    assert chosen(10**16) == (4.0, 4.0)
