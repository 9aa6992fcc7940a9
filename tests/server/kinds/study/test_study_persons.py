# SPDX-License-Identifier: Apache-2.0
"""Studies of tables whose unit is a person with several rows: moments, the declared formula by
person, and person effects.
"""

from typing import Any

import numpy as np
import pytest

from reticent._errors import InvalidFormula
from reticent_server.domain.steps import CountSum, Released
from reticent_server.errors import InvalidQuery, ReticentError
from reticent_server.fitting.person_scores import Clusters
from reticent_server.fitting.trust.thresholds import BARED
from reticent_server.kinds.registry import kind_of, plan
from reticent_server.kinds.study.kind import Study
from reticent_server.kinds.study.main import Formula, GroupFit
from reticent_server.kinds.study.moments import LeastSquares
from reticent_server.kinds.study.persons import design_effect, persons_meat, stretch_of
from support.fits.panels import SLOPES, facts_of, panel, pooled, within
from support.fits.regressions import drive
from support.kinds.studies import NO_NOISE, offer, persons_block, read
from support.seeds import seeded

N, M = 4_000, 5
VARIABLES, MAIN, NAMES = ("y", "x0", "x1"), "y ~ x0 + x1", ("x0", "x1")
EFFECTS = {"effects": "person"}


@pytest.fixture(scope="module")
def table() -> Any:
    return panel(3, N, M)


def answered(found: Any, query: Study, epsilon: float = NO_NOISE, m: int = M) -> Any:
    planned = kind_of(query).plan(facts_of(*found, m), query, offer(epsilon))
    return drive(planned.run(), persons_block(*found)).result


def test_moments_are_those_of_all_rows_and_counts_are_of_persons(table: Any) -> None:
    data, absent = table
    result = answered(table, Study(VARIABLES))
    Z = np.column_stack([~absent, *(data[name] for name in VARIABLES)]).astype(float)
    np.testing.assert_allclose(result["moments"], Z.T @ Z / N, rtol=3e-3, atol=3e-3)
    assert abs(result["clipped"]["share"]) < 3e-3
    assert (result["n"], result["persons"]) == (N, pytest.approx(N, rel=0.01))
    assert result["design_effect"] == M
    assert "effects" not in result


@pytest.mark.parametrize("effects", [None, "person"])
def test_the_declared_formula_is_least_squares_with_errors_by_person(
    table: Any, effects: Any
) -> None:
    main = answered(table, Study(VARIABLES, main=MAIN, effects=effects))["main"]
    beta, by_person = (within if effects else pooled)(*table, M, NAMES)
    assert main["terms"] == [*([] if effects else ["Intercept"]), *NAMES]
    away = (np.array(main["coefficients"]) - beta) / by_person
    assert np.max(np.abs(away)) < 0.25
    np.testing.assert_allclose(main["standard_errors"], by_person, rtol=0.06)
    ratio = np.array(main["classical_standard_errors"]) / by_person
    assert effects or (ratio < 0.9).any(), "rows taken as independent would say something else"
    assert main["clusters"] == pytest.approx(N, rel=0.25 if effects else 0.01)
    freedom = main["effective_clusters"] - 1
    assert 500 < freedom < N
    np.testing.assert_allclose(main["degrees_of_freedom"], freedom, rtol=0.05)
    assert 0 <= main["clipped_share"] < 0.02
    assert main["estimable"] == [True] * len(beta)


