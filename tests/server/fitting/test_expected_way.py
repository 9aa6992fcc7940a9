# SPDX-License-Identifier: Apache-2.0
"""A forecast's triangular factors say what the filter's own matrices say."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.fitting.expected_ground import FORECAST_ROWS, expected_ground
from reticent_server.fitting.expected_way import ExpectedFrame, ExpectedWay, triangular_root, usable
from reticent_server.fitting.filter import (
    Correction,
    corrected_curvature,
    measured,
    measured_as_expected,
    moved,
    prior,
)
from reticent_server.fitting.public.coordinates import WIDE, clipped_moment, public_coordinates
from reticent_server.fitting.whitening import on_average, unwhitened, whitened_as_expected
from reticent_server.numerics.matrices import power
from support.seeds import seeded

Q, UNIT = 4, 0.5


def known(error: Any, shape: Any) -> Correction:
    return Correction(np.eye(Q), np.broadcast_to(error, Q) ** 2.0, np.broadcast_to(shape, Q))


def covariance(least: float) -> Any:
    turn = np.linalg.qr(seeded(7).normal(size=(Q, Q)))[0]
    return turn @ np.diag([2.0, 1.0, 0.5, least]) @ turn.T


def jacobian() -> Any:
    root = seeded(8).normal(size=(Q, Q))
    return root @ root.T


@pytest.mark.parametrize("least", [1.0, 1e-6, 0.0])
def test_what_a_forecast_says_is_left_is_what_a_step_says(least: float) -> None:
    """Where no axis is free; also of a direction with next to nothing to go, or nothing."""
    C, J, about = covariance(least), jacobian(), known([0.1, 0.2, 0.3, 0.4], 0.1)
    way, frame = ExpectedWay(triangular_root(C)), ExpectedFrame(J, 0)
    error = frame.error(frame.squared(way), about, UNIT)
    at = corrected_curvature(J, UNIT, about)
    said = moved(C, at, 0.03 * np.eye(Q), np.zeros(Q)).covariance
    found = way.after(J / UNIT, error, 0.03)
    assert np.all(found.root == np.tril(found.root))
    np.testing.assert_allclose(found.covariance, said, rtol=1e-6, atol=1e-11)


def test_free_axes_have_what_they_have_on_average() -> None:
    """With and without the root of J the same."""
    C, J = covariance(1.0), jacobian()
    way, root = ExpectedWay(triangular_root(C)), power(J, 0.5)
    own = np.diag(root @ C @ root)
    some, all_ = ExpectedFrame(J, 3), ExpectedFrame(J, Q)
    np.testing.assert_allclose(some.squared(way), [*[np.mean(own[:3])] * 3, own[3]])
    np.testing.assert_allclose(all_.squared(way), np.full(Q, np.mean(own)))
    alike, unlike = known(0.2, 0.1), known([0.2, 0.2, 0.2, 0.2 + 1e-12], 0.1)
    errors = (all_.error(all_.squared(way), each, UNIT) for each in (alike, unlike))
    np.testing.assert_allclose(*errors, rtol=1e-9)
    np.testing.assert_allclose(on_average(own, 0), own)


def test_a_direction_that_no_row_has_is_usable() -> None:
    J = jacobian()
    assert usable(J) is J
    values = np.linalg.eigvalsh(usable(np.diag([1.0, 0.5, 0.0, 0.0])))
    np.testing.assert_allclose(values, [1e-9, 1e-9, 0.5, 1.0])


def test_predictors_vary_by_what_is_left() -> None:
    C, rows = covariance(1.0), seeded(9).normal(size=(50, Q))
    way, said = ExpectedWay(triangular_root(C)), np.sum(rows @ C * rows, axis=1)
    np.testing.assert_allclose(way.variance(rows), said)
    np.testing.assert_allclose(way.variance(rows.astype(np.float32)), said, rtol=1e-5)
    np.testing.assert_allclose(way.widened(C).covariance, 2 * C, atol=1e-12)


def test_an_expected_jacobian_makes_a_forecast_as_sure_as_a_released_one() -> None:
    J, about = jacobian(), known([0.1, 0.2, 0.3, 0.4], 0.1)
    said, noise = measured(about, power(J, 0.5), J, 0.05, 0.02, 3)
    found = measured_as_expected(about, 0.05 * np.diag(np.linalg.inv(J)), 0.02, 3)
    np.testing.assert_allclose(noise, 0.05 * np.diag(np.linalg.inv(J)))
    for part in ("E", "error", "shape"):
        np.testing.assert_allclose(getattr(found, part), getattr(said, part), atol=1e-9)


def test_a_round_that_shows_what_is_expected_stretches_nothing() -> None:
    rng = seeded(3)
    X = np.column_stack([np.ones(4096), rng.normal(size=(4096, Q - 1))])
    start = unwhitened(public_coordinates(X), WIDE * Q)
    variances = np.diag(np.linalg.inv(start.moment))
    quiet = whitened_as_expected(start, start.moment, variances, 1e-12)
    assert quiet.as_expected
    assert quiet.uninformed
    np.testing.assert_allclose(quiet.noise, 1e-12 * np.mean(variances), rtol=0.1)
    np.testing.assert_allclose(quiet.frequency, np.eye(Q))


def test_a_rare_axis_of_which_noise_is_all_is_not_as_expected() -> None:
    rng = seeded(3)
    X = np.column_stack([np.ones(4096), rng.normal(size=(4096, Q - 1))])
    start = replace(unwhitened(public_coordinates(X), WIDE * Q), free=Q - 1)
    variances = np.diag(np.linalg.inv(start.moment))
    loud = whitened_as_expected(start, start.moment, variances, 1e3)
    assert loud.uninformed
    assert not loud.as_expected
    assert np.all(loud.frequency.diagonal()[:-1] < loud.frequency.diagonal()[-1])


def test_a_design_has_one_ground_and_its_prior() -> None:
    X = seeded(4).normal(size=(4096, Q))
    coordinates = public_coordinates(X)
    ground = expected_ground(coordinates)
    assert expected_ground(coordinates) is ground
    state = ground.before(WIDE * Q)
    assert len(state.rows) == FORECAST_ROWS
    way = ground.way(state.rows, 2.0).covariance
    np.testing.assert_allclose(way, prior(state, 2.0), atol=1e-12)


def test_a_level_of_few_rows_is_among_those_of_a_forecast() -> None:
    """None of the first FORECAST_ROWS has it; of the next there are some."""
    rare = np.zeros(4096)
    rare[FORECAST_ROWS + 100 :: 300] = 1.0
    coordinates = public_coordinates(np.column_stack([np.ones(4096), rare]))
    rows = expected_ground(coordinates).start.rows
    assert len(rows) == 2 * FORECAST_ROWS
    assert np.linalg.eigvalsh(clipped_moment(rows, WIDE * 2))[0] > 0
