# SPDX-License-Identifier: Apache-2.0
"""Attacks on every released part of a fit: a search over records for two that are as far apart as
may be.

A part's noise is made for the distance Δ of two contributions within its clip. The search is over
records at all angles and lengths of the plane of two regressors, with responses from the predictor
to far beyond the cut, at points θ from flat to steep. No pair may be farther apart than Δ; where a
model can reach Δ, one must come within 1 % of it, and where it cannot, a record must come within 1
% of the clip. The pair that is found is then added up in integers, as the engine does.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.design import Compare
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import CountSum, GramSum, VectorSum, multiplied
from reticent_server.fitting.maps import ResidualMap, RowsMap
from reticent_server.fitting.person_scores import Clusters
from reticent_server.fitting.whitening import unwhitened
from reticent_server.kinds.glm.families import FAMILIES
from support.attacks.privacy_losses import farthest_records
from support.fits.glm import planned as glm_planned
from support.fits.linear_plans import linear_plan
from support.fits.regressions import numeric, whole
from support.seeds import seeded

LINEAR = ("huber", "squared", "tukey")
MODELS = (*LINEAR, *FAMILIES)
COLUMNS = [numeric("x0", -1e3, 1e3), numeric("x1", -1e3, 1e3)]
Y = Column("y", ColumnKind.NUMERIC, -1e9, 1e9)
RHO = 10**14
ATTAINED = 0.99
CLIP = 3.0  # of a person's sum of scores
SLOPES = ((0.0, 0.0), (0.8, 0.5), (-3.0, 2.0), (40.0, 0.0))


def plan_of(model: Any, **more: Any) -> Any:
    rng = seeded(0)
    table = {"x0": rng.normal(size=400), "x1": rng.normal(size=400)}
    table["y"] = rng.exponential(size=400) + 0.2
    if model == "binomial":
        table["y"] = (table["y"] > 1).astype(float)
    more = {"intercept": False, **more}
    if model in FAMILIES:
        return glm_planned(table, COLUMNS, model, RHO, **more)
    return linear_plan(table, COLUMNS, RHO, y=Y, loss=model, **more)


def place_at(plan: Any, slopes: Any, t: int, scale: Any = None) -> tuple[Any, Any]:
    """(fit, its step t) at coefficients of the whitened regressors."""
    newton = plan.newton
    whitening = unwhitened(newton.coordinates, newton.sizes.radius_squared)
    state = newton.started(whitening, float(newton.sizes.n), present=True)
    theta = whitening.transform.T @ np.asarray(slopes, dtype=float)
    state = replace(state, theta=theta, scale=scale or state.scale)
    return newton, newton.place(newton.public_model(whitening), state, t)


def last_step(plan: Any, slopes: Any, scale: Any = None) -> Any:
    """The last step; of persons, with the clip that a histogram without noise chooses."""
    newton, place = place_at(plan, slopes, plan.budget.steps - 1, scale)
    contributions = newton.contributions
    if plan.sizes.person_rows > 1:
        contributions = replace(contributions, clusters=Clusters(CLIP, 100.0, 100.0, 0.0))
    return contributions.last_step(place).step


def plane(step: Any) -> Any:
    """(2, rows) x of records at all angles, with lengths about those that are clipped, in raw
    units.
    """
    point, coding = step.map_fn.point, step.map_fn.coding
    R, angles = sqrt(point.radius_squared), np.linspace(0, 2 * np.pi, 25)
    lengths = np.append([0.02, 0.3, 0.7, 1.0, 1.5], [4.0, 30.0])
    u = np.array([[R * r * np.cos(a), R * r * np.sin(a)] for a in angles for r in lengths]).T
    if point.score.varies:  # of v = mu, lengths of R at predictors of all sizes
        u = np.hstack([u, across(point)])
    x = np.linalg.solve(point.transform, u)
    return np.clip(x * coding.scales[:, None], -1e3, 1e3)


def across(point: Any) -> Any:
    """(2, rows) u with ‖v‖ = R, at predictors between the limits."""
    direction = np.linalg.solve(point.transform.T, point.theta)
    size = float(np.linalg.norm(direction))
    if not size:
        return np.zeros((2, 0))
    along = direction / size
    eta = np.linspace(*np.clip(point.score.limits, -8, 8), 51)
    m = point.score.leverage(eta)
    rest = np.sqrt(np.maximum(point.radius_squared / m**2 - (eta / size) ** 2, 0))
    other = np.array([-along[1], along[0]])
    return np.hstack([np.outer(along, eta / size) + s * np.outer(other, rest) for s in (-1, 1)])


def records(step: Any) -> dict[Any, Any]:
    """Records of the plane with the responses that pull hardest."""
    point, coding = step.map_fn.point, step.map_fn.coding
    x = plane(step)
    where, score = coding.response_location, point.score
    if hasattr(score, "psi"):
        eta = point.theta @ (x / coding.scales[:, None])
        y = where.centre + where.scale * (eta[:, None] + score.scale * peaks(score))
    elif step.map_fn.coding.response.upper <= 1:
        y = np.broadcast_to([0.0, 1.0], (x.shape[1], 2))
    else:
        y = np.broadcast_to([0.0, 1.0, 1000.0], (x.shape[1], 3))
    repeated = np.repeat(x, y.shape[1], axis=1)
    return {
        "x0": repeated[0].copy(),
        "x1": repeated[1].copy(),
        "y": np.ascontiguousarray(y).ravel(),
    }


def peaks(score: Any) -> Any:
    """Residuals (k,) at which a score of either sign or its slope is largest, smallest or 0."""
    z = np.linspace(0, 2 * score.psi.c, 401)
    q, h = score.with_curvature(z * score.scale, np.zeros_like(z), np.zeros(len(z), dtype=bool))
    largest = z[np.argmax(np.abs(q))]
    return np.array([largest, -largest, z[np.argmax(h)], z[np.argmin(h)], 30 * score.psi.c])


def distances(part: Any, contribution: Any) -> Any:
    """(rows, rows) of two records' contributions to a sum, in the mechanism's norm."""
    v = np.atleast_2d(multiplied(contribution))
    inner, squares = v.T @ v, np.sum(v * v, axis=0)
    if isinstance(part, VectorSum):
        return np.sqrt(np.maximum(squares[:, None] + squares - 2 * inner, 0))
    signs = np.sign(contribution.weights) if part.signed else np.ones(v.shape[1])
    both = squares[:, None] ** 2 + squares**2 - 2 * np.outer(signs, signs) * inner**2
    return np.sqrt(np.maximum(both, 0))


def delta(part: Any) -> Any:
    """What the noise is made for, of real contributions."""
    if isinstance(part, VectorSum):
        return 2 * part.clip
    return (2 if part.signed else sqrt(2)) * part.clip**2


def attack(step: Any, table: Any) -> Any:
    """Of each part, the largest distance over Δ, and the longest contribution over the clip."""
    found = []
    every = step.map_fn(whole(table))
    for k, (part, contribution) in enumerate(zip(step.parts, every, strict=True)):
        gaps = distances(part, contribution)
        at = np.unravel_index(np.argmax(gaps), gaps.shape)
        pair = {name: values[list(at)] for name, values in table.items()}
        exact = list(farthest_records(step, pair))[k][1]
        assert exact <= 1
        assert exact == pytest.approx(min(gaps[at] / delta(part), 1), abs=2e-3)
        longest = float(np.linalg.norm(np.atleast_2d(multiplied(contribution)), axis=0).max())
        found.append((gaps[at] / delta(part), longest / part.clip))
    return np.array(found)


@pytest.mark.sample(4)
@pytest.mark.parametrize("slopes", SLOPES)
@pytest.mark.parametrize("model", MODELS)
def test_no_two_records_are_farther_apart_than_a_part_is_made_for(
    model: str, slopes: tuple[Any, ...]
) -> None:
    """Nor is a contribution longer than its clip: the primitive would cut it, and bend the fit."""
    step = last_step(plan_of(model), slopes)
    assert attack(step, records(step)).max() <= 1 + 1e-9


@pytest.mark.parametrize("model", LINEAR)
def test_parts_of_a_linear_model_attain_their_bounds(model: str) -> None:
    """Of the biweight −.446 ≤ ψ′ ≤ 1: a pair of two signs comes to (1 + .446)/2 of 2C²."""
    step = last_step(plan_of(model), (0.8, 0.5))
    gradient, jacobian, meat = attack(step, records(step))[:, 0]
    assert gradient > ATTAINED
    assert meat > ATTAINED
    assert step.parts[1].signed is (model == "tukey")
    assert jacobian > (ATTAINED if model != "tukey" else 0.72)


def test_a_signed_jacobian_is_beyond_the_bound_of_one_that_is_not() -> None:
    """The signed bound is needed: two records of one place and of both signs are beyond √2 C²."""
    step = last_step(plan_of("tukey"), (0.0, 0.0))
    part = step.parts[1]
    gaps = distances(part, step.map_fn(whole(records(step)))[1])
    assert gaps.max() > 1.02 * sqrt(2) * part.clip**2


@pytest.mark.sample(4)
@pytest.mark.parametrize("model", FAMILIES)
def test_parts_of_a_generalised_model_come_to_their_clips(model: str) -> None:
    """Somewhere between flat and steep a record's score and curvature are their bounds."""
    longest = np.zeros(3)
    for slopes in ((0.0, 0.0), (0.4, 0.3), (2.0, 1.0), (8.0, 0.0), (40.0, 0.0)):
        step = last_step(plan_of(model), slopes)
        found = attack(step, records(step))[:3, 1]
        longest = np.maximum(longest, found)
    assert longest[0] > ATTAINED
    assert longest[2] > ATTAINED
    assert longest[1] > LEAST_CURVATURE[model]