def test_deviations_have_the_scale_of_errors(table: Any) -> None:
    """Errors have the variance 1; of AR(.5) errors with a person's mean taken off about two thirds
    are left.
    """
    result = answered(table, Study(VARIABLES, main=MAIN, **EFFECTS))
    data, absent = table
    beta, _ = within(*table, M, NAMES)
    used = ~absent.reshape(-1, M)
    T = used.sum(axis=1)
    kept = used & (T >= 2)[:, None]
    e = np.where(kept, (data["y"] - beta[0] * data["x0"] - beta[1] * data["x1"]).reshape(-1, M), 0)
    e = np.where(kept, e - (e.sum(axis=1) / np.maximum(T, 1))[:, None], 0)
    rows, persons = kept.sum(), (T >= 2).sum()
    assert result["stretch"] == pytest.approx(rows / (rows - persons), rel=0.02)
    assert result["design_effect"] == pytest.approx((M - 1) * result["stretch"])
    scale = np.sqrt((e**2).sum() / (rows - persons))
    assert result["main"]["scale"] == pytest.approx(scale, rel=0.02)
    study = read(Study(VARIABLES), result)
    assert study.ols(MAIN).result["scale"] == pytest.approx(scale, rel=0.02)
    assert study.iv("y ~ x0 | x1").result["scale"] > scale


@pytest.mark.parametrize("effects", [None, "person"])
def test_other_formulas_have_errors_as_large_as_a_person_s_rows_can_make_them(
    table: Any, effects: Any
) -> None:
    result = answered(table, Study(VARIABLES, main=MAIN, effects=effects))
    study = read(Study(VARIABLES), result)
    fit = study.ols(MAIN)
    beta, by_person = (within if effects else pooled)(*table, M, NAMES)
    assert list(fit.names) == [*([] if effects else ["Intercept"]), *NAMES]
    np.testing.assert_allclose(fit.params, beta, atol=0.25 * by_person.min())
    errors = np.asarray(fit.bse)
    assert (errors > by_person).all()
    classical = np.array(result["main"]["classical_standard_errors"])
    factor = np.sqrt(result["design_effect"] / result.get("stretch", 1.0))
    np.testing.assert_allclose(errors, factor * classical, rtol=0.02)
    assert "likeness of a person's rows" in fit.result["estimand"]
    assert fit.result["n"] == N
    assert f"Persons: {N:,}" in fit.summary()
    assert study.nobs == N


def copied(seed: int, persons: int, m: int) -> Any:
    """All rows of a person are the same row, as many as there are places."""
    rng = seeded(seed)
    x = rng.normal(size=(2, persons))
    y = 1 + SLOPES[0] * x[0] + SLOPES[1] * x[1] + rng.normal(size=persons)
    table = {"x0": x[0], "x1": x[1], "y": y}
    return {k: np.repeat(v, m) for k, v in table.items()}, np.zeros(persons * m, bool)


def test_rows_that_are_copies_attain_the_design_effect() -> None:
    found = copied(1, 3000, 4)
    study = read(Study(VARIABLES), answered(found, Study(VARIABLES), m=4))
    _, by_person = pooled(*found, 4, NAMES)
    np.testing.assert_allclose(study.ols(MAIN).bse, by_person, rtol=0.06)
    data = {k: v[::4] for k, v in found[0].items()}
    r = np.corrcoef(data["y"], data["x0"])[0, 1]
    low, high = study.partial_corr("y", "x0").conf_int()
    half = 1.96 * (1 - r**2) / np.sqrt(3000)
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)


def test_the_design_effect_of_deviations_is_no_less_than_that_of_rows() -> None:
    for m in (2, 5, 20):
        for mean in np.linspace(2.0, m, 5) if m > 2 else [2.0]:
            assert design_effect(m, stretch_of(mean * 1000, 1000.0)) >= m * (1 - 1e-12)
    assert design_effect(7, 1.0) == 7


def test_means_of_a_person_are_variables() -> None:
    """Mundlak: with the means of both, the slopes of balanced persons are those of deviations."""
    found = panel(4, 2000, 4, balanced=True)
    variables = (*VARIABLES, "mean(x0)", "mean(x1)")
    main = "y ~ x0 + x1 + mean(x0) + mean(x1)"
    query = Study(variables, main=main)
    result = answered(found, query, m=4)
    beta, errors = within(*found, 4, NAMES)
    slopes = dict(zip(result["main"]["terms"], result["main"]["coefficients"], strict=True))
    for name, b, error in zip(NAMES, beta, errors, strict=True):
        assert slopes[name] == pytest.approx(b, abs=0.3 * error)
    fit = read(query, result).ols(main)
    np.testing.assert_allclose(fit.params, result["main"]["coefficients"], rtol=1e-6, atol=1e-9)
    with pytest.raises(InvalidQuery, match="same in all rows"):
        answered(found, Study(variables, **EFFECTS), m=4)
    with pytest.raises(ReticentError):
        answered(found, Study(variables, missing="indicator"), m=4)


