# SPDX-License-Identifier: Apache-2.0
"""The negative binomial with its dispersion estimated: its score, its estimate beside maximum
likelihood, its interval, and refusals.
"""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from reticent._text import number
from reticent.results.coefficient_table import _model_facts
from reticent.results.regression import RegressionResults
from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.glm.dispersion_score import DispersionScore, planned_cut, score
from reticent_server.kinds.glm.estimated_dispersion import Dispersion
from reticent_server.kinds.glm.kind import KIND
from reticent_server.kinds.glm.query import Glm
from support.fits.dispersion import NB, TRUTH, estimated, made_up
from support.fits.regressions import HUGE_RHO, drive, facts_of, numeric, whole
from support.seeds import seeded

ALPHA, RHO = 0.5, int(0.02436 * RHO_UNITS)


def answered(plan: Any, table: Any) -> Any:
    return drive(plan.run(), whole(table)).result


def law(alpha: float, eta: float) -> Any:
    mu = np.exp(eta)
    y = np.arange(stats.nbinom.ppf(1 - 1e-13, 1 / alpha, 1 / (1 + alpha * mu)) + 2)
    return y, stats.nbinom.pmf(y, 1 / alpha, 1 / (1 + alpha * mu))


@pytest.mark.parametrize("alpha", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("eta", [-1.03, 0.77, 3.3])
def test_the_score_is_a_derivative_that_is_cut_and_centred(alpha: float, eta: float) -> None:
    y, p = law(alpha, eta)
    h, e = score(y, np.full(len(y), np.exp(eta)), alpha), 1e-5

    def log_mass(a: float) -> Any:
        return stats.nbinom.logpmf(y[:40], 1 / a, 1 / (1 + a * np.exp(eta)))

    slope = (log_mass(alpha * np.exp(e)) - log_mass(alpha * np.exp(-e))) / (2 * e)
    assert h[:40] == pytest.approx(slope, abs=1e-6)
    found = DispersionScore(alpha, planned_cut(alpha, 1.0, 1000.0), 1000.0)
    etas = np.full(len(y), eta)
    chi, S = found.value(y, etas), float(found.slope(etas[:1])[0])
    assert abs(float(p @ chi)) < 2e-5 * found.cut
    assert float(p @ (chi * h)) == pytest.approx(S, abs=2e-5 * found.cut)
    assert np.abs(found.value(np.array([0.0, 1e7]), etas[:2])).max() <= found.bound
    other, q = law(alpha * 1.02, eta)
    moved = float(q @ found.value(other, np.full(len(other), eta)))
    assert moved == pytest.approx(S * np.log(1.02), rel=0.05, abs=1e-5 * found.cut)
    assert found.expected(etas[:1], alpha * 1.02) == pytest.approx(moved, abs=2e-5 * found.cut)


@pytest.mark.slow
def test_without_noise_it_is_near_maximum_likelihood() -> None:
    table = made_up(4000)
    found = answered(estimated(table, HUGE_RHO, tuning=8.0), table)
    X = np.column_stack([np.ones(4000), *(table[f"x{j}"] for j in range(3))])
    fit = sm.NegativeBinomial(table["y"], X).fit(disp=0)
    alpha, error = float(fit.params[-1]), float(fit.bse[-1])
    assert found["dispersion"] == pytest.approx(alpha, abs=0.5 * error)
    assert found["dispersion_standard_error"] == pytest.approx(error, rel=0.12)
    assert found["dispersion_privacy_standard_error"] < 0.01 * error
    low, high = found["dispersion_interval"]
    assert low * high == pytest.approx(found["dispersion"] ** 2)
    off = (np.array(found["coefficients"]) - fit.params[:-1]) / fit.bse[:-1]
    assert np.abs(off).max() < 1


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("alpha", "n", "more"),
    [(2.0, 4000, {"where": "x0 < 1.5"}), (0.5, 5000, {"weights": "a"})],
)
def test_intervals_of_the_dispersion_hold_it(alpha: float, n: int, more: Any) -> None:
    rng, off = seeded(4), []
    for _ in range(2):
        table = made_up(n, rng, alpha)
        found = answered(estimated(table, 12 * RHO, **more), table)
        error = found["dispersion_standard_error"] / found["dispersion"]
        off.append(np.log(found["dispersion"] / alpha) / error)
        assert error < 0.2
        assert found["dispersion_privacy_standard_error"] < found["dispersion_standard_error"]
    assert np.abs(off).max() < 3.5
    assert abs(np.mean(off)) < 2
    assert abs((found["coefficients"][1] - TRUTH[1]) / found["standard_errors"][1]) < 4


@pytest.mark.slow
def test_counts_of_a_poisson_law_have_a_dispersion_without_an_interval() -> None:
    table = made_up(8000)
    rng = seeded(5)
    table["y"] = rng.poisson(np.exp(0.5 + 0.4 * table["x0"])).astype(float)
    found = answered(estimated(table, 40 * RHO), table)
    assert found["dispersion"] < 0.08
    assert "dispersion_interval" not in found
    assert any("dispersion" in said for said in found["warnings"])


def test_a_plan_says_what_the_dispersion_costs() -> None:
    plan = estimated(made_up(4000), RHO)
    assert 0.999 * RHO < plan.rho <= RHO
    assert plan.shares["dispersion"] == pytest.approx(0.1, abs=0.01)
    assert sum(plan.forecast["shares"].values()) == pytest.approx(1)
    assert plan.passes == plan.plan.passes + 1


@pytest.mark.parametrize("fields", [{"by": "g"}, {"fit_statistics": True}, {"max_rows": 3}])
def test_where_it_is_not_estimated_a_dispersion_is_asked_for(fields: Any) -> None:
    unit = fields.get("max_rows", 1)
    group = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
    facts = facts_of(1000, [numeric("x"), numeric("y", 0.0, 50.0), group], None, unit)
    query = Glm(
        **{"formula": "y ~ x", "family": NB} | {k: v for k, v in fields.items() if k != "max_rows"}
    )
    with pytest.raises(InvalidQuery):
        KIND.plan(facts, query, PrivacyCost(10**9, 10**3, RHO))


@pytest.mark.slow
def test_the_client_shows_it() -> None:
    table = made_up(4000)
    plan = estimated(table, 10 * RHO)
    result = answered(plan, table)
    document = {"query": {"kind": "glm"}, "result": result}
    fit = RegressionResults(document)
    assert fit.dispersion == result["dispersion"]
    said = " ".join(_model_facts(fit))
    assert f"Dispersion: {number(fit.dispersion)} [" in said
    given = {k: v for k, v in result.items() if not k.startswith("dispersion")}
    other = RegressionResults(document | {"result": given})
    assert "Dispersion" not in " ".join(_model_facts(other))
    assert fit.dispersion_interval == tuple(result["dispersion_interval"])
    assert np.isnan(other.dispersion)
    assert np.isnan(other.dispersion_interval).all()


def test_an_interval_of_any_width_ends_within_the_floats() -> None:
    low, high = Dispersion(1.0, 1e4, 1.0, known=True).described(0.95)["dispersion_interval"]
    assert 0 < low < 1e-40
    assert 1e40 < high < np.inf
