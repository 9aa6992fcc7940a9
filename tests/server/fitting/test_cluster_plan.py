# SPDX-License-Identifier: Apache-2.0
"""Errors by cluster: those of the textbook where there is little noise, never those of rows where
noise is large, and no interval where neither is known.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t as student

from reticent_server.domain.steps import Released
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.cluster_scores import LevelClusters, between
from reticent_server.kinds import registry
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import registry as mechanisms
from support.fits.clusters import G, asked, clustered_facts, clustered_table, cr1
from support.fits.regressions import Trace
from support.kinds.named_tests import offer, people_facts

N = 20_000
OLS = LinearRegression("y ~ x + z", loss="squared", cluster="g")
LOGIT = Glm("b ~ x + z", "binomial", target="likelihood", cluster="g")


def design(table: dict[str, Any]) -> Any:
    return np.column_stack([np.ones(len(table["x"])), table["x"], table["z"]])


def ols_errors(table: dict[str, Any], weights: Any) -> Any:
    X = design(table)
    beta = np.linalg.solve((X.T * weights) @ X, (X.T * weights) @ table["y"])
    return cr1(X, weights, weights * (table["y"] - X @ beta), table["g"])


def binomial_errors(table: dict[str, Any], link: Any) -> Any:
    families = sm.families
    chosen = families.links.Probit() if link == "probit" else families.links.Logit()
    model = sm.GLM(table["b"], design(table), families.Binomial(chosen))
    groups = {"groups": table["g"].astype(int)}
    return model.fit(cov_type="cluster", cov_kwds=groups).bse


def sampling(trace: Trace) -> Any:
    """The part of the standard errors that is sampling."""
    se, noise = (trace.result[k] for k in ("standard_errors", "privacy_standard_errors"))
    return np.sqrt(np.array(se) ** 2 - np.array(noise) ** 2)


def test_what_is_released_is_what_is_charged() -> None:
    table = clustered_table(N, 0.05, 1)
    for query in (OLS, LOGIT):
        plan, trace = asked(query, 1.0, table)
        assert sum(map(mechanisms.rho, trace.steps)) == plan.rho <= offer(1.0).rho
        assert plan.rho > 0.999 * offer(1.0).rho
        assert len(trace.steps) == plan.passes
        assert any("Errors by g" in note for note in plan.forecast["notes"])


@pytest.mark.parametrize("loss", ["squared", "huber", "tukey"])
def test_a_linear_model_has_the_textbooks_errors(loss: Any) -> None:
    table = clustered_table(N, 0.05, 2)
    _, trace = asked(LinearRegression("y ~ x + z", loss=loss, cluster="g"), 30.0, table)
    exact = ols_errors(table, np.ones(N))
    assert sampling(trace)[:2] == pytest.approx(exact[:2], rel=0.1)
    assert trace.result["cluster"] == "g"
    assert trace.result["clusters"] == G
    assert 35 < trace.result["effective_clusters"] <= G
    assert trace.result["design_effects"][0] > 15
    assert trace.result["design_effects"][2] < 1.6


def test_a_weighted_one_has_them() -> None:
    table = clustered_table(N, 0.05, 3)
    query = LinearRegression("y ~ x + z", loss="squared", weights="w", cluster="g")
    _, trace = asked(query, 30.0, table)
    assert sampling(trace)[:2] == pytest.approx(ols_errors(table, table["w"])[:2], rel=0.12)


@pytest.mark.parametrize("link", [None, "probit"])
def test_a_binomial_one_has_them(link: Any) -> None:
    table = clustered_table(N, 0.05, 4)
    query = Glm("b ~ x + z", "binomial", link=link, target="likelihood", cluster="g")
    _, trace = asked(query, 30.0, table)
    assert sampling(trace)[:2] == pytest.approx(binomial_errors(table, link)[:2], rel=0.12)


def test_skewed_residuals_do_not_look_like_clusters() -> None:
    """Their cut leaves a mean that goes with x, which clusters share; the shift takes it off."""
    table = clustered_table(N, 0.0, 5, skewed=True)
    _, trace = asked(OLS, 30.0, table, skewed=True)
    assert max(trace.result["design_effects"]) < 2.0


def test_errors_are_never_below_those_by_row_and_noise_makes_them_larger() -> None:
    table = clustered_table(N, 0.0, 6)
    _, trace = asked(OLS, 2.0, table)
    rows = np.sqrt([1 / N, 1 / N, 1 / N])
    assert (sampling(trace) > 1.1 * rows).all()
    assert (np.array(trace.result["design_effects"]) >= 1).all()


def test_noise_is_taken_off_on_average() -> None:
    """What clusters add, over 400 draws of the noise of sums that is twice as long as they are."""
    rng, n, noise = np.random.default_rng(12), 4000.0, 100.0
    sums = rng.normal(scale=50.0, size=(2, G))
    sums -= sums.mean(axis=1, keepdims=True)
    squares, numbers = Released(n * np.eye(2), 1.0), Released(np.full(G, n / G), 1.0)
    fit, clusters = SimpleNamespace(curvature=np.eye(2)), LevelClusters("g", tuple(range(G)))
    found = []
    for _ in range(400):
        stacked = (sums + noise * rng.normal(size=(2, G))).ravel()
        parts = (Released(stacked, noise), squares, numbers)
        found.append(between(fit, np.eye(2), parts, clusters, n).added * n**2)  # type: ignore[arg-type]
    exact = G / (G - 1) * sums @ sums.T - n * np.eye(2)
    assert np.mean(found, axis=0) == pytest.approx(exact, abs=0.12 * G * noise**2 / 2)


@pytest.mark.audit
def test_intervals_hold() -> None:
    """Of 120 at .95 at least 103 do: fewer by chance once in 10⁴, had the seeds been others."""
    plan = registry.plan(clustered_facts(N), OLS, offer(2.0))
    assert plan.rho > 0
    hits = 0
    for seed in range(40):
        _, trace = asked(OLS, 2.0, clustered_table(N, 0.05, 100 + seed))
        ends = trace.result["confidence_intervals"]
        hits += sum(low is not None and low <= 1 <= high for low, high in ends)
    assert hits >= 103


def test_intervals_are_of_t_laws_of_the_clusters() -> None:
    _, trace = asked(OLS, 30.0, clustered_table(N, 0.1, 7))
    result = trace.result
    low, high = result["confidence_intervals"][0]
    df = result["degrees_of_freedom"][0]
    assert df == pytest.approx(result["effective_clusters"] - 1, rel=0.02)
    assert (high - low) / 2 == pytest.approx(
        student.ppf(0.975, df) * result["standard_errors"][0], rel=1e-9
    )


def test_levels_without_records_are_no_clusters_and_few_give_no_intervals() -> None:
    table = clustered_table(N, 0.05, 8)
    table["g"] = table["g"] % 30
    assert asked(OLS, 30.0, table)[1].result["clusters"] == 30
    table["g"] = table["g"] % 8
    result = asked(OLS, 30.0, table)[1].result
    assert not any(result["estimable"])
    assert any("fewer than 10 clusters" in said for said in result["warnings"])


def test_one_large_cluster_among_small_ones_is_worth_few() -> None:
    table = clustered_table(N, 0.05, 9)
    table["g"] = np.where(np.arange(N) % 2 == 0, 0.0, table["g"])
    result = asked(OLS, 30.0, table)[1].result
    assert result["effective_clusters"] < 6
    assert max(result["degrees_of_freedom"][:2]) < 6


def test_where_noise_hides_the_clusters_no_interval_is_given() -> None:
    plan, trace = asked(OLS, 0.25, clustered_table(N // 2, 0.0, 10))
    assert not any(trace.result["estimable"])
    assert any("multiply by" in note for note in plan.forecast["notes"])


def test_a_variance_that_noise_hides_gives_no_interval() -> None:
    plan, trace = asked(OLS, 30.0, clustered_table(N, 0.05, 8))
    assert all(trace.result["estimable"])
    judged = plan._judged(dict(trace.result), np.array([1.0, 21.0, 1.0]))
    assert judged["estimable"] == [True, False, True]
    assert any(said.startswith("Noise hides") and " x:" in said for said in judged["warnings"])


def test_records_without_a_cluster_are_out_of_use() -> None:
    table = clustered_table(N, 0.05, 11)
    lost = np.arange(N) % 4 == 0
    wild = table | {"g": np.where(lost, -1.0, table["g"]), "y": np.where(lost, 9.0, table["y"])}
    kept = {name: values[~lost] for name, values in table.items()}
    _, trace = asked(OLS, 30.0, wild, missing=True)
    assert trace.result["coefficients"] == pytest.approx([1, 1, 1], abs=0.2)
    assert trace.result["records_in_use"] == pytest.approx(N * 0.75, rel=0.01)
    exact = ols_errors(kept, np.ones(len(kept["y"])))
    assert sampling(trace)[:2] == pytest.approx(exact[:2], rel=0.12)


def test_clusters_are_those_of_the_records_in_use() -> None:
    table = clustered_table(N, 0.05, 12)
    table["x"] = np.where(table["g"] >= 30, -4.5, table["x"])
    query = LinearRegression("y ~ x", where="x > -4", loss="squared", cluster="g")
    assert asked(query, 30.0, table)[1].result["clusters"] == 30


REFUSED: list[tuple[Any, str]] = [
    (LinearRegression("y ~ x", cluster="h"), "10 to 512 declared levels"),
    (LinearRegression("y ~ x", cluster="z"), "categorical"),
    (LinearRegression("y ~ x", cluster="q"), "q"),
    (LinearRegression("y ~ x", cluster="g", by="h"), "without by"),
    (LinearRegression("y ~ x", cluster="g", ridge=1.0), "ridge"),
    (LinearRegression("y ~ x", cluster="g", fit_statistics=True), "fit_statistics"),
    (LinearRegression("y ~ x", cluster="g", mechanism="gradient_descent"), "newton"),
    (Glm("b ~ x", "binomial", cluster="g", mechanism="influence"), "newton"),
    (Glm("b ~ x", "poisson", cluster="g"), "binomial"),
    (Glm("y ~ x", "gaussian", cluster="g"), "linear_regression"),
    (Glm("g ~ x", "multinomial", cluster="g"), "binomial"),
]


@pytest.mark.parametrize(("query", "said"), REFUSED)
def test_what_is_not_answered_says_what_to_ask(query: Any, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        registry.plan(clustered_facts(N), query, offer(1.0))


def test_several_rows_a_person_are_by_person_already() -> None:
    with pytest.raises(InvalidQuery, match="by person already"):
        registry.plan(people_facts(2000, 3), LinearRegression("y ~ x", cluster="k"), offer(1.0))