@pytest.mark.parametrize("beyond", [0.0, 0.02])
def test_the_meat_of_persons_counts_what_is_cut_and_how_many_there_are(beyond: float) -> None:
    """Of 100 persons, 2 of whom are cut at C = 3: each of these has lost C² of its square."""
    sums, clip, persons = np.diag([60.0, 40.0]), 3.0, 100.0
    unit = LeastSquares(*[np.eye(2)] * 3, 4.0, 0.1, np.ones(2), np.ones(2))
    fitted = GroupFit(unit, None, np.eye(2), None, 200.0)  # type: ignore[arg-type]
    formula = Formula("", ("a", "b"), np.ones(2), np.eye(2), np.eye(2), np.zeros(2), 1.0)
    clusters = Clusters(clip, persons, 81.0, beyond)
    middle, freedom = persons_meat(formula, Released(sums, 1e-6), fitted, clusters)
    factor = 100 / 99 * (1 + beyond * persons / 100)
    np.testing.assert_allclose(middle, sums * clip**2 / 200 * factor, rtol=1e-9)
    assert freedom.noise == pytest.approx(1e-6 * clip**2 / 200 * factor)
    sampling = 4.0 / 200 * np.diag(middle)
    degrees = freedom.degrees(np.eye(2), sampling, sampling)
    np.testing.assert_allclose(degrees, 80.0, rtol=1e-3)


def test_what_a_study_of_deviations_has_not() -> None:
    study = read(Study(VARIABLES), answered(panel(5, 1500, 4), Study(VARIABLES, **EFFECTS), m=4))
    with pytest.raises(InvalidFormula):
        study.lasso(MAIN)
    assert list(study.to_frame().columns) == ["sd"]
    assert "Intercept" not in study.select("y", ["x0", "x1"]).fit.names
    assert study.select("y").ranking[0][0] == ("x0", "x1")
    assert study.r2(MAIN)[0] == pytest.approx(0.3, abs=0.1)
    fit = study.ols("y ~ x0")
    assert list(fit.names) == ["x0"]
    assert study.ridge("y ~ x0", 0.1).params["x0"] < fit.params["x0"]


def test_few_persons_have_no_intervals_of_the_declared_formula() -> None:
    main = answered(panel(1, 60, M), Study(VARIABLES, main=MAIN), 100.0)["main"]
    assert main["effective_clusters"] < 50
    assert main["p_values"] == [None] * 3
    assert any("too few persons" in said for said in main["warnings"])


def test_skewed_errors_of_persons_have_no_intervals() -> None:
    """Few rows make the mean of such a response, and persons who have them are downweighted: its
    intercept is off.
    """
    data, absent = panel(3, 5_000, 8)
    rng = seeded(7)
    data["y"] = np.where(absent, 0.0, data["x0"] + np.exp(1.2 * rng.normal(size=len(absent))))
    main = answered((data, absent), Study(VARIABLES, main=MAIN), 4.0, m=8)["main"]
    assert not any(main["estimable"])
    assert main["warnings"][0].startswith("No intervals: much of y")


def test_persons_of_like_lengths_keep_their_intervals() -> None:
    """Where all have eight rows that are alike, many persons lie between the radii."""
    found = panel(3, 5_000, 8, balanced=True)
    result = answered(found, Study(VARIABLES, main=MAIN), 4.0, m=8)
    assert max(result["lost"]) < BARED.value
    assert all(result["main"]["estimable"])


