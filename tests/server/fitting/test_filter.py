# SPDX-License-Identifier: Apache-2.0
"""The filter over noisy Newton steps: calibrated where its assumptions hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.fitting.filter import (
    Correction,
    Moved,
    StepCurvature,
    corrected_curvature,
    limited,
    measured,
    moved,
    moved_far,
    no_correction,
    prior,
)
from reticent_server.fitting.huber import PsiScore
from reticent_server.fitting.public.coordinates import public_coordinates
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.whitening import unwhitened
from reticent_server.kinds.glm.families.poisson import POISSON
from reticent_server.numerics.matrices import power
from reticent_server.numerics.psi import Huber
from support.fits.regressions import numeric
from support.seeds import seeded

Q = 4


def whitening_of(rng: np.random.Generator, rows: int = 2000) -> Any:
    """After releases without noise: the data are what the public rows are."""
    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, Q - 1))])
    return replace(unwhitened(public_coordinates(X), 4.0 * Q), error=np.full(Q, 1e-6))


def curvature(J: Any, error: float = 0.0, shape: float = 0.0, unit: float = 0.5) -> Any:
    known = Correction(np.eye(Q), np.full(Q, error**2), np.full(Q, shape))
    return corrected_curvature(J, unit, known)


@pytest.mark.slow
def test_a_step_is_the_best_linear_estimate_of_the_way() -> None:
    """Many ways d ~ N(0, C), g = Hd + e: what is left has the covariance that is said, and none is
    smaller.
    """
    rng = seeded(0)
    root = rng.normal(size=(Q, Q))
    C, J, noise = root @ root.T, np.diag([1.0, 0.6, 0.3, 0.1]), 0.2**2 * np.eye(Q)
    H = curvature(J).H
    d = rng.multivariate_normal(np.zeros(Q), C, size=20_000)
    g = d @ H.T + 0.2 * rng.normal(size=d.shape)
    left = np.array(
        [one - moved(C, curvature(J), noise, s).way for one, s in zip(d, g, strict=True)]
    )
    said = moved(C, curvature(J), noise, g[0]).covariance
    np.testing.assert_allclose(left.T @ left / len(left), said, atol=0.06)
    bayes = np.linalg.inv(np.linalg.inv(C) + H.T @ H / 0.04)
    np.testing.assert_allclose(said, bayes, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(("error", "shape"), [(0.2, 0.0), (0.0, 0.2), (0.15, 0.15)])
def test_what_the_curvature_is_wrong_by_is_in_the_covariance(error: float, shape: float) -> None:
    """H of the data is B⁻¹(I + N)B⁻¹ with another N at each step: z of many paths of three
    steps.
    """
    rng = seeded(1)
    J = np.diag([1.0, 0.5, 0.3, 0.2])
    expected, root = curvature(J, error, shape, unit=1.0), np.sqrt(J)
    z = []
    for _ in range(1500):
        C, way = np.eye(Q), rng.normal(size=Q)
        for _ in range(3):
            N = error * rng.normal(size=(Q, Q)) * np.sqrt(0.5)
            E = np.eye(Q) + (N + N.T) / np.sqrt(2) + np.diag(shape * rng.normal(size=Q))
            g = root @ E @ root @ way + 0.02 * rng.normal(size=Q)
            step = moved(C, expected, 0.02**2 * np.eye(Q), g)
            way, C = way - step.way, step.covariance
        z.append(way / np.sqrt(np.diag(C)))
    rms = np.sqrt(np.mean(np.square(z), axis=0))
    assert np.all((rms > 0.5) & (rms < 1.5))


def test_noise_alone_hardly_moves_a_fit() -> None:
    step = moved(0.01 * np.eye(Q), curvature(np.eye(Q)), 1e4 * np.eye(Q), np.full(Q, 100.0))
    assert np.linalg.norm(step.way) < 0.01
    np.testing.assert_allclose(step.covariance, 0.01 * np.eye(Q), rtol=1e-3)


def test_the_prior_allows_rows_to_be_off_by_the_offset() -> None:
    """The mean square of what a predictor is off by; a longer row is not off by more in
    proportion.
    """
    whitening = whitening_of(seeded(4))
    C = prior(whitening, 2.0)
    off = np.einsum("ij,jk,ik->i", whitening.rows, C, whitening.rows)
    assert 0.4 < np.mean(off) / 2.0**2 < 1.1
    np.testing.assert_allclose(prior(whitening, 4.0), 4 * C)


@pytest.mark.parametrize("variance", [0.0, 1.0, 9.0])
def test_the_expected_curvature_is_that_of_normal_residuals(variance: float) -> None:
    """Mean w ψ′ uuᵀ of rows whose predictor is off by N(0, v) on average, s being measured
    there.
    """
    rng = seeded(5)
    whitening = whitening_of(rng)
    model, score = PublicModel(whitening, 2.0 * Q), PsiScore(Huber(1.345), 1.0)
    C = np.diag([variance, 0, 0, 0]) / np.mean(whitening.rows[:, 0] ** 2)
    J = model.curvature(score, np.zeros(Q), C)
    U = whitening.rows
    norms = np.sum(U**2, axis=1)
    w = np.minimum(1, 2.0 * Q / norms)
    v = np.einsum("ij,jk,ik->i", U, C, U)
    z = np.sqrt(np.maximum(1 + v - v.mean(), 0.4)) * rng.normal(size=(400, len(U)))
    h = (np.abs(z) <= 1.345).mean(axis=0)
    np.testing.assert_allclose(J, (U * (w * h)[:, None]).T @ U / len(U), atol=0.03)


def test_a_quiet_jacobian_is_taken_and_a_noisy_one_is_not() -> None:
    whitening = whitening_of(seeded(6))
    known, back = no_correction(whitening, 0.1), power(np.diag([1.0, 0.5, 0.5, 0.2]), 0.5)
    released = back @ np.diag([0.8, 1.2, 1.0, 0.6]) @ back
    quiet, noise = measured(known, back, released, 1e-9)
    np.testing.assert_allclose(quiet.E, np.diag([0.8, 1.2, 1.0, 0.6]), atol=1e-6)
    assert np.all(quiet.error < 1e-6)
    assert np.all(noise < 1e-6)
    loud, noise = measured(known, back, released, 1e3)
    np.testing.assert_allclose(loud.E, np.eye(Q), atol=1e-3)
    np.testing.assert_allclose(loud.error, known.error, rtol=1e-3)
    some, _ = measured(known, back, released, 1e-9, upto=2)
    np.testing.assert_allclose(some.E, np.diag([0.8, 1.2, 1.0, 1.0]), atol=1e-6)
    wild, _ = measured(known, back, -50 * np.eye(Q), 1e-9)
    assert np.linalg.eigvalsh(wild.E)[0] >= 0.05 - 1e-9


def test_a_bent_step_of_a_straight_score_is_a_straight_step() -> None:
    rng = seeded(7)
    there, noise = curvature(np.diag([1.0, 0.7, 0.4, 0.3]), 0.1, 0.1), 0.01 * np.eye(Q)
    g = 0.1 * rng.normal(size=Q)
    straight = moved(0.2 * np.eye(Q), there, noise, g)
    bent = moved_far(0.2 * np.eye(Q), there, noise, g, lambda d: (there.H @ d, there.H))
    np.testing.assert_allclose(bent.way, straight.way, atol=0.15 * np.linalg.norm(straight.way))


def test_a_bent_step_finds_a_solution_beyond_the_reach_of_a_straight_one() -> None:
    """A score that saturates: tanh of the way, seen without noise."""
    way = np.array([1.6, 0.0, -0.8, 0.0])
    there = curvature(np.eye(Q), unit=1.0)

    def expected(d: Any) -> tuple[Any, Any]:
        return np.tanh(d), np.diag(1 - np.tanh(d) ** 2)

    g, noise = np.tanh(way), 1e-6 * np.eye(Q)
    bent = moved_far(4 * np.eye(Q), there, noise, g, expected)
    straight = moved(4 * np.eye(Q), there, noise, g)
    np.testing.assert_allclose(bent.way, way, atol=1e-3)
    assert np.linalg.norm(straight.way - way) > 0.5


def test_units_of_the_score_are_units_of_the_predictor() -> None:
    there = curvature(np.eye(Q), unit=0.5)
    assert isinstance(there, StepCurvature)
    np.testing.assert_allclose(there.H, 2 * np.eye(Q))


def test_a_long_step_is_cut_and_what_is_cut_off_is_left() -> None:
    step = Moved(np.array([0.0, 3.0, 4.0, 0.0]), np.eye(Q))
    cut = limited(step)
    np.testing.assert_allclose(cut.way, [0.0, 0.6, 0.8, 0.0])
    rest = step.way - cut.way
    np.testing.assert_allclose(cut.covariance, np.eye(Q) + np.outer(rest, rest))
    short = limited(Moved(0.2 * step.way, np.eye(Q)))
    np.testing.assert_allclose(short.way, 0.2 * step.way)
    np.testing.assert_allclose(short.covariance, np.eye(Q), atol=1e-9)


def test_a_step_of_a_log_link_ends_where_the_mean_score_says() -> None:
    """From no slopes to the solution in one step without noise: a linear one leaves the intercept
    half the slopes' variance too high.
    """
    rng = seeded(3)
    whitening = whitening_of(rng)
    model, start = (
        PublicModel(whitening, 1e9),
        POISSON.start(numeric("y", 0, 1e6), np.ones(9), None),
    )
    score, beta = POISSON.score(np.inf, 1.0, start), np.array([-0.2, 0.4, 0.3, -0.4])
    rows, back = whitening.rows, np.linalg.inv(whitening.transform.T)
    solution = back @ beta
    h = score.expected(np.zeros(len(rows)), np.zeros(len(rows)))[:, None]
    mean = (rows * h).T @ np.expm1(rows @ solution)
    linear = np.linalg.solve((rows * h).T @ rows, mean)
    assert (whitening.transform.T @ linear)[0] > beta[0] + 0.1
    np.testing.assert_allclose(
        score.curvature.grown(model.local(score, np.zeros(Q)), linear), solution, atol=0.02
    )
