# SPDX-License-Identifier: Apache-2.0
"""Answers about tables of persons: means and regressions whose standard errors are by person."""

from typing import Any

import numpy as np
import pytest
import yaml
from scipy.special import expit, ndtr
from scipy.stats import poisson

from reticent_server.catalog.schema_file import parse_schema
from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, Released, SumStep
from reticent_server.errors import ReticentError
from reticent_server.fitting.person_scores import LOST, OUTSIDE, Clusters, Lengths, chosen
from reticent_server.fitting.standard_fit import Freedom
from reticent_server.formula import mask_design
from reticent_server.kinds.crosstab.kind import Crosstab
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.mean.persons import PersonSpread, PersonSpreadMap
from reticent_server.kinds.profile.plan import plan_profile
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.registry import ROWS_ALIKE, by_name, kind_of, plan
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import noisy_sum
from support.attacks.seeded_noise import seed_noise
from support.fits.regressions import HUGE_RHO, drive, numeric, profile_of, totals
from support.installations.small import SCHEMA
from support.seeds import seeded

N, M = 3000, 6
COLUMNS = [numeric("x", -20, 20), numeric("z", -20, 20), numeric("y", -60, 60)]
TRUTH = np.array([1.0, 0.5, -0.3])


def panel(seed: Any, persons: Any = N, effect: Any = 0.6, own: Any = 0.5) -> Any:
    """Rows 1 to M a person; x and the error both have a part that is the person's."""
    rng = seeded(seed)
    absent = np.arange(M)[None, :] >= rng.integers(1, M + 1, (persons, 1))

    def part(share: Any) -> Any:
        shared, rows = rng.normal(size=(persons, 1)), rng.normal(size=(persons, M))
        return np.sqrt(share) * shared + np.sqrt(1 - share) * rows

    x, z = part(own), part(own)
    y = TRUTH[0] + TRUTH[1] * x + TRUTH[2] * z + part(effect)
    table = {k: np.where(absent, 0.0, v).ravel() for k, v in (("x", x), ("z", z), ("y", y))}
    return table, absent.ravel()


RESPONSES = {
    "binomial": Column("y", ColumnKind.BOOLEAN, 0, 1),
    "poisson": Column("y", ColumnKind.INTEGER, 0, 30),
}


def facts_of(table: Any, absent: Any, persons: Any = N, column: Any = COLUMNS[2]) -> Any:
    present, columns = {k: v[~absent] for k, v in table.items()}, [*COLUMNS[:2], column]
    schema = Schema(tuple(columns), Unit("id", M))
    return DatasetFacts("t", "t", 1, "v", persons, schema, profile_of(present, columns))


def answer(
    query: Any, table: Any, absent: Any, rho: Any, persons: Any = N, column: Any = COLUMNS[2]
) -> Any:
    facts = facts_of(table, absent, persons, column).of_places()
    plan = kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, rho))
    return drive(plan.run(), Block(0, persons * M, table, {ABSENT: absent}))


def clustered(table: Any, absent: Any) -> Any:
    """Least squares and its cluster-robust standard errors, as linearmodels' PanelOLS gives them
    (pooled).
    """
    X = np.column_stack([np.ones(len(absent)), table["x"], table["z"]]) * ~absent[:, None]
    A = np.linalg.inv(X.T @ X)
    beta = A @ X.T @ table["y"]
    s = (X * ((table["y"] - X @ beta) * ~absent)[:, None]).reshape(-1, M, 3).sum(axis=1)
    rows = X * (table["y"] - X @ beta)[:, None]
    errors = (np.sqrt(np.diag(A @ m @ A)) for m in (s.T @ s, rows.T @ rows))
    return beta, *errors


