# SPDX-License-Identifier: Apache-2.0
"""Levels of Wald, score and likelihood-ratio-type tests, and coverage, over replications of the
mechanism.

Three terms of unit variance with AR(.5) correlation; the last two slopes are 0 and are tested
together (two degrees of freedom) at 5 %. AUDIT_REPLICATIONS (200): tables of each cell; `-s`
shows the figures. Wald and LR share a fit, the score test has one of its own. *Contaminated*: 5 %
of the responses replaced by gross ones (of a binomial response: turned round); there the noise-free
robust fit is tested too (each slope, at 5 %), and where it keeps below 10 % the private tests must.
A limit is broken only beyond three standard errors of the simulation.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.hypothesis import LinearHypothesis
from reticent_server.kinds.hypothesis_test.plan import HypothesisTestPlan
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.glm import planned as glm_planned
from support.fits.linear_plans import target_of
from support.fits.regressions import drive, facts_of, numeric, plain_design, profile_of, whole
from support.kinds.results import replied
from support.seeds import seeded

REPLICATIONS = int(os.environ.get("AUDIT_REPLICATIONS", "200"))
COVERAGE, LEVEL, CONTAMINATED_LEVEL = (0.93, 0.97), (0.035, 0.065), 0.10
SHARE, DELTA = 0.05, 1e-6
COLUMNS = [numeric(f"x{j}", -10, 10) for j in range(3)]
LINEAR_Y = numeric("y", -100, 100)
TRUTH = np.array([0.5, 0.4, 0.0, 0.0])
NULL = LinearHypothesis(("x1 = 0", "x2 = 0"), ((0.0, 0, 1, 0), (0.0, 0, 0, 1)), (0.0, 0.0))
MODELS = ("linear", "binomial", "poisson", "gamma")
CLEAN = [
    *(("linear", n, epsilon) for n, epsilon in ((2_000, 4.0), (5_000, 1.0), (20_000, 0.5))),
    *((family, 5_000, 1.0) for family in MODELS[1:]),
    ("poisson", 2_000, 1.0),
    ("binomial", 20_000, 0.5),
]


def table_of(model: Any, n: int, rng: np.random.Generator, contaminated: bool = False) -> Any:
    correlation = 0.5 ** np.abs(np.subtract.outer(range(3), range(3)))
    X = rng.normal(size=(n, 3)) @ np.linalg.cholesky(correlation).T
    eta = TRUTH[0] + X @ TRUTH[1:]
    y = {
        "linear": lambda: eta + 0.5 * rng.normal(size=n),
        "binomial": lambda: (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(2.0, 0.5 * np.exp(eta)),
    }[model]()
    if contaminated:
        bad = slice(0, round(SHARE * n))
        gross = {"linear": 20.0, "poisson": 30.0, "gamma": 30.0}
        y[bad] = 1 - y[bad] if model == "binomial" else gross[model]
    return {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(3)} | {"y": y}


def plan_of(model: Any, table: Any, epsilon: Any) -> Any:
    rho = rho_units(epsilon, DELTA)
    if model != "linear":
        return glm_planned(table, COLUMNS, model, rho)
    facts = facts_of(len(table["y"]), [*COLUMNS, LINEAR_Y], profile_of(table, [*COLUMNS, LINEAR_Y]))
    design = plain_design(COLUMNS, LINEAR_Y)
    return plan_linear_regression(facts, design, LinearRegression("y ~ x"), rho)


@dataclass
class Cell:
    """ratio: forecast privacy over sampling standard error. covered (k, 4) with NaN where there is
    no interval; p (tests, k), NaN where there is no p-value; robust (k, 2): whether a slope is
    rejected.
    """

    ratio: float
    covered: np.ndarray
    p: dict[str, np.ndarray]
    robust: np.ndarray

    @property
    def coverage(self) -> float:
        return float(np.nanmean(self.covered))

    @property
    def levels(self) -> dict[Any, Any]:
        return {name: float(np.mean(p[~np.isnan(p)] < 0.05)) for name, p in self.p.items()}


def replicate(model: Any, n: int, epsilon: Any, contaminated: bool = False) -> Cell:
    rng = seeded((7000, MODELS.index(model), n, contaminated))
    covered, p, robust, ratio = [], {"wald": [], "lr": [], "score": []}, [], 0.0
    for _ in range(REPLICATIONS):
        table = table_of(model, n, rng, contaminated)
        plan = plan_of(model, table, epsilon)
        ratio = plan.forecast_fit.worst
        both = drive(HypothesisTestPlan(plan, "wald", NULL).run(), whole(table))
        covered.append(intervals_cover(both.result["fit"]))
        p["wald"].append(both.result["p_value"])
        p["lr"].append(replayed(HypothesisTestPlan(plan, "lr", NULL), both.released))
        score = drive(HypothesisTestPlan(plan, "score", NULL).run(), whole(table))
        p["score"].append(score.result["p_value"])
        if contaminated:
            robust.append(robust_rejects(model, plan, table))
    values = {name: np.array(found, dtype=float) for name, found in p.items()}
    return Cell(ratio, np.array(covered), values, np.array(robust))


def replayed(plan: Any, released: Any) -> Any:
    """The p-value of another test of the same releases."""
    recipe = plan.run()
    next(recipe)
    try:
        for values in released:
            recipe.send(values)
    except StopIteration as stop:
        return replied(stop.value)["p_value"]
    raise AssertionError("the releases were not all")


def intervals_cover(fit: Any) -> Any:
    low, high = np.array(fit["confidence_intervals"], dtype=float).T
    inside = ((low <= TRUTH) & (high >= TRUTH)).astype(float)
    return np.where(fit["estimable"], inside, np.nan)


def robust_rejects(model: Any, plan: Any, table: Any) -> Any:
    """The noise-free robust z-tests of the two slopes."""
    fit = target_of(plan, whole(table))
    return np.abs(fit.coefficients[2:] / fit.standard_errors[2:]) > 1.959964


def shown(name: Any, found: Any) -> None:
    levels = " ".join(f"{k} {v:.3f}" for k, v in found.levels.items())
    robust = f" robust {found.robust.mean():.3f}" if len(found.robust) else ""
    print(f"\n{name} ratio {found.ratio:.2f} coverage {found.coverage:.3f} {levels}{robust}")


@pytest.mark.audit
@pytest.mark.parametrize(("model", "n", "epsilon"), CLEAN)
def test_tests_keep_their_level_and_intervals_cover(model: str, n: int, epsilon: float) -> None:
    found = replicate(model, n, epsilon)
    shown(f"{model} n={n} eps={epsilon:g}", found)
    slack = 3 * np.sqrt(0.05 * 0.95 / REPLICATIONS)
    assert found.ratio < 3
    assert COVERAGE[0] - slack <= found.coverage <= COVERAGE[1] + slack
    for level in found.levels.values():
        assert LEVEL[0] - slack <= level <= LEVEL[1] + slack


@pytest.mark.audit
@pytest.mark.parametrize("model", MODELS)
def test_gross_responses_leave_the_level_where_the_robust_test_has_it(model: str) -> None:
    found = replicate(model, 5_000, 1.0, contaminated=True)
    shown(f"{model} contaminated", found)
    slack = 3 * np.sqrt(0.1 * 0.9 / REPLICATIONS)
    if found.robust.mean() < CONTAMINATED_LEVEL:
        assert max(found.levels.values()) < CONTAMINATED_LEVEL + slack