# Of the clip: √h at its largest, for the tuning constants that are the default.
LEAST_CURVATURE = {"binomial": 0.99, "poisson": 0.8, "gamma": 0.8, "negative_binomial": 0.8}


@pytest.mark.parametrize("slopes", [(1.5, 0.0), (0.9, 1.2), (3.0, -2.0)])
def test_the_ball_of_a_logits_gradient_is_attained_and_smaller_than_one_about_0(
    slopes: tuple[Any, ...],
) -> None:
    plan = plan_of("binomial")
    step = last_step(plan, slopes)
    assert step.map_fn.shift.any()
    assert step.parts[0].clip < 0.96 * sqrt(plan.sizes.radius_squared)
    apart, longest = attack(step, records(step))[0]
    assert 0.98 < longest <= 1
    assert 0.95 < apart <= 1


@pytest.mark.parametrize("model", ["huber", "gamma"])
@pytest.mark.parametrize("intercept", [True, False])
def test_whitening_rows_attain_their_bound(model: str, intercept: bool) -> None:
    step = next(plan_of(model, intercept=intercept).run())
    assert isinstance(step.map_fn, RowsMap)
    rng = seeded(1)
    x0, x1 = rng.normal(size=(2, 1500)) * np.exp(rng.normal(1, 1, 1500))
    apart, longest = attack(step, {"x0": x0, "x1": x1, "y": np.ones(1500)})[0]
    assert ATTAINED < apart <= 1
    assert ATTAINED < longest <= 1 + 1e-9