def test_without_noise_the_fit_is_least_squares_with_errors_by_person() -> None:
    table, absent = panel(1)
    result = answer(LinearRegression("y ~ x + z", loss="squared"), table, absent, HUGE_RHO).result
    beta, by_person, by_row = clustered(table, absent)
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.2 * by_person.min())
    np.testing.assert_allclose(result["standard_errors"], by_person, rtol=0.08)
    assert (by_person > 1.3 * by_row).all(), "rows taken as independent would say something else"
    assert result["clusters"] == pytest.approx(N, rel=0.01)
    assert 300 < result["effective_clusters"] < N
    freedom = result["effective_clusters"] - 1
    np.testing.assert_allclose(result["degrees_of_freedom"], freedom, rtol=0.02)
    assert result["clipped_share"] <= OUTSIDE
    assert "a person's scores are added" in result["estimand"]


@pytest.mark.slow
def test_at_a_usual_budget_most_intervals_hold_the_truth_and_are_not_wide() -> None:
    hits, widths, told = 0, [], 0
    for seed in range(20):
        table, absent = panel(seed)
        query = LinearRegression("y ~ x + z", loss="squared")
        result = answer(query, table, absent, RHO_UNITS // 10).result
        ends = np.array(result["confidence_intervals"], dtype=float)
        told += sum(result["estimable"])
        hits += int(np.sum((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)))
        widths.append(np.array(result["standard_errors"]) / clustered(table, absent)[1])
    assert told == 60
    assert hits >= 48, "of 60 intervals of 95 %: seeded, and fewer by chance once in 10^7"
    assert np.median(widths) < 1.25


def responses(table: Any, family: Any) -> Any:
    """The table with a response of the family, whose errors have the person's part of y."""
    eta = 0.3 + 0.5 * table["x"] - 0.3 * table["z"]
    u = ndtr(table["y"] - TRUTH[0] - TRUTH[1] * table["x"] - TRUTH[2] * table["z"])
    y = (u < expit(eta)) * 1.0 if family == "binomial" else poisson.ppf(u, np.exp(eta / 2))
    return table | {"y": np.minimum(y, 30.0)}


def maximum_likelihood(table: Any, absent: Any, family: Any) -> Any:
    """The fit and its standard errors by person and by row, without noise."""
    X = np.column_stack([np.ones(len(absent)), table["x"], table["z"]]) * ~absent[:, None]
    beta = np.zeros(3)
    for _ in range(12):
        mu = expit(X @ beta) if family == "binomial" else np.exp(X @ beta)
        rows = X * (table["y"] - mu)[:, None]
        J = (X * (mu * (1 - mu) if family == "binomial" else mu)[:, None]).T @ X
        beta = beta + np.linalg.solve(J, rows.sum(axis=0))
    A, sums = np.linalg.inv(J), rows.reshape(-1, M, 3).sum(axis=1)
    errors = (np.sqrt(np.diag(A @ s.T @ s @ A)) for s in (sums, rows))
    return beta, *errors


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_without_noise_a_glm_has_errors_by_person(family: Any) -> None:
    table, absent = panel(1)
    table = responses(table, family)
    query = Glm("y ~ x + z", family)
    result = answer(query, table, absent, HUGE_RHO, column=RESPONSES[family]).result
    beta, by_person, by_row = maximum_likelihood(table, absent, family)
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.8 * by_person.min())
    np.testing.assert_allclose(result["standard_errors"], by_person, rtol=0.12)
    assert (by_person > 1.13 * by_row).all(), "rows taken as independent would say something else"
    assert result["clusters"] == pytest.approx(N, rel=0.01)
    assert "a person's scores are added" in result["estimand"]


def test_quantile_regressions_have_errors_by_person() -> None:
    table, absent = panel(1)
    query = QuantileRegression("y ~ x + z", tau=0.5)
    (result,) = answer(query, table, absent, HUGE_RHO).result["fits"]
    np.testing.assert_allclose(result["coefficients"], TRUTH, atol=4 * 0.03)
    assert result["effective_clusters"] < N
    by_row = 1.25 / np.sqrt(np.count_nonzero(~absent))  # of a normal median
    assert result["standard_errors"][0] > 1.2 * by_row


