# SPDX-License-Identifier: Apache-2.0
"""The planned fit by influence: replies, standard errors, refusals, and what a plan says."""

from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.huber import fit_huber
from scipy.special import expit
from scipy.stats import norm

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.design import Compare
from reticent_server.domain.steps import ColumnStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.influence.asymptotic import p_intervals
from reticent_server.kinds.glm.influence import plan_influence_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.linear_regression.influence import plan_influence_regression
from reticent_server.mechanisms import registry
from support.fits.regressions import (
    boolean,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    query,
    whole,
)
from support.kinds.recipes import answer, released
from support.seeds import seeded

N, P = 30_000, 3
X = [numeric(f"x{j}") for j in range(P)]


def offer(epsilon: float = 1.0) -> PrivacyCost:
    return PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, 10**10)


def table_of(n: int, seed: int = 0, skewed: bool = False, loss: str = "huber") -> Any:
    rng = seeded(seed)
    table = linear_table(n, P, rng)
    if skewed:
        table = {k: np.exp(0.7 * v) for k, v in table.items() if k != "y"}
        table["y"] = sum(table.values()) + rng.exponential(size=n)
    if loss == "logistic":
        eta = sum(table[f"x{j}"] for j in range(P)) / 2 - 1
        table["y"] = (rng.random(n) < expit(eta)).astype(float)
    return table


def plan_of(
    table: Any,
    loss: str = "huber",
    epsilon: float = 1.0,
    profile: bool = True,
    max_rows: int = 1,
    design: Any = None,
    **fields: Any,
) -> Any:
    y = numeric("y") if loss == "huber" else boolean("y")
    columns = [*X, y]
    public = facts_of(
        len(table["y"]), columns, profile_of(table, columns) if profile else None, max_rows
    )
    design = design or plain_design(X, y)
    if loss == "huber":
        return plan_influence_regression(public, design, query(**fields), offer(epsilon))
    asked = Glm("y ~ x", fields.pop("family", "binomial"), **fields)
    return plan_influence_glm(public, design, asked, offer(epsilon))


def replied(plan: Any, block: Any) -> Any:
    """A result: the first of some releases of which hardly any has no reply."""
    return next(filter(None, (answer(plan, block) for _ in range(6))))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("profile", [True, False])
@pytest.mark.parametrize("skewed", [True, False])
def test_a_regression_is_close_to_its_exact_fit(profile: bool, skewed: bool) -> None:
    """In units of its own standard errors, and of the privacy noise from the exact weighted fit."""
    table = table_of(N, 1, skewed)
    plan = plan_of(table, profile=profile, epsilon=2.0)
    found = replied(plan, whole(table))
    design = np.column_stack([np.ones(N), *(table[f"x{j}"] for j in range(P))])
    exact = fit_huber(design, table["y"], 1.345)
    beta, se = (np.array(found[k]) for k in ("coefficients", "standard_errors"))
    if not skewed:
        assert np.abs((beta - 1)[1:] / se[1:]).max() < 7
        assert np.abs(beta - exact.coefficients).max() < 7 * se.max()
    assert found["estimable"] == [True] * (P + 1)
    assert found["tuning"] == 1.345
    assert found["least_curvature"] in plan.part.floors
    assert np.all(np.array(found["privacy_standard_errors"]) < se)


@pytest.mark.slow
def test_a_logistic_regression_is_near_the_truth() -> None:
    table = table_of(N, 2, loss="logistic")
    found = replied(plan_of(table, "logistic", epsilon=5.0), whole(table))
    z = (np.array(found["coefficients"]) - [-1, 0.5, 0.5, 0.5]) / found["standard_errors"]
    assert np.abs(z).max() < 7
    assert found["family"] == "binomial"
    assert found["tuning"] is None


@pytest.mark.audit
def test_standard_errors_are_those_of_the_errors() -> None:
    """Many tables: the mean square of standardised errors is near 1."""
    squares = []
    for seed in range(40):
        table = table_of(N, 100 + seed)
        found = replied(plan_of(table), whole(table))
        errors = (np.array(found["coefficients"]) - [0, 1, 1, 1]) / found["standard_errors"]
        squares += list(errors**2)
    assert 0.5 < np.mean(squares) < 1.7


@pytest.mark.audit
def test_the_privacy_part_is_the_noise_that_was_drawn() -> None:
    """Releases of one table from one pilot: their spread is privacy_standard_errors."""
    table = table_of(N, 3)
    plan = plan_of(table)
    pilot = [replied(plan, whole(table)) for _ in range(8)]
    spread = np.std([p["coefficients"] for p in pilot], axis=0, ddof=1)
    stated = np.mean([p["privacy_standard_errors"] for p in pilot], axis=0)
    assert np.all(spread < 4 * stated)
    assert np.all(spread > stated / 6)