def test_the_count_of_records_in_use_attains_its_bound() -> None:
    step = next(plan_of("huber", where=Compare("x0", ">", 0.0)).run())
    assert isinstance(step.parts[1], CountSum)
    pair = {"x0": np.array([-1.0, 1.0]), "x1": np.zeros(2), "y": np.zeros(2)}
    assert list(farthest_records(step, pair))[1][1] == 1
    several = next(plan_of("huber", where=Compare("x0", ">", 0.0), max_rows=3).run())
    assert [part.unit_rows for part in several.parts] == [3, 3]


@pytest.mark.parametrize("model", ["huber", "squared", "poisson", "gamma"])
def test_the_scales_part_attains_its_bound(model: str) -> None:
    """Two responses: one at the predictor, one far beyond the cut."""
    plan = plan_of(model)
    newton, place = place_at(plan, (0.0, 0.0), 0)
    step = newton.scale.step(place)
    assert isinstance(step.map_fn, ResidualMap)
    near = 1.0 if model in FAMILIES else plan.ground.coding.response_location.centre
    pair = {"x0": np.zeros(2), "x1": np.zeros(2), "y": np.array([near, 1000.0])}
    if model == "huber":
        assert list(farthest_records(step, pair)) == [(CountSum, 1.0)]
    else:
        ((apart, longest),) = attack(step, pair)
        assert ATTAINED < apart <= 1 + 1e-9
        assert ATTAINED < longest <= 1 + 1e-9


