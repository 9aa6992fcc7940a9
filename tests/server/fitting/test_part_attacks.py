"""Attacks on every released part of a fit: a search over records for two that are as far apart as may be.

A part is calibrated to a distance Δ of two contributions. For each part there are records that attain
it (within 1 %), and none of a wide search is beyond it. Records are of one regressor, whose public
whitening and point are set by hand, so that the extreme records can be reached.
"""

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import CountSum, GramSum, SumStep, VectorSum
from reticent_server.estimators.glm.families import FAMILIES
from reticent_server.fitting.maps import Point, ResidualMap, RowsMap, ScoreMap
from support_fits import linear_plan
from support_glm import planned as glm_planned
from support_losses import farthest_records
from support_newton import boolean, numeric, totals, whole

X = [numeric("x", -1e3, 1e3)]
WIDE_Y = Column("y", ColumnKind.NUMERIC, -1e9, 1e9)
MODELS = ("huber", "squared", "tukey", *FAMILIES)
ATTAINED = 0.99


def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    return {"x": x, "y": np.abs(x) + 0.5 * rng.exponential(size=400)}


def plan_of(model):
    data = table()
    if model == "binomial":
        data["y"] = (data["y"] > 1).astype(float)
    if model in FAMILIES:
        return glm_planned(data, X, model, 10**14)
    return linear_plan(data, X, 10**14, y=WIDE_Y, loss=model)


def newton_of(plan, theta=None, scale=None):
    """The recipe, its last step at a point, and the step of its scale."""
    newton = plan.newton
    state = newton._started(whitening_of(newton), 400.0, present=True)
    theta = state.theta if theta is None else np.asarray(theta, dtype=float)
    return newton, replace(state, theta=theta, scale=scale or state.scale)


def whitening_of(newton):
    from reticent_server.fitting.whitening import unwhitened

    return unwhitened(newton.coordinates, newton.sizes.radius_squared)


def last_step(plan, theta=None, scale=None):
    newton, state = newton_of(plan, theta, scale)
    score = newton.family.score(state.scale, 0)
    T = newton.budget.steps
    return newton._score_step(state, whitening_of(newton), score, T - 1)


def extreme_records(step, model, grid=121):
    """Records of any place and response: also those whose score is largest for their place."""
    point, coding = step.map_fn.point, step.map_fn.coding
    x = np.concatenate([[-1e3, 1e3], np.linspace(-6, 6, grid)])
    where, y0 = coding.locations[0], coding.response_location
    eta = np.clip(point.theta[0] + point.theta[1] * (x - where.centre) / where.scale, *point.score.limits)
    if model in ("huber", "squared", "tukey"):
        z = np.concatenate([[-1e4, 1e4], peaks(point.score), -peaks(point.score)])
        y = y0.centre + y0.scale * (eta[:, None] + point.score.scale * z)
    elif model == "binomial":
        y = np.broadcast_to([0.0, 1.0], (len(x), 2))
    else:
        y = np.broadcast_to([0.0, 1.0, 5.0, 1000.0], (len(x), 4))
    return {"x": np.repeat(x, y.shape[1]), "y": np.ascontiguousarray(y).ravel()}


def peaks(score):
    """Residuals (k,) at which a score or its slope is largest."""
    z = np.linspace(0, 2 * score.psi.c, 4001)
    q, h = score.with_curvature(z * score.scale, np.zeros_like(z))
    return np.array([z[np.argmax(np.abs(q))], z[np.argmax(h)], z[np.argmin(h)], 0.0])


def ratios(step, records):
    """Of each part, the largest distance of two records over its sensitivity."""
    return [ratio for _, ratio in farthest_records(step, records)]


@pytest.mark.parametrize("model", ["huber", "squared", "tukey"])
@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.3, 0.8]])
def test_gradient_jacobian_and_meat_of_a_linear_model_attain_their_bounds(model, theta):
    step = last_step(plan_of(model), theta)
    gradient, jacobian, meat = ratios(step, extreme_records(step, model))
    assert ATTAINED < gradient <= 1
    assert jacobian <= 1
    assert ATTAINED < meat <= 1
    signed = step.parts[1].signed
    assert signed is (model == "tukey")
    if not signed:
        assert jacobian > ATTAINED


