# SPDX-License-Identifier: Apache-2.0
"""Random intercepts from a study's moments: restricted likelihood where there is hardly noise, and
what is said where there is no answer.
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import reticent
from reticent_server.kinds.study.kind import KIND, Study
from support.fits.panels import facts_of, panel
from support.fits.regressions import drive
from support.kinds import studies as plain
from support.seeds import seeded

VARIABLES = ("y", "mean(y)", "x0", "mean(x0)", "x1", "mean(x1)", "own")
TERMS = ("x0", "x1", "own")
FORMULA = "y ~ x0 + x1 + own"


def persons(seed: Any, size: int, m: int, **how: Any) -> Any:
    """A panel with an intercept of every person and errors of variance 1; `own` is a person's."""
    table, absent = panel(seed, size, m, levels=False, correlation=0.0, **how)
    own = seeded(77).normal(size=size).repeat(m)
    return {**table, "y": (table["y"] + 0.4 * own) * ~absent, "own": own * ~absent}, absent


def study_of(
    table: Any, absent: Any, m: int, epsilon: float, variables: Any = VARIABLES, **more: Any
) -> Any:
    query = Study(variables, **more)
    plan = KIND.plan(facts_of(table, absent, m), query, plain.offer(epsilon))
    return plain.read(query, drive(plan.run(), plain.persons_block(table, absent)).result)


@pytest.fixture(scope="module")
def balanced() -> Any:
    table, absent = persons(1, 3000, 4, balanced=True)
    return table, absent, study_of(table, absent, 4, 500.0)


def reml(table: Any, absent: Any, m: int) -> Any:
    """(coefficients, errors, var(person), var(residual)) by restricted likelihood, as lme4 has
    them: of r = τ²/σ² the least −2 log likelihood, with V⁻¹ = I − r/(1 + Tr)·J of T rows.
    """
    used = ~absent
    Z = np.column_stack([table["y"], np.ones(len(absent)), *(table[k] for k in TERMS)])
    Z *= used[:, None]
    sums, T = Z.reshape(-1, m, Z.shape[1]).sum(axis=1), used.reshape(-1, m).sum(axis=1)

    def fit(r: float) -> Any:
        G = Z.T @ Z - (sums * (r / (1 + T * r))[:, None]).T @ sums
        beta = np.linalg.solve(G[1:, 1:], G[1:, 0])
        return beta, G, float(G[0, 0] - G[1:, 0] @ beta)

    def criterion(r: float) -> float:
        _, G, rss = fit(r)
        free = used.sum() - len(G) + 1
        return float(free * np.log(rss) + np.log1p(T * r).sum() + np.linalg.slogdet(G[1:, 1:])[1])

    r = float(minimize_scalar(criterion, bounds=(1e-3, 10), method="bounded").x)
    beta, G, rss = fit(r)
    sigma2 = rss / (used.sum() - len(beta))
    return beta, np.sqrt(np.diag(np.linalg.inv(G[1:, 1:])) * sigma2), r * sigma2, sigma2


def test_of_equally_many_rows_it_is_reml_without_noise(balanced: Any) -> None:
    table, absent, study = balanced
    fit = study.mixedlm(FORMULA, constant=["own"])
    beta, errors, tau2, sigma2 = reml(table, absent, 4)
    assert fit.names == ("Intercept", "x0", "x1", "own")
    assert np.all(np.abs(fit.params - beta) < 0.3 * errors)
    np.testing.assert_allclose(fit.bse, errors, rtol=0.1)
    assert fit.components["var(person)"] == pytest.approx(tau2, rel=0.03)
    assert fit.components["var(residual)"] == pytest.approx(sigma2, rel=0.03)
    assert fit.icc == pytest.approx(tau2 / (tau2 + sigma2), abs=0.02)
    bse = fit.components_bse
    assert bse["var(residual)"] == pytest.approx((4 / 9000) ** 0.5 * sigma2, rel=0.1)
    assert bse["var(person)"] == pytest.approx((4 / 3000) ** 0.5 * (tau2 + sigma2 / 4), rel=0.1)
    assert "var(person)" in str(fit.summary())


def test_of_unequally_many_rows_it_is_near_reml_with_longer_errors() -> None:
    table, absent = persons(2, 4000, 6)
    fit = study_of(table, absent, 6, 500.0).mixedlm(FORMULA, constant=["own"])
    beta, errors, tau2, sigma2 = reml(table, absent, 6)
    assert np.all(np.abs(fit.params - beta) < errors)
    ratio = fit.bse / errors
    assert np.all((ratio > 0.95) & (ratio < 1.45)), ratio
    assert fit.components["var(residual)"] == pytest.approx(sigma2, rel=0.05)
    assert fit.components["var(person)"] == pytest.approx(tau2, rel=0.1)


@pytest.mark.slow
def test_intervals_hold_what_they_are_of_at_a_usual_budget() -> None:
    truth = {"x0": 0.5, "x1": -0.3, "own": 0.4}
    held = []
    for seed in range(6):
        table, absent = persons([seed, 3], 20_000, 4)
        fit = study_of(table, absent, 4, 2.0).mixedlm(FORMULA, constant=["own"])
        ends = dict(zip(fit.names, fit.conf_int(), strict=True))
        held += [ends[k][0] <= v <= ends[k][1] for k, v in truth.items()]
        low, high = fit.components_conf_int()["icc"]
        held.append(low <= 0.5 <= high)
        assert high - low < 0.2
    assert sum(held) >= 19, "of 24 of 95 %: seeded, and fewer by chance once in 10^3"


def test_a_term_without_differences_between_persons_has_a_slope() -> None:
    """Such as the year of a balanced panel, whose mean is everybody's."""
    table, absent = persons(6, 3000, 4, balanced=True)
    table["t"] = np.tile(np.arange(4.0), 3000)
    table["y"] = table["y"] + 0.2 * table["t"]
    study = study_of(table, absent, 4, 100.0, ("y", "mean(y)", "x0", "mean(x0)", "t", "mean(t)"))
    fit = study.mixedlm("y ~ x0 + t")
    low, high = fit.conf_int()[list(fit.names).index("t")]
    assert low < 0.2 < high < low + 0.1


def test_what_it_needs_is_said(balanced: Any) -> None:
    _, _, study = balanced
    with pytest.raises(reticent.InvalidFormula, match=r"mean\(own\)"):
        study.mixedlm(FORMULA)
    with pytest.raises(reticent.InvalidFormula, match="has an intercept"):
        study.mixedlm("y ~ 0 + x0")
    with pytest.raises(reticent.InvalidFormula, match="not constant"):
        study.mixedlm("y ~ x0", constant=["y"])


def test_noise_that_hides_the_columns_leaves_no_fit() -> None:
    table, absent = persons(4, 500, 4)
    study = study_of(table, absent, 4, 0.2)
    with pytest.raises(reticent.NotEstimable, match="persons"):
        study.mixedlm(FORMULA, constant=["own"])


def test_a_study_of_rows_or_of_deviations_has_no_random_intercept() -> None:
    table, absent = persons(5, 1500, 4)
    within = study_of(table, absent, 4, 50.0, ("y", "x0", "x1"), effects="person")
    with pytest.raises(reticent.InvalidFormula, match="without effects"):
        within.mixedlm("y ~ x0")
