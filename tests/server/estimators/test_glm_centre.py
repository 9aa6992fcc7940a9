"""The ball in which a binomial gradient's contributions lie: true of every record, and nearly tight."""

from dataclasses import replace

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.design import Compare
from reticent_server.estimators.glm.centre import gradient_ball
from reticent_server.estimators.glm.maps import GlmPoint, GlmScoreMap
from reticent_server.estimators.glm.score import QuasiScore
from support_glm import fitted, glm_table, planned, slopes
from support_newton import boolean, whole

R = 4.0
LIMITS = (-30.0, 30.0)


def spread_records(coding, rng, n=4000):
    """Records at all distances, half of them where η = 0, with a rare dummy and both responses."""
    lengths = np.exp(rng.uniform(-3, 4, n))
    table = {f"x{j}": rng.normal(size=n) * lengths for j in range(3)}
    return {**table, "rare": (rng.random(n) < 0.3) * 1.0, "y": rng.integers(0, 2, n) * 1.0}


@pytest.mark.parametrize("slope", [0.05, 0.5, 1.5, 5.0])
@pytest.mark.parametrize("c", [np.inf, 1.345])
def test_every_record_is_in_the_ball_and_some_are_near_its_rim(slope, c):
    rng = np.random.default_rng(3)
    table = glm_table("binomial", 400, rng) | {"rare": (np.arange(400) % 25 == 0) * 1.0}
    plan = planned(table, [*slopes(3), boolean("rare")], "binomial", rho_units(1.0, 1e-6))
    coding, q = plan.coding, plan.sizes.size
    score = QuasiScore("binomial", c, 1.0, LIMITS)
    theta = np.array([-0.5, slope, -slope, slope / 2, 0.3])
    W = np.linalg.cholesky(np.eye(q) + 0.3)
    W[4, :4] = W[:4, 4] = 0.0
    W[4, 4] = 1.0
    radius = np.sqrt(plan.sizes.radius_squared)
    ball = gradient_ball(score, theta, W, radius)
    point = GlmPoint(theta, W[:4, :4], score)
    records = spread_records(coding, rng)
    moved = GlmScoreMap(coding, point, ball.shift)(whole(records))[0]
    longest = np.linalg.norm(moved, axis=0).max()
    assert longest <= ball.radius
    assert longest > 0.7 * ball.radius
    if c == np.inf:
        assert ball.radius < 0.995 * radius * score.score_bound()


def test_other_families_and_the_start_keep_the_ball_about_zero():
    theta, W = np.array([1.0, 2.0]), np.eye(2)
    binomial = QuasiScore("binomial", np.inf, 1.0, LIMITS)
    for score in (
        QuasiScore("poisson", 1.5, 1.0, (-5.0, 5.0)),
        replace(binomial, limits=(0.3, 0.3)),
    ):
        ball = gradient_ball(score, theta, W, R)
        assert not ball.shift.any()
        assert ball.radius == R * score.score_bound()
    assert not gradient_ball(binomial, 0 * theta, W, R).shift.any()
    assert gradient_ball(binomial, theta, W, R).shift @ theta > 0


def test_the_shift_is_taken_off_what_is_released():
    """With a mask too, where the shift is that of all n records."""
    rng = np.random.default_rng(4)
    table = glm_table("binomial", 4000, rng)
    kept = {k: v[table["x0"] < 0.7] for k, v in table.items()}
    _, masked = fitted(table, slopes(3), "binomial", 50.0, where=Compare("x0", "<", 0.7))
    _, alone = fitted(kept, slopes(3), "binomial", 50.0)
    errors = np.array(alone["standard_errors"])
    gap = np.subtract(masked["coefficients"], alone["coefficients"])
    assert np.abs(gap / errors).max() < 2
    truth = [0.5, 0.4, 0.4, 0.4]
    assert np.abs(np.subtract(alone["coefficients"], truth)).max() < 0.5  # ten standard errors
