# SPDX-License-Identifier: Apache-2.0
"""Coordinates from public rows, and their whitening by released Gram matrices."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import Released
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.public import coordinates
from reticent_server.fitting.public.coordinates import (
    WIDE,
    clipped_moment,
    normal_size,
    public_coordinates,
)
from reticent_server.fitting.whitening import unwhitened, whitened
from support.seeds import seeded

Q, N = 4, 4096


def normal_rows(rng: np.random.Generator, rows: Any = N) -> Any:
    return np.column_stack([np.ones(rows), rng.normal(size=(rows, Q - 1))])


def settled(
    X: Any, data: Any, rounds: int = 3, sd: float = 0.0, rng: np.random.Generator = None
) -> Any:
    """After rounds that release the clipped moment of the data (n, q)."""
    radius = WIDE * X.shape[1]
    state = unwhitened(public_coordinates(X), radius)
    for k in range(rounds):
        S = clipped_moment(data @ state.transform.T, radius)
        noise = 0.0 if rng is None else sd * rng.normal(size=S.shape)
        S = S + (noise + np.transpose(noise)) / 2
        state = whitened(state, Released(S, sd), 1.0, radius, last=k == rounds - 1)
    return state


@pytest.mark.parametrize("distort", [1.0, 1e-3])
def test_public_coordinates_are_the_same_up_to_a_rotation_however_the_rows_are_written(
    distort: float,
) -> None:
    rng = seeded(0)
    X = normal_rows(rng)
    A = np.eye(Q) + distort * np.triu(rng.normal(size=(Q, Q)), 1)
    first, second = public_coordinates(X), public_coordinates(X @ A.T)
    np.testing.assert_allclose(
        np.sum(first.rows**2, axis=1), np.sum(second.rows**2, axis=1), rtol=1e-6
    )
    assert first.free == second.free == Q
    assert not first.lost


def test_free_coordinates_have_the_clipped_moment_of_normal_rows() -> None:
    rng = seeded(1)
    X = np.column_stack(
        [np.ones(N), rng.standard_t(3, N), rng.exponential(size=N), rng.normal(size=N)]
    )
    found = public_coordinates(X)
    K = clipped_moment(found.rows, WIDE * Q)
    np.testing.assert_allclose(K, normal_size(WIDE, Q) * np.eye(Q), atol=0.03)


@pytest.mark.parametrize("limit", [coordinates._STRETCH, 1.2])
def test_many_columns_have_the_coordinates_that_few_have(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Cholesky factors and in single precision; also where no axis may be stretched as far as it
    should be. The rows' moment is the same as well, so the two differ by a rotation at most.
    """
    rng = seeded(6)
    X = np.column_stack(
        [np.ones(N), rng.standard_t(1.5, N), rng.normal(size=N), rng.random(N) < 0.01]
    )
    monkeypatch.setattr(coordinates, "_STRETCH", limit)
    found = []
    for usual in (Q, Q - 1):
        coordinates._coordinates.cache_clear()
        monkeypatch.setattr(coordinates, "USUAL", usual)
        monkeypatch.setattr(coordinates, "_FEWEST", coordinates._SETTLING)
        found.append(public_coordinates(X))
    coordinates._coordinates.cache_clear()
    few, many = found
    assert few.free == many.free == Q - 1
    assert many.rows.dtype == np.float64
    np.testing.assert_allclose(np.sum(many.rows**2, axis=1), np.sum(few.rows**2, axis=1), rtol=2e-3)


