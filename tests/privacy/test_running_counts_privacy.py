# SPDX-License-Identifier: Apache-2.0
"""The privacy suite of running counts: the factor is the mechanism's own, and so are the columns
that are measured.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import RunningCounts
from reticent_server.mechanisms import registry, running_counts
from reticent_server.mechanisms._sampler import DiscreteGaussian
from reticent_server.numerics.running_factor import FACTOR_BITS, coefficients, running_factor
from support.attacks.privacy_losses import loss
from support.seeds import seeded

RHO = RHO_UNITS // 50
PART = RunningCounts(lines=2, length=5, rho=RHO)
OTHERS = np.array([0.0, 3.0, 7.0, 7.0])


def worst_loss(part: Any, codes: Any) -> Any:
    """The largest loss over all pairs of codes of one unit's rows."""
    m = part.unit_rows
    pairs = product(codes, repeat=2)
    return max(
        loss(part, np.append(OTHERS, np.full(m, a)), np.append(OTHERS, np.full(m, b)))
        for a, b in pairs
    )


@pytest.mark.parametrize("unit_rows", [1, 3, 40])
def test_no_pair_of_records_loses_more_than_is_charged_and_one_loses_it_all(unit_rows: int) -> None:
    part = replace(PART, unit_rows=unit_rows)
    worst = worst_loss(part, [-1.0, *range(part.bins), float(part.bins), np.nan])
    assert 0.999 * part.rho <= worst <= part.rho


@pytest.mark.sample(4)
@pytest.mark.parametrize("length", [1, 2, 30, 201])
def test_the_first_positions_of_two_lines_are_the_farthest_at_any_length(length: int) -> None:
    part = RunningCounts(lines=3, length=length, rho=RHO)
    codes = [-1.0, 0.0, length - 1.0, float(length), 2.0 * length - 1, length // 2]
    assert 0.999 * part.rho <= worst_loss(part, codes) <= part.rho


def test_rows_of_a_unit_that_move_each_their_own_way_lose_no_more() -> None:
    part, rng = replace(PART, unit_rows=3), seeded(0)
    for _ in range(300):
        rows = rng.integers(-1, part.bins, size=(2, 3)).astype(float)
        tables = [np.append(OTHERS, each) for each in rows]
        assert loss(part, *tables) <= part.rho


def test_the_columns_of_the_factor_do_not_point_away_from_each_other() -> None:
    """The proof needs entries ≥ 0, and the first column to be the longest."""
    Q = running_factor(300)
    assert (Q >= 0).all()
    norms = [sum(int(q) ** 2 for q in column) for column in Q.T]
    assert max(norms) == norms[0] == sum(c * c for c in coefficients(300))


@pytest.mark.slow
def test_the_factor_times_itself_adds_up() -> None:
    B = running_factor(200) / (1 << FACTOR_BITS)
    assert pytest.approx(np.tril(np.ones((200, 200))), abs=1e-3) == B @ B


def test_values_are_the_factor_times_the_counts_line_by_line() -> None:
    part = replace(PART, rho=10**22)
    codes = np.array([0.0, 0.0, 4.0, 5.0, 9.0, -1.0])
    found = registry.release(part, Private(registry.encode(part, codes)))
    inverse = np.linalg.inv(running_factor(5) / (1 << FACTOR_BITS))
    counts = found.values.reshape(2, 5) @ inverse.T
    assert counts == pytest.approx(np.array([[2, 0, 0, 0, 1], [1, 0, 0, 0, 1]]), abs=1e-3)


def test_noise_has_its_scale_and_no_other() -> None:
    """4,000 draws: their deviation is within 15 % of σ but for 10⁻²⁰, and so not .7 or 1.3 of
    it.
    """
    part = RunningCounts(lines=20, length=200, rho=RHO)
    found = registry.release(part, Private(np.zeros(part.bins, dtype=np.int64)))
    ratio = float(np.std(found.values)) / running_counts.noise_sd(part)
    assert 0.85 < ratio < 1.15
    assert found.sd == running_counts.noise_sd(part)


def test_a_release_costs_what_it_says() -> None:
    billed = DiscreteGaussian(running_counts.scale(PART)).rho(running_counts.sensitivity(PART))
    assert 0.999 * RHO <= billed * RHO_UNITS <= RHO