def test_a_column_that_is_the_same_in_all_rows_of_a_person_has_no_interval() -> None:
    data, absent = panel(2, 3000, M)
    data["x1"] = np.where(absent, 0.0, np.repeat(data["x1"][::M], M))
    query = Study(VARIABLES, main=MAIN, **EFFECTS)
    result = answered((data, absent), query, 2.0)
    assert result["main"]["estimable"] == [False, False]
    study = read(query, result)
    assert all(study.ols("y ~ x0").estimable)


@pytest.mark.slow
def test_most_intervals_hold_the_truth_at_a_usual_budget() -> None:
    """Of 60 intervals of 95 %: seeded, and fewer than 48 by chance once in 10⁷."""
    hits, widths = 0, []
    for seed in range(10):
        for effects in (None, "person"):
            found = panel(seed, N, M, levels=bool(effects))
            query = Study(VARIABLES, main=MAIN, effects=effects)
            result = answered(found, query, 2.0)
            ends = np.array(result["main"]["confidence_intervals"], dtype=float)[-2:]
            hits += int(np.sum((ends[:, 0] <= SLOPES) & (ends[:, 1] >= SLOPES)))
            _, by_person = (within if effects else pooled)(*found, M, NAMES)
            widths.append(np.array(result["main"]["standard_errors"])[-2:] / by_person[-2:])
    assert hits >= 32
    assert np.median(widths) < 1.6


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (Study(VARIABLES, main="y ~ 0 + x0", **EFFECTS), "Leave 0 out of main"),
        (Study(("y", "y_lag"), **EFFECTS), "Nickell"),
        (Study(VARIABLES, by="g"), "where"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_change(query: Study, said: str) -> None:
    data, absent = panel(2, 50, M)
    facts = facts_of(data | {"y_lag": data["y"], "g": (data["x0"] > 0) * 1.0}, absent, M)
    with pytest.raises(InvalidQuery, match=said):
        kind_of(query).plan(facts, query, offer(1.0))


def test_person_effects_are_for_persons_with_several_rows() -> None:
    query = Study(VARIABLES, **EFFECTS)
    one = facts_of(*panel(2, 50, 1), 1)
    with pytest.raises(InvalidQuery, match="several rows a person"):
        plan(one, query, offer(1.0))


def test_a_forecast_is_about_the_errors_that_are_given(table: Any) -> None:
    query = Study(VARIABLES, main=MAIN)
    planned = kind_of(query).plan(facts_of(*table, M), query, offer(4.0))
    result = drive(planned.run(), persons_block(*table)).result
    fit = read(query, result).ols(MAIN)
    seen = np.asarray(fit.privacy_bse) / np.asarray(fit.sampling_bse)
    told = np.array(planned.forecast["privacy_to_sampling"])
    assert np.all(seen / told < 2)
    assert np.all(told / seen < 2)
    low, high = read(query, result).partial_corr("x0", "x1").conf_int()
    assert (high - low) / 2 == pytest.approx(planned.forecast["correlation_half_width"], rel=0.5)


@pytest.mark.parametrize("main", [None, MAIN])
def test_all_parts_that_are_counts_are_named(table: Any, main: Any) -> None:
    """Their noise is coarse, and priced so under accounts that add up (ε, δ)."""
    planned = kind_of(Study(VARIABLES)).plan(
        facts_of(*table, M), Study(VARIABLES, main=main), offer(4.0)
    )
    steps = drive(planned.run(), persons_block(*table)).steps
    counts = [part for step in steps for part in step.parts if isinstance(part, CountSum)]
    assert counts == list(planned.gaussian_counts or ())


def test_a_forecast_of_deviations_has_no_intercept(table: Any) -> None:
    query = Study(VARIABLES, **EFFECTS)
    forecast = kind_of(query).plan(facts_of(*table, M), query, offer(1.0)).forecast
    assert forecast["terms"] == ["x0", "x1"]
    assert len(forecast["privacy_to_sampling"]) == 2