def test_a_signed_jacobian_needs_the_larger_bound():
    """Of the biweight −.446 ≤ ψ′ ≤ 1: two records are beyond √2 C², the bound of an unsigned sum, by less than 2 C²."""
    step = last_step(plan_of("tukey"))
    jacobian = step.parts[1]
    steps = replace(step, parts=(step.parts[0], replace(jacobian, signed=True), step.parts[2]))
    found = ratios(steps, extreme_records(step, "tukey"))[1]
    assert sqrt(1 + 0.446**2) / 2 < found + 0.15
    signs = np.sign(step.map_fn(whole(extreme_records(step, "tukey")))[1].weights)
    assert set(signs) >= {-1.0, 1.0}


def places_of(plan, model, theta):
    """The last step at θ and its extreme records."""
    step = last_step(plan, theta)
    return step, extreme_records(step, model)


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("slope", [0.0, 0.7, -2.0, 8.0])
def test_no_two_records_of_a_generalised_model_are_beyond_their_parts_bounds(model, slope):
    step, records = places_of(plan_of(model), model, [0.2, slope])
    found = ratios(step, records)
    assert max(found) <= 1
    assert found[0] > 0.45


def test_the_ball_of_a_logits_gradient_is_attained_and_smaller_than_one_about_0():
    """One direction of θ, two regressors and no intercept: all angles between a record and θ can be reached."""
    plan = logit_in_the_plane()
    for slopes in ([1.5, 0.0], [0.9, 1.2], [3.0, -2.0]):
        step = last_step(plan, slopes)
        R = sqrt(plan.sizes.radius_squared)
        assert step.parts[0].clip < 0.95 * R
        found = ratios(step, circle(step))
        assert 0.98 < found[0] <= 1
        assert step.map_fn.shift.any()


def logit_in_the_plane():
    rng = np.random.default_rng(1)
    data = {"x0": rng.normal(size=400), "x1": rng.normal(size=400)}
    data["y"] = (rng.random(400) < 0.5).astype(float)
    columns = [numeric("x0", -1e3, 1e3), numeric("x1", -1e3, 1e3)]
    return glm_planned(data, columns, "binomial", 10**14, intercept=False)


def circle(step):
    """Records at all angles and lengths about the ball's, with both responses."""
    angles, lengths = np.linspace(0, 2 * np.pi, 73), np.geomspace(0.2, 40, 60)
    R = sqrt(step.map_fn.point.radius_squared)
    u = np.array([[R * r * np.cos(a), R * r * np.sin(a)] for a in angles for r in lengths]).T
    x = np.linalg.solve(step.map_fn.point.transform, u)
    scales = step.map_fn.coding.scales
    both = np.tile(x * scales[:, None], 2)
    y = np.repeat([0.0, 1.0], x.shape[1])
    return {"x0": both[0].copy(), "x1": both[1].copy(), "y": y}


@pytest.mark.parametrize("model", ["huber", "gamma"])
def test_whitening_rows_attain_their_bound(model):
    plan = plan_of(model)
    step = next(plan.run())
    assert isinstance(step.map_fn, RowsMap)
    x = np.concatenate([np.linspace(-50, 50, 401)])
    found = ratios(step, {"x": x, "y": np.ones_like(x)})
    assert ATTAINED < found[0] <= 1


def test_the_count_of_records_in_use_attains_its_bound():
    from reticent_server.domain.design import Compare

    plan = linear_plan(table(), X, 10**14, y=WIDE_Y, where=Compare("x", ">", 0.0))
    step = next(plan.run())
    assert isinstance(step.parts[1], CountSum)
    found = ratios(step, {"x": np.array([-1.0, 1.0]), "y": np.zeros(2)})
    assert found[1] == 1


