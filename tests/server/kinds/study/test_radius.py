"""The radius between noise and clipping."""

from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.study.radius import EDGES, choose_radius, counted, excess

Q, N = 6, 50_000.0
BINS = len(EDGES) + 1


def lengths(tail: int = 0, at: float = 30.0) -> Any:
    """Squared lengths of white normal rows, and of a tail."""
    body = np.random.default_rng(1).chisquare(Q, int(N) - tail)
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


def test_bins_that_noise_can_fill_do_not_count() -> None:
    bins = counted(lengths(), Q)
    filled = bins + np.append(np.zeros(BINS - 1), 70.0)
    assert choose_radius(filled, 30.0, Q, N, 3.0) == choose_radius(bins, 30.0, Q, N, 3.0)
    assert (
        choose_radius(filled, 10.0, Q, N, 3.0).squared
        > choose_radius(bins, 10.0, Q, N, 3.0).squared
    )


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
