# SPDX-License-Identifier: Apache-2.0
"""Early passes over a random part of the rows: which fits have one, which passes, and what comes
out.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.schema import ABSENT
from reticent_server.domain.steps import Block, Released, SumStep
from reticent_server.fitting import budget as budgets
from reticent_server.fitting.budget import BENT_JACOBIAN, WHOLE_STEPS, Signal, Sizes, plan_budget
from reticent_server.fitting.forecast import forecast_fit
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.public.coordinates import moment_spread, public_coordinates
from reticent_server.fitting.rounds import whole_of
from reticent_server.fitting.whitening import sampled, unwhitened
from reticent_server.kinds.linear_regression.kind import KIND
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.linear_plans import gaps, linear_plan, numerics, target_of
from support.fits.panels import facts_of as panel_facts
from support.fits.panels import panel, pooled
from support.fits.regressions import HUGE_RHO, boolean, drive, linear_table, whole
from support.seeds import seeded

HUBER = Signal(1.345, 0.82, scaled=True)
RHO = rho_units(4.0, 1e-6)
N = 220_000


def sizes(n: int, **more: Any) -> Sizes:
    return Sizes(5, 10.0, n, float(n), **{"spread": 1.4, **more})


def stride(n: int, rho: int = RHO, **more: Any) -> int:
    return plan_budget(sizes(n, **more), rho, HUBER, masked=False).stride


@pytest.fixture(scope="module")
def table() -> Any:
    return linear_table(N, 2, seeded(0))


@pytest.fixture(scope="module")
def plan(table: Any) -> Any:
    found = linear_plan(table, numerics(2), RHO)
    assert found.budget.stride == 4
    return found


@pytest.fixture(scope="module")
def driven(plan: Any, table: Any) -> Any:
    return drive(plan.run(), whole(table))


def test_a_part_has_fifty_thousand_records_or_there_is_none() -> None:
    assert [stride(n) for n in (199_999, 200_000, 800_000, 10**7)] == [1, 4, 16, 32]
    half = replace(sizes(10**6), expected_n=5e5)
    assert plan_budget(half, RHO, HUBER, masked=True).stride == 8


def test_units_of_several_rows_need_ten_thousand_of_them() -> None:
    assert stride(10**7, rho_units(100.0, 1e-6), unit_rows=20, person_rows=20) == 32
    assert stride(10**7, rho_units(100.0, 1e-6), unit_rows=200, person_rows=200) == 4


def test_rare_directions_need_ten_thousand_records_in_the_part() -> None:
    """A level with a share p: 1/√p relative to √(n/stride) is to be .01 at most."""
    assert stride(10**6, spread=np.sqrt(1 / 0.17)) == 16
    assert stride(10**6, spread=np.sqrt(1 / 0.05)) == 4
    assert stride(10**6, spread=np.sqrt(1 / 0.03)) == 1
    assert stride(10**6, spread=np.inf) == 1


def test_noise_that_would_show_keeps_all_rows() -> None:
    assert stride(10**6, rho_units(1.0, 1e-6)) == 16
    assert stride(10**6, rho_units(0.05, 1e-6)) == 1
    squared = Signal(4.0, 1.0, scaled=True)
    assert plan_budget(sizes(10**6), rho_units(0.6, 1e-6), squared, masked=False).stride == 1


@pytest.mark.parametrize(
    "signal", [HUBER, Signal(1.0, 0.12, scaled=False, early_jacobian=BENT_JACOBIAN, rms=0.42)]
)
def test_a_part_costs_one_hundredth_of_the_variance_at_most(signal: Signal) -> None:
    """By the recursion, over the menus of both."""
    s, rho = sizes(10**6), rho_units(1.0, 1e-6)
    part = plan_budget(s, rho, signal, masked=False)
    every = plan_budget(replace(s, spread=np.inf), rho, signal, masked=False)
    assert (part.stride, every.stride) == (16, 1)
    assert part.rho <= rho
    assert part.steps == 7
    sampling = budgets._sampling(s, signal)
    errors = [_last(b, s, rho, signal) + sampling for b in (part, every)]
    assert errors[0] <= 1.012 * errors[1]


def _last(budget: Any, s: Sizes, rho: int, signal: Signal) -> float:
    """The last e² of a budget."""
    gradients = sum(budget.gradients)
    fractions = np.array([[g / gradients] for g in budget.gradients])
    eta = budgets.noise_ratio(s, rho, signal) * np.sqrt(rho / gradients)
    nu_J = budgets._jacobian_noise(s, budget.jacobians[-1], signal)
    off = budgets.PART_OFF * (budget.stride - 1) * budgets._sampling(s, signal)
    strides = tuple(budget.stride if budget.on_part(t) else 1 for t in range(budget.steps))
    part = budgets.PartErrors(strides, off)
    found = budgets.forecast_errors(
        fractions, eta, budget.precision, nu_J, scaled=signal.scaled, part=part
    )
    return float(found[0])


def test_the_recursion_counts_a_parts_noise_and_what_it_is_off_by() -> None:
    fractions = np.full((7, 1), 1 / 7)

    def last(strides: int, off: float) -> float:
        part = budgets.PartErrors((strides,) * 6 + (1,), off)
        return float(budgets.forecast_errors(fractions, 0.05, 0.01, 0.5, scaled=True, part=part)[0])

    assert last(16, 0.0) > 1.05 * last(1, 0.0)
    assert last(1, 1.0) > 1.05 * last(1, 0.0)


@pytest.mark.slow
def test_the_last_steps_scale_and_round_go_over_all_rows(plan: Any, driven: Any) -> None:
    T = plan.budget.steps
    on_part = {step.label: step.subset is not None for step in driven.steps}
    every = {f"newton step {t}" for t in range(T - WHOLE_STEPS + 1, T + 1)}
    every |= {f"residual scale {T - 1}", f"whitening {len(plan.budget.rounds)}"}
    assert {label for label, part in on_part.items() if not part} == every
    assert plan.budget.part_passes == sum(on_part.values())
    assert plan.passes == len(driven.steps)


@pytest.mark.slow
def test_the_records_in_use_are_counted_on_all_rows(table: Any) -> None:
    plan = linear_plan(table, numerics(2), RHO, missing_columns=("x0",))
    first, second = drive(plan.run(), whole(table, {"x0": np.arange(N) % 50 == 0})).steps[:2]
    assert plan.budget.stride == 4
    assert isinstance(first, SumStep)
    assert isinstance(second, SumStep)
    assert first.subset is None
    assert second.subset is not None


def test_the_early_jacobian_is_of_the_part(plan: Any) -> None:
    jacobians = plan.budget.jacobians
    assert [rho > 0 for rho in jacobians] == [False] * 4 + [True, False, True]


def test_a_release_without_a_profile_goes_over_all_rows(table: Any) -> None:
    assert linear_plan(table, numerics(2), RHO, profile=False).budget.stride == 1


def test_a_part_has_the_noise_of_a_sum_over_all_rows(driven: Any) -> None:
    """The sensitivity of a sum does not fall with its rows."""
    assert any(step.subset is not None for step in driven.steps)
    for step, released in zip(driven.steps, driven.released, strict=True):
        expected = [planned_sd(part) for part in step.parts]
        assert [found.sd for found in released] == pytest.approx(expected, rel=1e-3)


def test_sums_of_a_part_are_made_those_of_all_records() -> None:
    part = Released(np.array([10.0, 20.0]), 3.0, rows=250)
    (found,) = whole_of((part,), 1000)
    assert found.values.tolist() == [40.0, 80.0]
    assert (found.sd, found.rows) == (12.0, None)
    (empty,) = whole_of((replace(part, rows=0),), 1000)
    assert np.isfinite(empty.values).all()
    every = replace(part, rows=None)
    assert whole_of((every,), 1000) == (every,)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_without_noise_it_comes_to_the_fit_on_all_rows(table: Any, loss: str) -> None:
    plan = linear_plan(table, numerics(2), HUGE_RHO, loss=loss)
    assert plan.budget.stride == 4
    away, ratios = gaps(drive(plan.run(), whole(table)).result, target_of(plan, whole(table)))
    assert np.abs(away).max() < 0.05
    assert ratios == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
def test_a_sorted_table_is_no_worse(table: Any) -> None:
    order = np.argsort(table["y"])
    ordered = {name: values[order] for name, values in table.items()}
    plan = linear_plan(ordered, numerics(2), HUGE_RHO)
    away, _ = gaps(drive(plan.run(), whole(ordered)).result, target_of(plan, whole(ordered)))
    assert np.abs(away).max() < 0.05


def test_the_covariance_counts_how_far_a_part_may_be_off(plan: Any) -> None:
    """At least the difference of the solutions on a part and on all rows: (stride − 1)/n of A Q
    Aᵀ.
    """
    passes, q = plan.newton.passes, plan.sizes.size
    H, Q = np.diag([0.5, 1.0, 2.0]), np.eye(q)
    found = passes.allowance(H, Q, N)
    assert found == pytest.approx(budgets.PART_OFF * 3 / N * np.diag([4.0, 1.0, 0.25]))
    assert budgets.PART_OFF >= 1
    alike = replace(passes, sizes=replace(plan.sizes, unit_rows=5)).allowance(H, Q, N)
    assert alike == pytest.approx(5 * found)


def test_a_fit_that_comes_to_all_rows_is_less_sure_of_its_place(plan: Any) -> None:
    """By as much, and no step is taken for going on with the one before."""
    newton = plan.newton
    whitening = unwhitened(plan.ground.coordinates, 12.0)
    state = replace(newton.started(whitening, float(N), present=True), way=np.ones(3))
    model, T = newton.public_model(whitening), newton.budget.steps
    assert newton.passes.arrived(newton.place(model, state, T - 3)) is state
    after = newton.passes.arrived(newton.place(model, state, T - 1))
    added = np.linalg.eigvalsh(after.covariance - state.covariance)
    assert 0.5 * budgets.PART_OFF * 3 / N < added.min() < added.max() < 5 * budgets.PART_OFF * 3 / N
    assert after.way is None


def test_a_forecast_counts_the_parts_noise(plan: Any) -> None:
    """As of a fit with as much budget whose early sums are less precise."""
    part, every, noisier = (
        forecast_fit(replace(plan, budget=replace(plan.budget, stride=s)).newton).worst
        for s in (4, 1, 256)
    )
    assert every < part < 0.1
    assert noisier > part


def test_a_whitening_knows_a_part_by_its_size() -> None:
    """A level that 1 of 100 rows have is known to 10/√rows, a normal direction to 1.4/√rows."""
    rng = seeded(5)
    rows = np.column_stack([np.ones(4096), rng.normal(size=4096), np.arange(4096) % 100 == 0])
    X = rows.astype(float)
    coordinates = public_coordinates(X)
    assert coordinates.spread == pytest.approx(10.0, rel=0.15)
    assert moment_spread(X[:, :2], 1e9)[1] == pytest.approx(np.sqrt(2), rel=0.1)
    before = unwhitened(coordinates, 12.0)
    error = sampled(replace(before, error=np.zeros(3)), 12.0, 10_000.0).error
    assert error.max() == pytest.approx(coordinates.spread / 100)
    assert error.min() == pytest.approx(0.01, abs=0.005)


def test_rare_levels_of_a_design_keep_all_rows(table: Any) -> None:
    rng = seeded(1)
    arm, y = boolean("arm"), numerics(1)
    for share, found in ((0.5, 4), (0.02, 1)):
        mixed = {**table, "arm": (rng.random(N) < share) * 1.0}
        assert linear_plan(mixed, [*y, arm], RHO).budget.stride == found


def test_expected_time_falls_with_the_stride(plan: Any) -> None:
    every = replace(plan, budget=replace(plan.budget, stride=1))
    assert plan.expected_ms(10**6) < 0.55 * every.expected_ms(10**6)
    assert plan.timing.pass_ms(10**6) == every.timing.pass_ms(10**6)


@pytest.mark.slow
def test_persons_come_whole() -> None:
    """A part of 80,000 persons of 5 rows; the fit comes to that of all of them."""
    m, persons = 5, 80_000
    data, absent = panel(1, persons, m, levels=False)
    made = KIND.plan(
        panel_facts(data, absent, m),
        LinearRegression("y ~ x0 + x1"),
        PrivacyCost(10**9, 10**3, HUGE_RHO),
    )
    assert made.budget.stride == 4
    trace = drive(made.run(), Block(0, m * persons, data, {ABSENT: absent}))
    on_part = {step.label: step.subset for step in trace.steps if step.subset is not None}
    assert {subset.unit for subset in on_part.values()} == {m}
    assert "lengths" in on_part
    target, errors = pooled(data, absent, m, ["x0", "x1"])
    away = (np.array(trace.result["coefficients"]) - target) / errors
    assert np.abs(away).max() < 0.6  # the target is least squares, the fit Huber's
    assert np.array(trace.result["standard_errors"]) == pytest.approx(errors, rel=0.1)
    assert trace.result["clusters"] == pytest.approx(persons, rel=0.02)