def test_nothing_but_the_pilot_and_one_whole_column_step_is_asked_and_paid() -> None:
    plan = plan_of(table_of(2000))
    assert plan.own_cost.epsilon == EPSILON_UNITS
    assert plan.own_cost.delta == DELTA_UNITS // 10**6
    assert plan.own_cost.rho_delta == plan.part.delta == plan.own_cost.delta // 2
    assert sum(plan.shares.values()) == pytest.approx(1)
    assert plan.rho <= plan.own_cost.rho
    recipe = plan.run()
    step, spent, block = next(recipe), 0, whole(table_of(2000))
    while not isinstance(step, ColumnStep):
        spent += registry.rho(step)
        step = recipe.send(released(step, block))
    assert spent == plan.pilot.rho
    with pytest.raises(StopIteration):
        recipe.send(released(step, block))


def test_few_records_have_no_reply_and_the_forecast_says_so() -> None:
    small, large = plan_of(table_of(3000)), plan_of(table_of(N), epsilon=2.0)
    assert answer(small, whole(table_of(3000))) is None
    assert not small.forecast["reply_likely"]
    assert large.forecast["reply_likely"]
    larger, smaller = (max(p.forecast["privacy_to_sampling"]) for p in (large, small))
    assert larger < smaller
    assert large.column_ms > small.column_ms


@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_degenerate_tables_have_no_reply_and_no_exception(loss: str) -> None:
    base = table_of(3000, loss=loss)
    for change in ({"x1": base["x0"]}, {"y": np.zeros(3000)}, {"x2": np.zeros(3000)}):
        table = base | change
        assert answer(plan_of(table, loss, epsilon=0.5), whole(table)) is None


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("why", ["rows", "where", "missing", "family", "tuning"])
def test_what_has_no_proof_is_refused(loss: str, why: str) -> None:
    table = table_of(2000, loss=loss)
    y = numeric("y") if loss == "huber" else boolean("y")
    designs = {
        "where": plain_design(X, y, where=Compare("x0", ">", 0.0)),
        "missing": plain_design(X, y, missing_columns=("x1",)),
    }
    fields = {"rows": {"max_rows": 2}, "family": {"family": "poisson"}, "tuning": {"tuning": 1.5}}
    if loss == "huber" and why in {"family", "tuning"}:
        assert plan_of(table, tuning=1.5).part.tuning == 1.5
        return
    with pytest.raises(InvalidQuery):
        plan_of(table, loss, design=designs.get(why), **fields.get(why, {}))


@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_asymptotic_calibration_names_its_assumptions_and_hides_its_scale(loss: str) -> None:
    table = table_of(N, 4, loss=loss)
    plan = plan_of(table, loss, epsilon=5.0, calibration="asymptotic")
    found = answer(plan, whole(table))
    truth = [0, 1, 1, 1] if loss == "huber" else [-1, 0.5, 0.5, 0.5]
    z = (np.array(found["coefficients"]) - truth) / found["standard_errors"]
    assert np.abs(z).max() < 8
    assert found["calibration"] == "asymptotic"
    assert all(0 < p < 1 for p in found["noisy_p_values"])
    again = p_intervals(found["coefficients"], found["noisy_p_values"], plan.pilot.level)
    assert found["noisy_p_intervals"] == [list(pair) for pair in again]
    assert len(plan.assumptions) >= 3
    assert plan.own_cost.epsilon <= offer(5.0).epsilon
    assert plan.own_cost.delta <= offer(5.0).delta
    assert plan.own_cost.rho > plan.pilot.rho
    assert any("not shown" in warning for warning in found["warnings"])


def test_intervals_of_p_values_are_those_of_the_standard_errors_that_gave_them() -> None:
    beta, se = np.array([2.0, -0.3, 0.01]), np.array([0.5, 0.3, 0.2])
    p = 2 * norm.sf(np.abs(beta) / se)
    expected = np.column_stack([beta - 1.959964 * se, beta + 1.959964 * se])
    np.testing.assert_allclose(p_intervals(beta, p, 0.95), expected, rtol=1e-6)
    ends = np.array(p_intervals([1.0, 1.0, 0.0], [0.0, 1.0, 0.5], 0.95))
    assert np.all(np.isfinite(ends))
    assert ends[0, 0] > 0 > ends[1, 0]
    assert ends[2].tolist() == [0, 0]


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_asymptotic_calibration_refuses_too_few_records(loss: str) -> None:
    with pytest.raises(InvalidQuery, match="more records"):
        plan_of(table_of(1000, loss=loss), loss, calibration="asymptotic")
