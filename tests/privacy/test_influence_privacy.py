# SPDX-License-Identifier: Apache-2.0
"""Fits by influence: margins and distances of neighbours, exact laws of mixed grids, the noise
drawn.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from reticent_server.domain.columns import ConvexFit
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import convex_fit, ptr
from reticent_server.numerics.convex_fit import (
    ConvexProblem,
    Curvature,
    converged,
    first_phase,
    gradient,
    records_within,
    second_moments,
    second_phase,
    solve,
)
from support.attacks.influence import Q, extreme, table, with_responses
from support.attacks.selection_laws import probabilities
from support.seeds import seeded

LOSSES = ("huber", "logistic")
FLOORS = {"huber": (0.4, 0.28, 0.2), "logistic": (0.08, 0.05, 0.03)}
RECORDS = {"huber": (90, 500), "logistic": (300, 1500)}


def part_of(loss: Any, floors: Any = None, **more: Any) -> ConvexFit:
    fields = {
        "loss": loss,
        "tuning": 2.0,
        "size": Q,
        "radius_squared": 2.5,
        "floors": floors or FLOORS[loss],
        "reach": 3.0,
        "slack": 0.2,
        "epsilon_choice": EPSILON_UNITS // 2,
        "epsilon_test": EPSILON_UNITS // 2,
        "rho_release": RHO_UNITS // 10,
        "delta": DELTA_UNITS // 1000,
    }
    return ConvexFit(**fields | more)


def replaced(rng: np.random.Generator, loss: Any, rows: Any, theta: Any) -> Any:
    """A neighbour: any record, or the one that curves most, or the one that pulls against
    `theta`.
    """
    other = rows.copy()
    scores = [rng.random(rows.shape[1]), -np.abs(rows[1]), np.abs(rows[4]), -(theta @ rows[3:])]
    other[:, int(np.argmax(scores[rng.integers(4)]))] = extreme(rng, loss)
    return other


def fitted(part: Any, rows: Any) -> tuple[Any, Any, Any]:
    """(the solver's point, margins, whether it converged)."""
    problem = convex_fit.problem_of(part, rows.shape[1])
    records = records_within(problem, rows)
    theta = solve(problem, records)
    found = convex_fit.margins(part, problem, records, theta)
    return theta, found, converged(problem, records, theta)


def attacked(part: Any, loss: Any, tables: Any, seed: int) -> tuple[Any, Any]:
    """Walks over neighbours; gives the margins seen and the largest distance over its bound."""
    rng, seen, worst = seeded(seed), set(), 0.0
    for _ in range(tables):
        n = int(rng.integers(*((2, 8) if rng.random() < 0.1 else RECORDS[loss])))
        rows = table(rng, loss, n)
        problem = convex_fit.problem_of(part, n)
        theta, found, _ = fitted(part, rows)
        for _ in range(4):
            other = replaced(rng, loss, rows, theta)
            theta_, found_, sure = fitted(part, other)
            distance = float(np.linalg.norm(theta - theta_))
            for floor, q, q_ in zip(part.floors, found, found_, strict=True):
                assert abs(q - q_) <= 1
                seen.add(q)
                if max(q, q_) >= 1:
                    bound = convex_fit.sensitivity(problem, floor)
                    assert distance <= bound
                    worst = max(worst, distance / bound)
                    assert sure
            rows, theta, found = other, theta_, found_
    return seen, worst


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tables", [60, pytest.param(1500, marks=pytest.mark.audit)])
def test_margins_have_sensitivity_one_and_neighbours_are_within_the_bound(
    loss: str, tables: int
) -> None:
    seen, worst = attacked(part_of(loss), loss, tables, 100 + tables)
    assert 0 in seen
    assert len(seen) > 12
    assert worst > (0.3 if loss == "huber" else 0.2)


def test_margins_fall_by_one_where_every_record_curves_as_much_as_one_can() -> None:
    """Records on two axes with w‖u‖² = R², of which those of one axis are taken away one by one."""
    part, n = part_of("huber", floors=(0.95,)), 300
    rows = np.zeros((Q + 3, n))
    rows[0] = 1.0
    rows[3, ::2] = rows[4, 1::2] = np.sqrt(2.5) * (1 - 1e-12)
    margins = []
    for taken in range(30):
        rows[0, 1 : 2 * taken : 2] = 0.0
        margins += fitted(part, rows)[1]
    assert set(np.diff(margins)) <= {-1, 0}
    assert margins[0] - margins[-1] == 29


def test_the_bound_is_nearly_attained_and_a_point_that_is_no_solution_has_no_margin() -> None:
    """One record of an axis pulls as hard as one can, and then the other way."""
    part, n = part_of("huber", floors=(1.2,)), 300
    rows = np.zeros((Q + 3, n))
    rows[0] = 1.0
    rows[3, ::2] = rows[4, 1::2] = np.sqrt(2.5) * (1 - 1e-12)
    rows[1, 0] = 1e6
    other = rows.copy()
    other[1, 0] = -1e6
    theta, (q,), _ = fitted(part, rows)
    theta_, (q_,), _ = fitted(part, other)
    problem = convex_fit.problem_of(part, n)
    ratio = float(np.linalg.norm(theta - theta_)) / convex_fit.sensitivity(problem, 1.2)
    assert q >= 1
    assert q_ >= 1
    assert 0.9 < ratio <= 1
    records = records_within(problem, rows)
    assert convex_fit.margins(part, problem, records, theta) == [q]
    assert convex_fit.margins(part, problem, records, theta + 0.01) == [0]


LONGEST = np.sqrt(2.5) * (1 - 1e-12)


def on_two_axes(n: int, count: Any, length: Any = LONGEST) -> Any:
    """n records without a response, `count` of them along the first coefficient, the others along
    the second.
    """
    rows = np.zeros((Q + 3, n))
    rows[0] = 1.0
    rows[3, :count] = rows[4, count:] = length
    return rows


def test_the_bound_is_attained_by_points_that_the_solver_may_return() -> None:
    """A point counts as a solution where its gradient is below 3τ/4: with such points on both sides
    of what one record moves the minimiser by, the distance is all of Δ but a hundredth, and τ's
    share is two.
    """
    n, count = 20_000, 4000
    curvature = 2.5 * count / n
    part = part_of("huber", floors=(curvature - 2.2 * 2.5 / n,))
    problem, floor = convex_fit.problem_of(part, n), part.floors[0]
    rows = on_two_axes(n, count)
    rows[1, 0] = 1e6
    other = rows.copy()
    other[1, 0] = -1e6
    points = []
    for each, sign in ((rows, 1), (other, -1)):
        records = records_within(problem, each)
        further = np.array([sign * 0.74 * problem.tolerance / curvature, 0.0])
        points.append(solve(problem, records) + further)
        assert convex_fit.margins(part, problem, records, points[-1]) == [1]
    ratio = np.linalg.norm(points[0] - points[1]) / convex_fit.sensitivity(problem, floor)
    assert 0.99 < ratio <= 1


def test_a_point_whose_gradient_is_above_the_tolerance_is_no_solution() -> None:
    """Two such points on both sides of one record's pull are farther apart than the noise is made
    for.
    """
    n, count = 20_000, 4000
    curvature = 2.5 * count / n
    part = part_of("huber", floors=(curvature - 2.2 * 2.5 / n,))
    problem = convex_fit.problem_of(part, n)
    rows = on_two_axes(n, count)
    other = rows.copy()
    rows[1, 0], other[1, 0] = 1e6, -1e6
    for share in (0.8, 1.5, 3.0):
        points = []
        for each, sign in ((rows, 1), (other, -1)):
            records = records_within(problem, each)
            further = np.array([sign * share * problem.tolerance / curvature, 0.0])
            points.append(solve(problem, records) + further)
            assert convex_fit.margins(part, problem, records, points[-1]) == [0]
    distance = np.linalg.norm(points[0] - points[1])
    assert distance > convex_fit.sensitivity(problem, part.floors[0])


def test_a_margin_ends_where_neighbours_fits_leave_the_ball() -> None:
    """‖ϑ‖ just below D − Δ: one record can take it to where there is no margin, so there is one of
    1 here, however much the records curve.
    """
    part, n = part_of("huber", floors=(0.95,)), 300
    problem = convex_fit.problem_of(part, n)
    delta, found = convex_fit.sensitivity(problem, 0.95), []
    for away in (1.2, 2.2, 3.2):
        rows = on_two_axes(n, n // 2)
        rows[1, : n // 2] = (problem.reach - away * delta) * LONGEST
        other = rows.copy()
        other[1, 0] = 1e6
        (_, (q,), _), (_, (q_,), _) = fitted(part, rows), fitted(part, other)
        assert abs(q - q_) <= 1
        found += [q, q_]
    assert found == [1, 0, 2, 1, 3, 2]


@pytest.mark.parametrize("share", [0.2, 0.95])
def test_there_is_no_margin_where_the_ball_that_the_solver_needs_does_not_curve(
    share: float,
) -> None:
    """Records leave ψ's linear part between Δ and r + Δ: within Δ there is curvature enough, but
    the solver is only proved to converge on a neighbour where the ball of radius r has it too.
    """
    part, n = part_of("huber", floors=(0.5,)), 3000
    problem = convex_fit.problem_of(part, n)
    rows = on_two_axes(n, n // 2)
    delta = convex_fit.sensitivity(problem, 0.5)
    inside = 2.0 - (3 * delta + share * problem.slack) * LONGEST
    rows[1] = np.where(np.arange(n) % 2, inside, -inside)
    records = records_within(problem, rows)
    theta = np.zeros(Q)
    assert converged(problem, records, theta)
    assert Curvature(problem, records, theta)(3 * delta) > 1
    assert convex_fit.margins(part, problem, records, theta) == [0]


@pytest.mark.parametrize("loss", LOSSES)
def test_no_point_of_the_ball_curves_less_than_is_counted(loss: str) -> None:
    """h against Hessians all over the ball; records along one axis that leave ψ's linear part just
    inside it.
    """
    part, nearest = part_of(loss, tuning=2.0), 1.0
    problem = convex_fit.problem_of(part, 60)
    for length in (0.3, 1.0, 1.5):
        for share in (0.45, 0.75, 1.05):
            rows = on_two_axes(60, 30, length)
            radius = 0.6
            if loss == "huber":
                rows[1, :30] = 2.0 - share * radius * length
            else:
                rows[2, :30] = 1.5
            records = records_within(problem, rows)
            h = Curvature(problem, records, np.zeros(Q))(radius)
            angles = np.linspace(0, 2 * np.pi, 48, endpoint=False)
            ball = np.array(
                [[0.0, 0.0], *(radius * np.column_stack([np.cos(angles), np.sin(angles)]))]
            )
            least = min(np.linalg.eigvalsh(second_moments(problem, records, p)[0])[0] for p in ball)
            assert h <= least + 1e-12
            if length >= 1:
                nearest = min(nearest, least - h)
    assert nearest < (1e-9 if loss == "huber" else 0.01)


@pytest.mark.parametrize("size", [1e-13, 1e-6, 0.1])
@pytest.mark.parametrize("shortest", [0.0, 1.0])
def test_a_record_that_counts_counts_for_neighbours_too_whatever_rounding_does(
    size: float, shortest: float
) -> None:
    """Short vectors move η by less than its rounding; the room between radii is for one of length
    1. Records are on the edge of what counts, were it for their own lengths, and for that.
    """
    rng, part, n = seeded(12), part_of("huber"), 4000
    problem = convex_fit.problem_of(part, n)
    delta = convex_fit.sensitivity(problem, part.floors[0])
    rows = np.zeros((Q + 3, n))
    rows[0] = 1.0
    rows[3:] = size * rng.normal(size=(Q, n))
    theta = rng.normal(size=Q)
    moved = theta + 0.999 * delta * np.array([0.6, -0.8])
    lengths = np.maximum(np.linalg.norm(rows[3:], axis=0), shortest)
    edge = 2.0 + theta @ rows[3:] - lengths * (problem.slack + delta)
    kept = []
    for ulps in range(-3, 4):
        rows[1] = edge + ulps * 2.0**-52
        records = records_within(problem, rows)
        here = Curvature(problem, records, theta).slopes(slice(0, n), problem.slack + delta)
        there = Curvature(problem, records, moved).slopes(slice(0, n), problem.slack)
        assert np.all(there >= here)
        kept.append(here.mean())
    if shortest:
        assert kept[0] > 0.9
        assert kept[-1] < 0.1


def test_responses_and_offsets_of_any_size_keep_the_margin_s_sensitivity() -> None:
    """Where y − η is lost in the rounding of y, a solver sees no slope where curvature is counted:
    the first coefficient then runs off as soon as one record pulls.
    """
    part, n = part_of("huber", floors=(0.6,)), 400
    for size in (0.0, 1e3, 1e17, 1e300):
        rows = on_two_axes(n, 200)
        rows[1] = rows[2] = size
        other = rows.copy()
        other[:, 0] = [1.0, 1e6, 0.0, 1.0, 0.0]
        (theta, (q,), _), (theta_, (q_,), _) = fitted(part, rows), fitted(part, other)
        assert abs(q - q_) <= 1
        assert q >= 5
        problem = convex_fit.problem_of(part, n)
        assert np.linalg.norm(theta - theta_) <= convex_fit.sensitivity(problem, 0.6)


def test_a_response_beyond_all_fits_counts_as_the_farthest_within() -> None:
    """The scores are the same at every coefficient within 2D."""
    problem = convex_fit.problem_of(part_of("huber"), 6)
    rows = np.zeros((Q + 3, 6))
    rows[0], rows[3] = 1.0, [0.1, 1.0, 5.0, 0.1, 1.0, 5.0]
    rows[1], rows[2] = [1e3, -1e9, 1e300, 3.0, -2.5, 70.0], [0, 0, -1e300, 1.0, 2.0, 0]
    records = records_within(problem, rows)
    for t in (-6.0, -1.0, 0.0, 0.3, 6.0):
        eta = records.offset + t * rows[3]
        expected = np.clip(rows[1] - (rows[2] + t * rows[3]), -2, 2)
        assert problem.loss.score(records.response, eta) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("floor", "reach"), [(0.05, 1.2), (0.01, 1.2), (0.05, 2.0)])
def test_the_first_phase_comes_near_from_the_farthest_start(floor: float, reach: float) -> None:
    """From D away, on a slope that is a line for most of the way: L − L* ≤ mr²/4 in t₁ steps, and
    not in a quarter.
    """
    part = part_of("huber", floors=(floor,), reach=reach, slack=0.4, tuning=0.65)
    problem, n = convex_fit.problem_of(part, 2000), 2000
    count = round(floor / 2.5 * n)
    rows = on_two_axes(n, count)
    rows[1, :count] = reach * LONGEST
    records = records_within(problem, rows)

    def above(steps: Any) -> Any:
        class Cut(ConvexProblem):
            steps = property(lambda _: (steps_, 0))

        steps_ = steps
        cut = Cut(*(getattr(problem, f.name) for f in fields(ConvexProblem)))
        left = np.abs(rows[1, :count] - first_phase(cut, records)[0] * LONGEST)
        loss = np.where(left <= 0.65, left**2 / 2, 0.65 * left - 0.65**2 / 2)
        return loss.sum() / n / (floor * 0.4**2 / 4)

    first, _ = problem.steps
    assert above(first) <= 1
    assert above(first // 4) > 1


@pytest.mark.parametrize(("n", "floor"), [(400, 0.3), (2000, 0.2), (20_000, 0.1)])
def test_the_second_phase_converges_from_the_farthest_point_of_the_first(
    n: int, floor: float
) -> None:
    """L − L* = mr²/4 along the axis that curves least, by just m: to τ/2 in t₂ steps, and not in .4
    of them.
    """
    part = part_of("huber", floors=(floor,), reach=0.4, slack=0.05)
    problem = convex_fit.problem_of(part, n)
    rows = on_two_axes(n, round(floor / 2.5 * n))
    records = records_within(problem, rows)
    start = np.array([problem.slack / np.sqrt(2), 0.0])
    theta = second_phase(problem, records, start)
    assert np.linalg.norm(gradient(problem, records, theta)) <= problem.tolerance / 2
    first, second = problem.steps

    class Hasty(ConvexProblem):
        steps = property(lambda _: (first, 2 * second // 5))

    hasty = Hasty(*(getattr(problem, f.name) for f in fields(ConvexProblem)))
    theta = second_phase(hasty, records, start)
    assert np.linalg.norm(gradient(problem, records, theta)) > problem.tolerance / 2


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_the_solver_converges_wherever_a_margin_is_positive(loss: str) -> None:
    """To half of τ, as proved; from the farthest start that the margin allows."""
    rng, part, checked = seeded(6), part_of(loss), 0
    for _ in range(60):
        n = RECORDS[loss][1]
        rows = table(rng, loss, n)
        shift = rng.normal(size=Q)
        rows[1 if loss == "huber" else 2] += 2 * shift @ rows[3:] / np.linalg.norm(shift)
        problem = convex_fit.problem_of(part, n)
        theta, found, _ = fitted(part, rows)
        if max(found) > 0:
            checked += 1
            size = np.linalg.norm(gradient(problem, records_within(problem, rows), theta))
            assert size <= problem.tolerance / 2
    assert checked > 10


def test_what_is_not_finite_or_too_long_is_cut_down() -> None:
    rows = table(seeded(1), "huber", 200)
    problem = convex_fit.problem_of(part_of("huber"), 200)
    rows[:, :6] = [
        [np.nan, 1e9, 1, -3, 1, 1],
        [0, 0, np.inf, 0, 0, 5],
        [0] * 6,
        [1, 1, 1, 1, 1e200, 1],
        [0, 3, 1, 1, 1e200, 9],
    ]
    records = records_within(problem, rows)
    norms = (records.vectors**2).sum(axis=0)
    assert np.all((records.weights >= 0) & (records.weights <= 1))
    assert np.all(records.weights * norms <= 2.5)
    assert np.isfinite(gradient(problem, records, np.zeros(Q))).all()


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("skewed", [False, True])
def test_no_record_has_more_influence_than_the_bound(loss: str, skewed: bool) -> None:
    """sup ‖IF‖ by a small weight on one record over a grid, against γ = K/λ_min; it is nearly
    attained.
    """
    rng, part, n, t = seeded(8), part_of(loss), 500, 1e-6
    x = rng.exponential(size=n) - 1 if skewed else rng.normal(size=n)
    rows = with_responses(rng, loss, np.vstack([np.ones(n), x]))
    if loss == "huber" and skewed:
        rows[1] = rng.exponential(size=n) ** 2
    problem = convex_fit.problem_of(replace(part, floors=(0.01,)), n)
    records = records_within(problem, rows)
    theta = solve(problem, records)
    slopes = records.weights * problem.loss.least_slope(
        records.response, records.offset + theta @ records.vectors, np.zeros(n)
    )
    M = (records.vectors * slopes) @ records.vectors.T / n
    gamma, largest = problem.score_bound / np.linalg.eigvalsh(M)[0], 0.0
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        u = np.sqrt(2.5) * np.array([np.cos(angle), np.sin(angle)])
        for y in (0.0, 1.0) if loss == "logistic" else (-50.0, 50.0):
            offset = 0.0 if loss == "huber" else (-30.0 if y else 30.0)
            more = np.append(rows, [[1.0], [y], [offset], [u[0]], [u[1]]], axis=1)
            bigger = records_within(problem, more)
            weights = np.append(records.weights * (1 - t), n * t)
            moved = solve(problem, replace(bigger, weights=weights))
            largest = max(largest, float(np.linalg.norm(moved - theta)) / t)
    assert largest <= gamma * 1.01
    assert largest > 0.7 * gamma


def chosen_and_passed(part: Any, margins: Any) -> Any:
    """P(floor j chosen and its test passed), from the scales that are used."""
    ladder = convex_fit.choice(part)
    passed = [pass_probability(part, q) for q in margins]
    return probabilities(ladder.levels(convex_fit.scores(part, margins)), ladder) * passed


def pass_probability(part: Any, q: Any) -> Any:
    p = np.exp(-1 / ptr.noise_scale(part.epsilon_test))
    short = ptr.threshold(part.epsilon_test, part.delta) - q
    return p**short / (1 + p) if short > 0 else 1 - p ** (1 - short) / (1 + p)


def gaussian_excess(p: Any, p_: Any, mu: Any, epsilon: Any) -> Any:
    """∫ (p φ(x) − e^ε p′ φ(x − μ))_+ dx."""
    if p == 0:
        return 0.0
    cut = mu / 2 - (epsilon + np.log(p_ / p)) / mu
    return p * ndtr(cut) - np.exp(epsilon) * p_ * ndtr(cut - mu)


@pytest.mark.slow
def test_good_and_bad_floors_together_cost_what_is_charged() -> None:
    """Margins of neighbours that differ by one; releases as far apart as their claim allows."""
    part = part_of("huber", floors=(0.4, 0.3, 0.2), delta=DELTA_UNITS // 100)
    cost, rng, worst = convex_fit.cost(part), seeded(1), 0.0
    epsilon, delta = cost.epsilon / EPSILON_UNITS, cost.delta / DELTA_UNITS
    assert delta == 0.02
    mu = np.sqrt(2 * part.rho_release / RHO_UNITS)
    for _ in range(300):
        margins = np.sort(rng.integers(0, 20, 3) * (rng.random(3) < 0.7))
        others = np.maximum(margins + rng.integers(-1, 2, 3), 0)
        p, p_ = (chosen_and_passed(part, m) for m in (margins, others))
        found = max(0.0, 1 - p.sum() - np.exp(epsilon) * (1 - p_.sum()))
        for a, b, q, q_ in zip(p, p_, margins, others, strict=True):
            found += a if max(q, q_) == 0 else gaussian_excess(a, b, mu, epsilon)
        worst = max(worst, found)
        assert found <= delta
    assert worst > 0.01 * delta


def test_a_margin_of_nothing_passes_as_rarely_as_is_charged() -> None:
    part = part_of("huber", delta=DELTA_UNITS // 50)
    assert pass_probability(part, 0) <= 0.02
    assert chosen_and_passed(part, [0, 0, 0]).sum() <= 0.02


@pytest.mark.slow
def test_the_noise_is_of_its_scale_and_of_no_other() -> None:
    part, n, runs = part_of("huber"), 300, 3000
    problem = convex_fit.problem_of(part, n)
    theta = np.array([0.5, -0.25])
    draws = np.array([convex_fit._noisy(part, problem, Private(theta), 0.3) for _ in range(runs)])
    sd = convex_fit.noise_sd(part, n, 0.3)
    assert sd == pytest.approx(convex_fit.sensitivity(problem, 0.3) / np.sqrt(0.2), rel=1e-5)
    z = ((draws - theta) ** 2).sum()

    def p_value(factor: Any) -> Any:
        tail = stats.chi2(2 * runs).cdf(z / (factor * sd) ** 2)
        return min(tail, 1 - tail)

    assert p_value(1.0) > 1e-7
    assert p_value(0.7) < 1e-7
    assert p_value(1.3) < 1e-7


@pytest.mark.parametrize("far", [1e3, 1e30, 1e150])
def test_a_point_beyond_the_ball_that_passes_by_chance_has_a_reply(far: float) -> None:
    """A table without a margin passes with probability δ, wherever its point is."""
    part = part_of("huber")
    problem = convex_fit.problem_of(part, 300)
    drawn = convex_fit._noisy(part, problem, Private(np.array([far, -far])), 0.3)
    end = np.array([1.0, -1.0]) * problem.reach / np.sqrt(2)
    assert np.abs(drawn - end).max() < 12 * convex_fit.noise_sd(part, 300, 0.3)


def test_the_cost_counts_choice_test_and_release() -> None:
    part = part_of("huber")
    cost = convex_fit.cost(part)
    assert cost.rho == pytest.approx((0.5**2 / 8 + 0.5**2 / 2 + 0.1) * RHO_UNITS)
    assert (cost.delta, cost.rho_delta) == (2 * part.delta, part.delta)


@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_replies_where_it_is_safe_and_is_silent_where_not(loss: str) -> None:
    rng = seeded(3)
    good = with_responses(rng, loss, np.vstack([np.ones(8000), rng.normal(size=8000)]))
    part = part_of(loss, epsilon_choice=8 * EPSILON_UNITS, epsilon_test=2 * EPSILON_UNITS)
    for _ in range(3):
        found = convex_fit.release(part, Private(good))
        assert found.passed
        assert found.values[-1] in part.floors
        assert np.abs(found.values[:-1] - fitted(part, good)[0]).max() < 8 * found.sd
    collinear = good.copy()
    collinear[4] = 1.0
    far = good.copy()
    far[1 if loss == "huber" else 2] += 1e3
    for bad in (collinear, far, np.zeros((Q + 3, 500)), good[:, :5], np.full((Q + 3, 50), np.nan)):
        assert not convex_fit.release(part, Private(bad)).passed


@pytest.mark.slow
def test_a_release_is_that_of_a_neighbour_to_within_what_is_charged() -> None:
    """The loss of the Gaussian releases of real neighbours, from the scale that is drawn."""
    rng, part = seeded(21), part_of("huber")
    worst = 0.0
    for _ in range(25):
        rows = table(rng, "huber", 300)
        theta, margins, _ = fitted(part, rows)
        other = replaced(rng, "huber", rows, theta)
        problem = convex_fit.problem_of(part, 300)
        for floor, q in zip(part.floors, margins, strict=True):
            if q:
                g = convex_fit._granule(convex_fit.sensitivity(problem, floor))
                steps = [np.rint(t / g) for t in (theta, fitted(part, other)[0])]
                distance = float(np.linalg.norm(steps[0] - steps[1]))
                loss = distance**2 / (2 * convex_fit._steps_scale(part) ** 2)
                assert loss * RHO_UNITS <= part.rho_release
                worst = max(worst, loss)
    assert worst * RHO_UNITS > 0.05 * part.rho_release
