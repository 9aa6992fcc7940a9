# SPDX-License-Identifier: Apache-2.0
"""The radius between noise and clipping."""

from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.study.radius import (
    EDGES,
    Tail,
    choose_radius,
    counted,
    excess,
    widest_radius,
)
from support.seeds import seeded

Q, N = 6, 50_000.0
BINS = len(EDGES) + 1


def lengths(tail: Any = 0, at: Any = 24.0) -> Any:
    """Squared lengths of white normal rows, and of a tail."""
    body = seeded(1).chisquare(Q, int(N) - tail)
    return np.append(body, np.full(tail, at * Q))


def test_the_excess_is_what_lies_beyond() -> None:
    rows = lengths(500)
    exact = np.sum(np.maximum(rows - 5 * Q, 0.0))
    assert excess(counted(rows, Q), Q, 5 * Q) == pytest.approx(exact, rel=0.15)
    assert excess(counted(rows, Q), Q, 5_000 * Q) == 0


def test_more_noise_makes_it_smaller_and_a_tail_wider() -> None:
    bins = counted(lengths(), Q)
    quiet, loud = (choose_radius(bins, 1.0, Q, N, unit).squared for unit in (0.3, 30.0))
    assert quiet > 1.3 * loud
    assert (
        choose_radius(counted(lengths(500), Q), 1.0, Q, N, 3.0).squared
        > choose_radius(bins, 1.0, Q, N, 3.0).squared
    )


def test_of_persons_it_is_in_lengths_of_theirs_and_counts_the_trace_of_what_is_cut() -> None:
    """A length that is half as long again, and a trace that is twice it."""
    bins, noise = counted(lengths(500), Q), 1.0
    row = choose_radius(bins, noise, Q, N, 30.0)
    person = choose_radius(bins, noise, Q, N, 30.0, 1.5 * Q)
    assert 1.2 * row.squared < person.squared < 1.6 * row.squared
    traced = choose_radius(bins, noise, Q, N, 30.0, 1.5 * Q, 9.0)
    assert traced.squared > 1.1 * person.squared
    tail = Tail.seen(bins, noise, 1.5 * Q)
    assert traced.excess == pytest.approx(9 * tail.excess(traced.squared))


def test_bins_that_noise_can_fill_do_not_count() -> None:
    bins = counted(lengths(), Q)
    filled = bins + np.append(np.zeros(BINS - 1), 70.0)
    apart = [
        choose_radius(filled, noise, Q, N, 3.0).squared
        / choose_radius(bins, noise, Q, N, 3.0).squared
        for noise in (30.0, 10.0)
    ]
    assert apart[0] < 1.2 < apart[1]


@pytest.mark.parametrize(("alpha", "body"), [(1.6, 40_000), (2.2, 40_000)])
def test_a_tail_that_noise_hides_is_followed_from_where_it_is_seen(alpha: Any, body: Any) -> None:
    """A Pareto tail of ‖u‖²/q beyond 2: Σ(‖u‖² − R²)₊ within a factor of two, most of it in bins
    that noise hides.
    """
    rng = seeded(3)
    far = int(N) - body
    tail = 2 * Q * ((np.arange(far) + 0.5) / far) ** (-1 / alpha)
    rows = np.append(rng.chisquare(Q, body), tail)
    bins, noise = counted(rows, Q), 30.0
    exact = np.sum(np.maximum(rows - 6 * Q, 0.0))
    seen = np.median(
        [Tail.seen(bins + noise * rng.normal(size=BINS), noise, Q).excess(6 * Q) for _ in range(99)]
    )
    assert 0.5 < seen / exact < 2
    clear = excess(np.where(bins > 5 * noise, bins, 0.0), Q, 6 * Q)
    assert clear < 0.6 * exact


def test_an_excess_is_never_negative() -> None:
    """Also where noise is all that the bins have, and where only the first bins are clear."""
    rng = seeded(6)
    for first in (0.0, 500.0):
        for _ in range(500):
            bins = 30.0 * rng.normal(size=BINS) + np.append([first, first], np.zeros(BINS - 2))
            tail = Tail.seen(bins, 30.0, Q)
            assert min(tail.excess(r * Q) for r in (1.0, 2.0, 6.0, 50.0)) >= 0


def test_a_tail_is_continuous_at_its_edge() -> None:
    tail = Tail.seen(counted(lengths(500), Q), 10.0, Q)
    assert tail.excess(tail.edge * (1 - 1e-9)) == pytest.approx(tail.excess(tail.edge), rel=1e-6)


def test_without_a_profile_the_forecast_counts_on_the_widest() -> None:
    assert 11 * Q < widest_radius(Q, N, 0.3) <= 12 * Q
    assert widest_radius(Q, N, 0.3) >= choose_radius(counted(lengths(), Q), 1.0, Q, N, 0.3).squared
    assert widest_radius(Q, 10.0, 1e4) == Q


def test_it_ends_where_noise_is_felt() -> None:
    heavy = counted(lengths(5_000, 400.0), Q)
    assert choose_radius(heavy, 1.0, Q, N, 1.5).squared <= 12 * Q
    assert choose_radius(heavy, 1.0, Q, N, 0.01).squared > 100 * Q


@pytest.mark.parametrize("unit", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("records", [50.0, 1e3, 1e6])
def test_the_noise_stays_below_a_quarter_of_the_records(unit: float, records: float) -> None:
    """Or the radius is the smallest."""
    squared = choose_radius(counted(lengths(50), Q), 1.0, Q, records, unit).squared
    assert squared == Q or squared * unit * np.sqrt(2 * Q) <= records / 4
