"""The covariance of a released fit: what noise adds to it, and what shrinkage takes away."""

import numpy as np
import pytest

from reticent_server.estimators.newton.covariance import (
    StepRecord,
    calmed_meat,
    privacy_covariance,
    sampling_covariance,
)
from reticent_server.estimators.newton.jacobian import later_curvature

K0, SIZE = 0.5, 4


def record(sd, gradient=None, rng=None, gradient_noise=0.0):
    """A step whose Jacobian was released as K0·I (plus noise of rng) with noise sd."""
    noise = np.zeros((SIZE, SIZE)) if rng is None else sd * rng.normal(size=(SIZE, SIZE))
    J = K0 * np.eye(SIZE) + (noise + noise.T) / 2
    curvature = later_curvature(J, sd, K0, np.eye(SIZE), np.eye(SIZE))
    g = np.arange(1.0, SIZE + 1) if gradient is None else gradient
    return StepRecord(1.0, g, gradient_noise, K0, curvature, 0.0)


@pytest.mark.parametrize("relative", [0.05, 0.3])
def test_the_jacobians_noise_is_counted_as_far_as_it_is_used(relative):
    sd = relative * K0 / np.sqrt(2 * SIZE)
    rng = np.random.default_rng(7)
    moves = np.array([record(sd, rng=rng).move for _ in range(4000)])
    claimed = np.diag(privacy_covariance([record(sd)], [1.0]))
    np.testing.assert_allclose(moves.var(axis=0), claimed, rtol=0.25)


def test_a_jacobian_that_is_all_prediction_adds_no_noise_of_its_own():
    step = record(10.0, gradient_noise=0.3)
    assert step.curvature.shrinkage == 1.0
    np.testing.assert_allclose(privacy_covariance([step], [1.0]), 0.09 / K0**2 * np.eye(SIZE))


def test_a_quiet_meat_stays_and_a_noisy_one_becomes_isotropic():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(SIZE, SIZE))
    meat = root @ root.T
    np.testing.assert_allclose(calmed_meat(record(0.0), meat, 0.0), meat)
    calm = calmed_meat(record(0.0), meat, 10.0)
    np.testing.assert_allclose(calm, np.trace(meat) / SIZE * np.eye(SIZE), atol=1e-12)


def test_joint_tests_keep_their_level_under_the_noise_of_the_meat():
    rng, sd = np.random.default_rng(5), 0.1
    step, found = record(0.0), []
    for _ in range(500):
        noise = sd * rng.normal(size=(SIZE, SIZE))
        C = sampling_covariance(step, 0.4 * np.eye(SIZE) + (noise + noise.T) / 2, 1.0, sd)
        errors = np.sqrt(0.4) / K0 * rng.normal(size=SIZE)
        found.append(errors @ np.linalg.solve(C, errors))
    assert np.mean(np.array(found) > 9.488) < 0.09
