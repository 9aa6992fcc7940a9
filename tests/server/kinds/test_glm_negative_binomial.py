# SPDX-License-Identifier: Apache-2.0
"""The negative binomial: truncated maximum likelihood by noisy scoring, at a public dispersion."""

from math import inf
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from benchmarks.noise_free.glm_robust import fit_glm
from benchmarks.noise_free.glm_target import noise_free_fit
from scipy import stats

from reticent_server.accounting.conversions import rho_units
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.glm.families import FAMILIES
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.numerics.families import NegativeBinomial
from support.fits.glm import glm_table, planned, slopes
from support.fits.regressions import (
    HUGE_RHO,
    boolean,
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded

NB, ALPHA = "negative_binomial", 0.5
TRUTH = np.array([0.5, 0.4, 0.4, 0.4])


def made_up(n: int, seed: int = 3) -> Any:
    return glm_table(NB, n, seeded(seed), phi=ALPHA)


def matrix(table: Any) -> Any:
    return np.column_stack([np.ones(len(table["y"])), *(table[f"x{j}"] for j in range(3))])


def test_the_solver_without_a_cut_is_maximum_likelihood() -> None:
    table = made_up(2000)
    X, y = matrix(table), table["y"]
    fit = fit_glm(X, y, NegativeBinomial(ALPHA))
    expected = sm.GLM(y, X, family=sm.families.NegativeBinomial(alpha=ALPHA)).fit(tol=1e-12)
    np.testing.assert_allclose(fit.coefficients, expected.params, rtol=1e-6)

    def loss(beta: Any) -> Any:
        chance = 1 / (1 + ALPHA * np.exp(X @ beta))
        return -np.sum(stats.nbinom.logpmf(y, 1 / ALPHA, chance))

    steps = 1e-5 * np.eye(4)
    rises = [loss(fit.coefficients + h) - loss(fit.coefficients - h) for h in steps]
    assert np.max(np.abs(rises)) / 2e-5 < 1e-3


def test_the_solver_with_a_cut_solves_the_truncated_equation() -> None:
    table, c, family = made_up(2000), 1.7, NegativeBinomial(ALPHA)
    X, y = matrix(table), table["y"]
    eta = X @ fit_glm(X, y, family, c).coefficients
    psi = np.clip(family.residual(y, eta), -c, c) - family.moments(eta, c).mean
    assert np.max(np.abs(X.T @ (psi * family.gain(eta)))) < 1e-8 * len(y)


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"tuning": 1.2}, {"intercept": False}])
def test_without_noise_it_solves_its_target(more: dict[str, Any]) -> None:
    table = made_up(4000)
    if "intercept" in more:
        table = glm_table(NB, 4000, seeded(3), phi=ALPHA, base=0.0)
    plan = planned(table, slopes(3), NB, HUGE_RHO, **more)
    result = drive(plan.run(), whole(table)).result
    target = noise_free_fit(plan, whole(table))
    gap = (np.array(result["coefficients"]) - target.coefficients) / target.standard_errors
    assert np.max(np.abs(gap)) < 0.4
    ratio = np.array(result["standard_errors"]) / target.standard_errors
    np.testing.assert_allclose(ratio, 1, atol=0.1)
    assert result["dispersion"] == pytest.approx(ALPHA)
    assert "negative_binomial" in result["estimand"]
    if "intercept" not in more:
        z = (np.array(result["coefficients"]) - TRUTH) / result["standard_errors"]
        assert np.max(np.abs(z)) < 4.5


@pytest.mark.slow
def test_outlying_counts_have_a_bounded_influence() -> None:
    table = made_up(4000)
    bent = table | {"y": table["y"].copy()}
    bent["y"][:40] = 900.0
    fits = []
    for one in (table, bent):
        plan = planned(one, slopes(3), NB, HUGE_RHO, tuning=1.345)
        fits.append(np.array(drive(plan.run(), whole(one)).result["coefficients"]))
    assert np.max(np.abs(fits[1] - fits[0])) < 0.1
    X, family = matrix(table), NegativeBinomial(ALPHA)
    likely = [fit_glm(X, t["y"], family, inf).coefficients for t in (table, bent)]
    assert np.max(np.abs(likely[1] - likely[0])) > 0.5


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", [NB, "poisson", "gamma", "binomial"])
def test_only_planned_constants_depend_on_the_number_of_records(family: str) -> None:
    """By default the tuning constant and the radius are the family's, whatever n, ε and the profile
    are.
    """
    chosen, fixed = [], set()
    top = 1.0 if family == "binomial" else 1000.0
    for n in (2_000, 20_000, 10**6, 10**8):
        table = made_up(500)
        table["y"] = np.minimum(table["y"], top)
        y = boolean("y") if family == "binomial" else numeric("y", 0.0, top)
        facts = facts_of(n, [*slopes(3), y], profile_of(table, [*slopes(3), y]))
        design, dispersion = plain_design(slopes(3), y), ALPHA if family == NB else None
        for tuning in (None, "planned"):
            asked = Glm("y ~ x", family, tuning=tuning, dispersion=dispersion)
            plan = plan_glm(facts, design, asked, rho_units(1.0, 1e-6))
            assert (
                0 <= rho_units(1.0, 1e-6) - plan.rho <= 100
            )  # what joint prices leave of whole units
            if tuning is None:
                fixed.add((plan.model.c, plan.model.radius))
            else:
                chosen.append((plan.model.c, plan.model.radius))
    law = FAMILIES[family]
    assert fixed == {(law.tuning, law.radius)}
    assert chosen[0] <= chosen[-1]
    assert chosen[0] != chosen[-1]
    assert {c for c, _ in chosen} <= set(law.menu)


def test_a_dispersion_belongs_to_this_family() -> None:
    table = made_up(500)
    columns = [*slopes(3), numeric("y", 0.0, 1000.0)]
    facts = facts_of(500, columns, profile_of(table, columns))
    design = plain_design(columns[:-1], columns[-1])
    for asked in (Glm("y ~ x", NB), Glm("y ~ x", "poisson", dispersion=0.5)):
        with pytest.raises(InvalidQuery):
            plan_glm(facts, design, asked, 10**10)
