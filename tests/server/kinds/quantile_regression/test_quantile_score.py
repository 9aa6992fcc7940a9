# SPDX-License-Identifier: Apache-2.0
"""The smoothed check loss: bounds, derivatives, and where its solution is."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import norm

from reticent_server.domain.steps import Released
from reticent_server.kinds.quantile_regression.score import (
    QuantileFamily,
    QuantileResidual,
    QuantileScore,
)
from support.seeds import seeded

TAUS = (0.05, 0.25, 0.5, 0.9)
WILD = np.concatenate([np.linspace(-9, 9, 20_001), [np.inf, -np.inf, 1e300, -1e300]])


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("fine", [True, False])
def test_scores_and_slopes_are_within_their_bounds_and_come_near_them(
    tau: float, fine: bool
) -> None:
    score = QuantileScore(tau, 0.4, 2.0, fine)
    q, h = score.with_curvature(2.0 * WILD, np.zeros_like(WILD), np.zeros(len(WILD), dtype=bool))
    assert np.isfinite(q).all()
    assert np.abs(q).max() <= score.bound
    assert np.abs(q).max() >= score.bound - 1e-3
    assert (h >= 0).all()
    assert h.max() == pytest.approx(score.curvature_bound, rel=1e-9)
    assert h.max() <= score.curvature_bound * (1 + 1e-12)
    assert np.array_equal(q, score.evaluate(2.0 * WILD, np.zeros_like(WILD)))


def test_the_slope_of_an_early_step_is_the_derivative_of_its_score() -> None:
    score, y, step = QuantileScore(0.3, 0.7, 1.5, fine=False), np.linspace(-4, 4, 101), 1e-6
    up, down = (score.evaluate(y, np.full(101, eta)) for eta in (step, -step))
    h = score.with_curvature(y, np.zeros(101), np.zeros(101, dtype=bool))[1]
    assert h / score.unit == pytest.approx((down - up) / (2 * step), abs=1e-6)


def mean_slope(tau: Any, b: Any) -> Any:
    """E h of normal residuals with the scale 1 and the τ-quantile 0."""

    def of(r: Any) -> Any:
        return norm.pdf(r / b) / b * norm.pdf(r + ndtri(tau))

    return quad(of, -9, 9, points=[0], limit=300)[0]


def mean_score(score: Any, eta: Any) -> Any:
    """E q of normal responses with the scale 1 at a predictor."""

    def of(y: Any) -> Any:
        return float(score.evaluate(np.array([y]), np.array([eta]))[0]) * norm.pdf(y)

    return quad(of, -9, 9, limit=200)[0]


@pytest.mark.parametrize("tau", TAUS)
def test_early_steps_lead_to_the_quantile_of_normal_errors_and_the_last_is_near_it(
    tau: float,
) -> None:
    assert mean_score(QuantileScore(tau, 1.0, 1.0, fine=False), ndtri(tau)) == pytest.approx(
        0, abs=1e-7
    )
    bias = [mean_score(QuantileScore(tau, b, 1.0, fine=True), ndtri(tau)) for b in (0.15, 0.3)]
    assert abs(bias[0]) < 5e-4
    assert abs(bias[1]) > 8 * abs(bias[0]) or abs(bias[1]) < 1e-5  # of the order b⁴


@pytest.mark.parametrize("tau", TAUS)
def test_the_expected_slope_is_that_of_normal_residuals(tau: float) -> None:
    for b in (0.15, 1.0):
        score = QuantileScore(tau, b, 2.0, fine=True)
        assert score.density == pytest.approx(mean_slope(tau, b), rel=1e-4)
        eta = np.zeros(3)
        assert score.expected(eta, np.full(3, 0.7)) == pytest.approx(np.full(3, score.density))
        near, far = score.expected(np.zeros(2), np.array([0.0, 40.0]))
        assert near > far or abs(tau - 0.5) > 0.3


@pytest.mark.parametrize("tau", TAUS)
def test_the_scale_of_normal_residuals_is_a_fixed_point(tau: float) -> None:
    rng = seeded(0)
    y = 3.0 * rng.normal(size=200_000)
    score, residual = QuantileScore(tau, 1.0, 3.0, fine=True), QuantileResidual(tau)
    inside = residual.contribution(score, y, np.full(len(y), 3.0 * ndtri(tau))) == 0
    released = Released(np.array([float(inside.sum())]), 0.0)
    assert residual.scale(score, released, float(len(y))) == pytest.approx(3.0, rel=0.01)
    assert "median" in residual.words


def test_kernels_become_narrow_and_solutions_may_move_between_them() -> None:
    family = QuantileFamily(0.3, 0.2)
    widths = [family.score(1.0, remaining).bandwidth for remaining in (3, 2, 1, 0)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0.2
    assert family.drift(2) == 0.0
    assert family.drift(1) > 0
    assert family.drift(0) > 0
