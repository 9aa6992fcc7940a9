"""What a record contributes to a generalised linear model: in any block the same, and within its clip."""

import pickle
from math import inf

import numpy as np
import pytest

from reticent_server.domain.design import Compare
from reticent_server.domain.steps import multiplied
from reticent_server.estimators.glm.dispersion import chi_score, joint_step
from reticent_server.estimators.glm.score import QuasiScore
from reticent_server.numerics.families import gamma_moments
from support_glm import TOP, glm_table, planned, slopes
from support_newton import blocks_of, boolean, drive, totals, whole

FAMILIES = ("binomial", "poisson", "gamma")
N = 10_000


def table(family, n=N, seed=0):
    rng = np.random.default_rng(seed)
    found = glm_table(family, n, rng)
    rare = (rng.random(n) < 0.04).astype(float)
    found["x0"][:20] = 900.0
    return found | {"d": rare}


def mapped(step, block):
    return [multiplied(contribution) for contribution in step.map_fn(block)]


def steps_of(family, data, **more):
    plan = planned(data, [*slopes(3), boolean("d")], family, 10**11, **more)
    return drive(plan.run(), whole(data)).steps


@pytest.mark.parametrize("rows", [1, 64, 8192])
@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_and_sums_do_not_depend_on_the_block_size(family, rows):
    data = table(family, 200 if rows == 1 else N)
    for step in steps_of(family, data, where=Compare("x1", "<", 1.0)):
        everything = mapped(step, whole(data))
        pieces = [mapped(step, piece) for piece in blocks_of(whole(data), rows)]
        for k, values in enumerate(everything):
            joined = np.concatenate([piece[k] for piece in pieces], axis=-1)
            np.testing.assert_array_equal(joined, values)
        for a, b in zip(totals(step, whole(data)), totals(step, whole(data), rows), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_stay_within_their_clips_and_come_near(family):
    data = table(family)
    data["y"][::3] = TOP if family != "binomial" else 1.0
    for step in steps_of(family, data):
        for part, values in zip(step.parts, mapped(step, whole(data)), strict=True):
            largest = np.sqrt(np.sum(values**2, axis=0)).max()
            near = 0.1 if part.size == 1 else 0.25
            assert near * part.clip < largest <= part.clip * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_records_out_of_use_and_not_finite_contribute_nothing(family):
    """But for the shift of the gradient's ball (centre), a constant that all n records contribute."""
    data = table(family)
    steps = steps_of(family, data, where=Compare("x1", "<", 1.0))
    bad = {k: v.copy() for k, v in data.items()}
    bad["x2"][5], bad["y"][6] = np.nan, np.inf
    others = np.ones(N, dtype=bool)
    others[5:7] = False
    for step in steps:
        pairs = zip(mapped(step, whole(data)), mapped(step, whole(bad)), strict=True)
        for position, (a, b) in enumerate(pairs):
            np.testing.assert_array_equal(a[..., others], b[..., others])
            out = data["x1"] >= 1.0
            moved = getattr(step.map_fn, "shift", np.zeros(1)) if position == 0 else np.zeros(1)
            constant = a[:, out] == moved[:, None] if a.ndim == 2 else a[out] <= 0
            assert np.all(constant)
        again = pickle.loads(pickle.dumps(step.map_fn))
        np.testing.assert_array_equal(again(whole(data))[0], step.map_fn(whole(data))[0])


@pytest.mark.parametrize("c", [0.7, 1.345, 2.5, inf])
@pytest.mark.parametrize("limits", [(-12.0, 7.0), (0.3, 0.3)])
@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_of_the_score_are_its_suprema(family, c, limits):
    if c == inf and family != "binomial":
        return
    score = QuasiScore(family, c, 1.0 if family == "binomial" else 1.3, limits)
    eta = np.linspace(*limits, 401).repeat(400)
    most = 1.0 if family == "binomial" else 3000.0
    y = np.tile(np.linspace(0, most, 400), 401)
    q, h = score.evaluate(y, eta)
    bound = score.score_bound()
    assert 0.97 * bound <= np.abs(q).max() <= bound * (1 + 1e-6)
    assert 0 <= h.min() <= h.max() <= score.information_bound() * (1 + 1e-9)


def test_the_joint_gamma_step_is_the_derivative_of_the_mean_scores():
    """(θ, ln s) off by a little: one joint step from the population's scores comes back to second order."""
    c, k, s = 1.2, 1.5, 0.9
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    w = np.minimum(1.0, 2.0 / np.sum(X * X, axis=1))
    quantiles = (np.arange(2000) + 0.5) / 2000
    from scipy.stats import gamma

    T = gamma(1 / s**2, scale=s**2).ppf(quantiles)

    def scores(theta, log_s):
        at = float(np.exp(log_s)) * s
        kappa = chi_score(at, k).kappa
        a = gamma_moments(at**2, at**2, c)[0]
        off = X @ theta
        z = (T[None, :] * np.exp(-off)[:, None] - 1) / at
        psi = np.clip(z, -c, c).mean(axis=1) - a
        chi = (np.clip(z, -k, k) ** 2).mean(axis=1) - kappa
        return np.append(X.T @ (w * psi) / len(X), w @ chi / len(X))

    theta, log_s = np.array([0.02, -0.01]), 0.03
    at = s * np.exp(log_s)
    J = gamma_moments(at**2, at**2, c)[1] * (X.T * w) @ X / len(X)
    step = joint_step(J, np.eye(2), at, c, k)
    measured = scores(theta, log_s)
    np.testing.assert_allclose(theta + step.gain @ measured, 0, atol=2e-3)
    assert log_s + step.log_scale @ measured == pytest.approx(0, abs=3e-3)