@pytest.mark.parametrize("model", ["huber", "squared", "poisson", "gamma"])
def test_the_scales_part_attains_its_bound(model):
    """Two responses: one at the predictor, one beyond the cut."""
    plan = plan_of(model)
    newton, state = newton_of(plan)
    step = newton._scale_step(state, whitening_of(newton), 0)
    assert isinstance(step.map_fn, ResidualMap)
    if model in ("huber", "squared"):
        y0 = plan.coding.response_location
        near = y0.centre + y0.scale * state.theta[0]
        responses = np.array([near, near + 1e6])
    else:
        responses = np.array([exp(state.theta[0]), 1000.0])
    where = plan.coding.locations[0]
    found = ratios(step, {"x": np.full(2, where.centre), "y": responses})
    assert isinstance(step.parts[0], CountSum | VectorSum)
    assert (ATTAINED if isinstance(step.parts[0], VectorSum) else 1) <= found[0] <= 1


@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0])
def test_the_joint_gamma_steps_scale_attains_its_bound(scale):
    """χ = ψ_k² − κ over a row whose weight is 1: at the predictor and far beyond it."""
    plan = plan_of("gamma")
    step = last_step(plan, [log(2.0), 0.0], scale)
    assert [type(part) for part in step.parts] == [VectorSum, GramSum, GramSum, VectorSum]
    x = np.repeat(plan.coding.locations[0].centre, 2)
    found = ratios(step, {"x": x, "y": np.array([2.0, 1000.0])})
    assert max(found) <= 1
    chi = step.map_fn(whole({"x": x, "y": np.array([2.0, 1000.0])}))[3][0]
    assert np.max(np.abs(chi)) > ATTAINED * step.parts[3].clip


@pytest.mark.parametrize("model", MODELS)
def test_all_clips_are_the_suprema_of_what_records_contribute(model):
    """Neither larger than need be, which would cost noise, nor smaller, which would bend the scores."""
    plan = plan_of(model)
    step, records = places_of(plan, model, [0.2, 0.0])
    R = sqrt(plan.sizes.radius_squared)
    score = step.map_fn.point.score
    shift = step.map_fn.shift
    for k, (part, values) in enumerate(zip(step.parts, step.map_fn(whole(records)), strict=True)):
        vectors = values if isinstance(values, np.ndarray) else values.vectors * values.weights
        longest = float(np.sqrt(np.sum(vectors**2, axis=0)).max())
        assert longest <= part.clip * (1 + 1e-9)
        assert longest > 0.45 * part.clip, (k, part)
    assert not shift.any() or step.parts[0].clip < R * score.bound


@pytest.mark.parametrize("model", MODELS)
def test_bounds_of_scores_are_their_suprema(model):
    plan = plan_of(model)
    score = plan.newton.family.score(plan.newton.family.start, 0)
    low, high = np.clip(score.limits, -30, 30)
    eta = np.linspace(low, high, 4001)
    ends = (-1e9, 0.0, 1.0, 1e9) if model in ("huber", "squared", "tukey") else (0.0, 1.0, 1e9)
    ends = (0.0, 1.0) if model == "binomial" else ends
    q = np.array([score.evaluate(np.full_like(eta, y), eta) for y in ends])
    if model == "tukey":
        q = score.evaluate(eta * score.scale, np.zeros_like(eta))
    assert np.abs(q).max() <= score.bound * (1 + 1e-9)
    assert np.abs(q).max() > 0.99 * score.bound
    h = np.concatenate([score.with_curvature(np.full_like(eta, y), eta)[1] for y in ends])
    assert np.abs(h).max() <= score.curvature_bound * (1 + 1e-9)
    assert score.signed or h.min() >= 0


def test_steps_of_units_with_several_rows_have_noise_for_all_of_them():
    plan = linear_plan(table(), X, 10**14, y=WIDE_Y, max_rows=3)
    step = last_step(plan)
    assert all(part.unit_rows == 3 for part in step.parts)
    assert isinstance(step, SumStep)
    assert isinstance(step.map_fn, ScoreMap)
    assert isinstance(step.map_fn.point, Point)