INDEPENDENT = {
    "anova", "binned_residuals", "correlation", "cumulative_incidence", "describe",
    "hazard_regression", "kruskal", "ks_test", "location_scale",
    "log_rank", "mann_whitney", "proportion_test", "roc", "subsample_aggregate", "survival_curve",
    "synthetic", "t_test",
    "treatment_effect",
}  # fmt: skip
"""Kinds whose standard errors take records as independent; means by group do, too."""


DECLINED = (
    "protected unit",
    "Where a person has several rows, by is not for this regression",
    "is for tables with one row a person",
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [k for k in by_name().values() if k.for_analysts])
def test_what_takes_rows_as_independent_is_declined(kind: Any) -> None:
    """Each example of each kind: planned where a person's rows may be alike, or declined with what
    to ask instead.
    """
    persons = DatasetFacts(
        "t",
        "t",
        1,
        "v",
        N,
        Schema(parse_schema(yaml.safe_load(SCHEMA)).columns, Unit("id", M)),
        None,
    )
    offer = PrivacyCost(2 * 10**9, 10**12, RHO_UNITS // 4)
    for query in kind.examples:
        by_group = kind.name in {"mean", "study"} and query.by is not None
        if kind.name in INDEPENDENT or by_group:
            with pytest.raises(ReticentError, match=r"one row|rows|protected unit|columns|records"):
                plan(persons, query, offer)
            continue
        declined = None
        try:
            planned = plan(persons, query, offer)
        except ReticentError as error:
            declined = error.detail
        if declined is None:
            assert planned.holds_for_persons
        else:
            assert declined == ROWS_ALIKE or any(why in declined for why in DECLINED)


def test_a_crosstab_of_persons_has_no_test_of_independence() -> None:
    table, absent = panel(2, persons=100)
    table = {"a": (table["x"] > 0) * 1.0, "b": (table["z"] > 0) * 1.0}
    columns = tuple(Column(n, ColumnKind.BOOLEAN, 0, 1) for n in table)
    for unit, told in ((Unit("id", M), False), (Unit(), True)):
        facts = DatasetFacts(
            "t", "t", 1, "v", 100 if unit.many_rows else 600, Schema(columns, unit), None
        )
        planned = plan(facts, Crosstab(("a", "b")), PrivacyCost(10**9, 10**12, HUGE_RHO))
        masks = {ABSENT: absent} if unit.many_rows else {}
        result = drive(planned.run(), Block(0, 600, table, masks)).result
        assert (result["independence"] is not None) is told


def test_few_persons_have_no_intervals() -> None:
    table, absent = panel(2, persons=40)
    result = answer(LinearRegression("y ~ x"), table, absent, HUGE_RHO, persons=40).result
    assert result["estimable"] == [False, False]
    assert result["confidence_intervals"] == [[None, None]] * 2
    assert any("No intervals" in warning for warning in result["warnings"])
    assert not any(d["resolved"] for d in result["directions"])


def test_nor_has_a_jacobian_below_its_noise() -> None:
    table, absent = panel(2, persons=300)
    result = answer(LinearRegression("y ~ x"), table, absent, RHO_UNITS // 100, persons=300).result
    assert not any(result["estimable"])


@pytest.mark.parametrize(
    ("effective", "unsure", "clipped", "known"),
    [(60, 0.4, 0.1, True), (49, 0.4, 0.1, False), (60, 0.6, 0.1, False), (60, 0.4, 0.13, False)],
)
def test_intervals_need_persons_few_that_are_cut_and_a_jacobian_above_its_noise(
    effective: Any, unsure: Any, clipped: Any, known: Any
) -> None:
    clusters = Clusters(1.0, 100.0, effective, clipped)
    assert Freedom(clusters, 0.0, np.eye(2), unsure).verdict.intervals is known


def test_the_clip_is_the_least_edge_that_few_are_beyond() -> None:
    lengths = Lengths(2.0)
    counts = np.zeros(lengths.bins)
    counts[0], counts[10], counts[15] = 500, 97, 3
    found = chosen(lengths, Released(counts, 1e-9))
    assert found.clip == pytest.approx(lengths.edges[9])
    assert found.persons == 100
    assert found.clipped == pytest.approx(0.03)
    counts[15] = 4
    assert chosen(lengths, Released(counts, 1e-9)).clip == pytest.approx(lengths.edges[14])
    assert chosen(lengths, Released(np.zeros(lengths.bins), 5.0)).clip == lengths.edges[0]


def test_of_skewed_scores_few_are_cut_however_many_persons_there_are() -> None:
    """1 % of few persons; of many so few that what is lost is no more than the noise."""
    lengths = Lengths(2.0)
    for persons, at in ((1e4, 10), (1e6, 11)):
        counts = np.zeros(lengths.bins)
        counts[10], counts[11], counts[12], counts[13] = persons * np.array(
            [0.9805, 0.01, 0.009, 0.0005]
        )
        found = chosen(lengths, Released(counts, 1e-9), noise=LOST * 600)
        assert found.clip == pytest.approx(lengths.edges[at])
    assert Clusters(2.0, 1e4, 100, 0.03).lost == pytest.approx(LOST * 2 * 300)


def test_what_is_cut_of_skewed_scores_is_in_the_errors(monkeypatch: Any) -> None:
    """On the same draws: more than what the noise alone would say, and more where more are cut."""
    table, absent = panel(3)
    table, found = responses(table, "binomial"), []
    for lost in (0.0, 0.1):
        seed_noise(monkeypatch, "the same")
        with monkeypatch.context() as patch:
            patch.setattr(
                Clusters, "lost", property(lambda c, a=lost: a * c.clip * c.clipped * c.persons)
            )
            query = Glm("y ~ x + z", "binomial")
            given = answer(query, table, absent, RHO_UNITS // 10, column=RESPONSES["binomial"])
        found.append(given.result)
    without, result = found
    assert without["coefficients"] == result["coefficients"]
    assert result["clipped_share"] > 0.005
    more = np.array(result["privacy_standard_errors"]) / np.array(
        without["privacy_standard_errors"]
    )
    assert (more > 1.02).all()


@pytest.mark.slow
def test_noise_of_the_scale_is_in_the_errors_of_a_gamma_regression(monkeypatch: Any) -> None:
    """Its intercept moves with the scale: over 24 draws of the noise on one table by no more than
    the errors say; without the scale's noise by three times as much."""
    table, absent = panel(4, persons=2 * N)
    eta = 0.5 + 0.25 * table["x"] - 0.15 * table["z"]
    rng = seeded(6)
    y = np.clip(rng.gamma(2, np.exp(eta) / 2), 0.001, 60)
    table["y"], column = np.where(absent, 0.0, y), Column("y", ColumnKind.NUMERIC, 0.001, 60.0)
    query, found, errors = Glm("y ~ x + z", "gamma"), [], []
    seed_noise(monkeypatch, "a gamma regression's scale")
    for _ in range(24):
        given = answer(query, table, absent, RHO_UNITS // 50, 2 * N, column).result
        found.append(given["coefficients"][0])
        errors.append(given["privacy_standard_errors"][0])
    assert np.std(found) < 1.25 * np.median(errors)


def test_a_clip_that_is_chosen_anew_is_no_way_that_was_left() -> None:
    """Where noise is small the last clip's solution is as far from the early one's as the steps
    were long: not an unfinished way.
    """
    for seed in range(2):
        table, absent = panel(seed)
        table, query = responses(table, "binomial"), Glm("y ~ x + z", "binomial")
        given = answer(query, table, absent, 2 * RHO_UNITS, column=RESPONSES["binomial"])
        errors, noise = (
            np.array(given.result[k]) for k in ("standard_errors", "privacy_standard_errors")
        )
        assert (noise < 0.4 * errors).all()


def test_codes_of_lengths_are_those_of_the_edges() -> None:
    lengths = Lengths(1.0)
    edges = lengths.edges
    values = np.array([0.0, edges[0], edges[3], edges[3] * 1.0001, edges[-1] * 2, np.nan])
    assert lengths.codes(values).tolist() == [0, 1, 4, 5, lengths.bins - 1, -1]


@pytest.mark.parametrize("effect", [0.0, 0.6, 1.0])
def test_a_mean_counts_how_rows_of_a_person_agree(effect: Any) -> None:
    table, absent = panel(3, effect=effect)
    y = table["y"][~absent]
    result = answer(Mean("y"), table, absent, HUGE_RHO).result
    assert result["value"] == pytest.approx(y.mean(), abs=1e-3)
    v = np.where(absent, 0.0, table["y"] - y.mean()).reshape(-1, M).sum(axis=1)
    by_person = np.sqrt(np.sum(v**2)) / len(y)
    assert result["standard_error"] == pytest.approx(by_person, rel=0.02)


def test_persons_spread_by_as_much_as_is_billed() -> None:
    spread = PersonSpread(RHO_UNITS, M, N)
    s = 0.2
    part = spread.part(s)
    rows = PersonSpreadMap(_design(), "y", 0.0, 60.0, 0.1, M, spread.reach(s))
    step = SumStep("spread", (part,), rows)
    sums = []
    for own in ([], [6.0], [6.0] * M, [-60.0] * M, [60.0] * M, [60.0]):
        y = np.zeros(M)
        y[: len(own)] = own
        absent = np.arange(M) >= len(own)
        sums.append(totals(step, Block(0, M, {"y": y}, {ABSENT: absent}))[0])
    apart = max(float(abs(a - b)[0]) for a in sums for b in sums)
    assert apart <= noisy_sum.sensitivity(part)
    assert apart > 0.999 * noisy_sum.sensitivity(part)
    assert spread.reach(0.9) == 2 * M


def _design() -> Any:
    return mask_design(("y",), Schema(tuple(COLUMNS), Unit("id", M)))


def test_a_profile_is_of_persons_in_equal_parts_for_their_rows() -> None:
    table, absent = panel(4)
    columns = (*COLUMNS, numeric("k", 0, 3))
    table["k"] = np.where(absent, 0.0, np.arange(len(absent)) % 3 + 1.0)
    whole = tuple(
        Column(c.name, ColumnKind.INTEGER, c.lower, c.upper) if c.name == "k" else c
        for c in columns
    )
    facts = DatasetFacts("t", "t", 1, "v", N, Schema(whole, Unit("id", M))).of_places()
    plan = plan_profile(facts, HUGE_RHO)
    found = drive(plan.run(), Block(0, N * M, table, {ABSENT: absent})).result["columns"]
    assert found["k"]["counts"][0] == pytest.approx(0, abs=0.5)
    used = ~absent.reshape(N, M)
    weights = used / np.maximum(used.sum(axis=1, keepdims=True), 1)
    shares = [float(np.sum(weights[(table["k"].reshape(N, M) == k) & used])) for k in range(4)]
    np.testing.assert_allclose(found["k"]["counts"], shares, atol=0.5)
    assert sum(shares) == pytest.approx(np.count_nonzero(used.any(axis=1)))
    y, w = table["y"][used.ravel()], weights[used]
    order = np.argsort(y)
    middle = y[order][np.searchsorted(np.cumsum(w[order]), w.sum() / 2)]
    at = found["y"]["probabilities"].index(0.5)
    assert found["y"]["quantiles"][at] == pytest.approx(middle, abs=0.05)