@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0])
def test_the_joint_gamma_steps_parts_come_to_their_bounds(scale: float) -> None:
    """With an intercept the last step has χ = w(ψ_k² − κ) as well, and the meat of both."""
    plan = plan_of("gamma", intercept=True)
    step = last_step(plan, (0.0, 0.0, 0.0), scale)
    assert [type(part) for part in step.parts] == [VectorSum, GramSum, GramSum, VectorSum]
    assert step.parts[2].size == plan.sizes.size + 1
    rng = seeded(2)
    x0, x1 = rng.normal(size=(2, 200)) * np.exp(rng.normal(0.3, 1, 200))
    table = {"x0": np.tile(x0, 3), "x1": np.tile(x1, 3), "y": np.repeat([0.0, 1.0, 1000.0], 200)}
    found = attack(step, table)
    assert found.max() <= 1 + 1e-9
    assert found[3, 1] > ATTAINED
    chi = multiplied(step.map_fn(whole(table))[3])
    joint = multiplied(step.map_fn(whole(table))[2])
    np.testing.assert_array_equal(joint[-1], chi[0])


@pytest.mark.parametrize("model", MODELS)
def test_bounds_of_scores_are_their_suprema(model: str) -> None:
    score = last_step(plan_of(model), (0.0, 0.0)).map_fn.point.score
    if model in LINEAR:
        y, eta = np.linspace(-8, 8, 20_001) * score.psi.c * score.scale, np.zeros(20_001)
    else:
        most = 1.0 if model == "binomial" else 1e12
        eta = np.tile(np.linspace(*score.limits, 1001), 3)
        y = np.repeat([0.0, 0.5 * min(most, 2.0), most], 1001)
    clipped = np.arange(len(y)) % 2 == 0
    q, h = score.with_curvature(y, eta, clipped)
    assert np.abs(q).max() <= score.bound * (1 + 1e-6)
    assert np.abs(q).max() > ATTAINED * score.bound
    np.testing.assert_array_equal(score.evaluate(y, eta), q)
    assert np.abs(h).max() <= score.curvature_bound * (1 + 1e-9)
    assert score.signed is bool(h.min() < 0)


@pytest.mark.parametrize("model", MODELS)
def test_units_of_several_rows_have_noise_for_all_of_them(model: str) -> None:
    plan = plan_of(model, max_rows=3)
    newton, place = place_at(plan, (0.0, 0.0), 0)
    steps = [next(plan.run()), last_step(plan, (0.0, 0.0))]
    if newton.family.residuals is not None:
        steps.append(newton.scale.step(place))
    assert all(part.unit_rows * part.person_rows == 3 for step in steps for part in step.parts)