def test_no_row_is_stretched_by_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the middle of a heavy tail is short of what it would be stretched to."""
    rng = seeded(6)
    X = np.column_stack([np.ones(N), rng.standard_t(1.5, N), rng.normal(size=N)])
    squares = []
    for limit in (1.0, 1.2):
        coordinates._coordinates.cache_clear()
        monkeypatch.setattr(coordinates, "_STRETCH", limit)
        squares.append(np.sum(public_coordinates(X).rows ** 2, axis=1))
    coordinates._coordinates.cache_clear()
    assert 1.2**2 * 0.99 < np.max(squares[1] / squares[0]) < 1.2**2 * (1 + 1e-9)


def test_a_rare_level_is_no_free_coordinate_and_keeps_its_weight() -> None:
    rng = seeded(2)
    X = normal_rows(rng)
    X[:, 3] = rng.random(N) < 0.01
    found = public_coordinates(X)
    assert found.free == Q - 1
    level = found.rows[X[:, 3] > 0]
    assert np.median(np.sum(level**2, axis=1)) < 10 * Q


def test_terms_that_are_constant_or_collinear_are_found_lost() -> None:
    X = normal_rows(seeded(3))
    twice = np.column_stack([X, X[:, 1]])
    assert public_coordinates(twice).lost
    constant = X.copy()
    constant[:, 2] = 1e-15
    found = public_coordinates(constant)
    assert found.lost
    assert np.linalg.cond(found.transform) < 1e6


@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.999])
def test_whitening_without_noise_finds_the_data_s_own_coordinates(correlation: float) -> None:
    """Correlated and scaled otherwise than the public rows, which are independent."""
    rng = seeded(4)
    X = normal_rows(rng)
    data = normal_rows(rng, 20_000)
    data[:, 2] = correlation * data[:, 1] + np.sqrt(1 - correlation**2) * data[:, 2]
    data[:, 3] *= 2.5
    state = settled(X, data)
    U = data @ state.transform.T
    np.testing.assert_allclose(U.T @ U / len(U), np.eye(Q), atol=0.12)
    seen, noise = state.seen
    np.testing.assert_allclose(seen, np.eye(Q), atol=0.05)
    assert np.max(noise) < 1e-6


def level_pair(rng: np.random.Generator, rows: int, both: Any) -> Any:
    """A constant, a normal column and two indicators, one of which each row has; `both` rows have
    both.
    """
    first = rng.random(rows) < 0.45
    return np.column_stack([np.ones(rows), rng.normal(size=rows), first | both, ~first | both])


def independent_levels(rng: np.random.Generator) -> Any:
    """As public rows have them."""
    return np.column_stack([np.ones(N), rng.normal(size=N), rng.random((N, 2)) < 0.5])


@pytest.mark.parametrize(("share", "sd"), [(0.006, 0.0), (0.006, 2e-4), (0.002, 0.0)])
def test_a_rare_combination_is_no_longer_than_the_radius(share: float, sd: float) -> None:
    """It reads share times the squared radius however it is stretched: without the rule its rows
    are 30 to 200 long. The other directions are white, and what the rounds say of it is true.
    """
    rng = seeded(8)
    both = rng.random(20_000) < share
    data = level_pair(rng, 20_000, both)
    state = settled(independent_levels(rng), data, sd=sd, rng=rng)
    U = data @ state.transform.T
    radius = np.sqrt(WIDE * Q)
    assert 0.8 * radius < np.median(np.linalg.norm(U[both], axis=1)) < 1.9 * radius
    values = np.linalg.eigvalsh(U.T @ U / len(U))
    assert values[0] < 0.4  # a white one has 1; over 12 tables .12 to .24
    np.testing.assert_allclose(values[1:], 1.0, atol=0.25)
    informed = np.linalg.eigvalsh(state.information)
    assert 0.5 < informed[0] / (share * WIDE * Q / normal_size(WIDE, Q)) < 2.0
    assert np.sum(state.unsettled > 0.99) == 1  # how weights change that is not known


@pytest.mark.parametrize("law", ["normal", "t"])
def test_a_direction_in_which_all_records_vary_is_white_however_narrow(law: str) -> None:
    rng = seeded(9)
    X, data = normal_rows(rng), normal_rows(rng, 20_000)
    narrow = rng.normal(size=20_000) if law == "normal" else rng.standard_t(5, 20_000) / 1.3
    data[:, 2] = data[:, 1] + 0.03 * narrow
    U = data @ settled(X, data, rounds=2).transform.T
    assert np.linalg.eigvalsh(U.T @ U / len(U))[0] > 0.8


def test_noise_of_a_round_leaves_an_error_that_says_so() -> None:
    rng = seeded(5)
    X, data = normal_rows(rng), normal_rows(rng, 20_000)
    quiet = settled(X, data, sd=1e-4, rng=rng)
    loud = settled(X, data, sd=0.2, rng=rng)
    assert np.all(loud.error > 10 * np.median(quiet.error))
    deaf = settled(X, data, sd=1e3, rng=rng)
    U = data @ deaf.transform.T
    assert np.linalg.eigvalsh(U.T @ U / len(U))[0] > 0.3


def test_public_rows_that_all_are_0_leave_usable_coordinates() -> None:
    """As deviations of persons with one row in use: a narrow round is about lengths of none."""
    start = public_coordinates(np.zeros((N, Q)))
    before = replace(unwhitened(start, Q), free=Q, rows=np.zeros((N, Q)))
    after = whitened(before, Released(np.eye(Q), 0.1), 1.0, 1.0 * Q, last=False)
    assert np.isfinite(after.transform).all()
    assert np.linalg.matrix_rank(after.transform) == Q


def test_inside_is_the_coefficients_of_u() -> None:
    rng = seeded(6)
    state = settled(normal_rows(rng), normal_rows(rng, 5000))
    theta = rng.normal(size=Q)
    np.testing.assert_allclose(state.transform.T @ state.inside(theta), theta)


def test_a_quiet_meat_stays_and_a_noisy_one_is_a_multiple_of_the_expected() -> None:
    rng = seeded(7)
    root = rng.normal(size=(Q, Q))
    meat, expected = root @ root.T + np.eye(Q), np.diag([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(calmed_meat(meat, 1e-12, expected), meat, rtol=1e-6)
    calm = calmed_meat(meat, 1e4, expected)
    np.testing.assert_allclose(calm / calm[0, 0], expected, atol=1e-6)
    A = np.diag([2.0, 1, 1, 1])
    np.testing.assert_allclose(sandwich(A, meat, 100.0), A @ meat @ A / 100)
