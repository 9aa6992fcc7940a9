# SPDX-License-Identifier: Apache-2.0
"""What the client makes of a study: against least squares on the records, and with noise whose law
is known.
"""

from math import inf
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import chi2

from reticent import InvalidFormula, NotEstimable
from reticent._study.formula import Columns
from reticent_server.kinds.study.kind import Study as Question
from support.client.studies import NAMES, result_of
from support.kinds.studies import read
from support.seeds import seeded

mpl.use("Agg")
N = 20_000


def records(seed: int = 3, n: Any = N, strength: float = 0.5) -> Any:
    """(n, 10) in the order of NAMES: x is endogenous, z1 and z2 are its instruments; the last four
    are dummies and products.
    """
    rng = seeded(seed)
    w, z1, z2, hidden = rng.normal(size=(4, n))
    x = 3 + strength * (z1 + 0.5 * z2) + 0.4 * w + hidden
    level = rng.integers(0, 3, n)
    b, c = (level == 1) * 1.0, (level == 2) * 1.0
    y = 1 + 0.7 * x - 0.3 * w + 0.5 * c + hidden + rng.normal(size=n)
    return np.column_stack([y, x, x**2, w, z1, z2, b, c, b * x, c * x])


def study_of(table: Any, sd: float = 0.0, seed: int = 0, names: Any = NAMES) -> Any:
    return read(Question(names), result_of(table, sd, seed, names))


@pytest.fixture(scope="module")
def table() -> Any:
    return records()


@pytest.fixture(scope="module")
def study(table: Any) -> Any:
    return study_of(table)


def columns(table: Any, *names: Any, intercept: bool = True) -> Any:
    chosen = table[:, [NAMES.index(name) for name in names]]
    return sm.add_constant(chosen) if intercept else chosen


@pytest.mark.parametrize(
    ("formula", "names", "intercept"),
    [
        ("log(y) ~ x + w", ("x", "w"), True),
        ("log( y ) ~ w+I(x ** 2) + x", ("w", "I(x**2)", "x"), True),
        ("log(y) ~ C(g) * x", ("g[b]", "g[c]", "x", "g[b]:x", "g[c]:x"), True),
        ("log(y) ~ g + x:g", ("g[b]", "g[c]", "g[b]:x", "g[c]:x"), True),
        ("log(y) ~ 0 + x + w", ("x", "w"), False),
        ("log(y) ~ -1 + x + w - w + z1", ("x", "z1"), False),
        ("g[b] ~ x", ("x",), True),
        ("w ~ 1", (), True),
    ],
)
def test_ols_is_least_squares(
    study: Any, table: Any, formula: str, names: tuple[Any, ...], intercept: bool
) -> None:
    response = formula.partition("~")[0].strip().replace(" ", "")
    fit = study.ols(formula)
    X = columns(table, *names, intercept=intercept) if names else np.ones((N, 1))
    exact = sm.OLS(table[:, NAMES.index(response)], X).fit()
    assert fit.names == (("Intercept",) if intercept else ()) + names
    np.testing.assert_allclose(fit.params, exact.params, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.bse, exact.bse, rtol=1e-3)
    np.testing.assert_allclose(fit.scale, np.sqrt(exact.scale), rtol=1e-3)
    np.testing.assert_allclose(fit.conf_int(), exact.conf_int(), atol=0.01 * exact.bse.max())
    assert fit.formula == formula


def test_a_fit_is_the_object_of_a_regression(study: Any, table: Any) -> None:
    fit = study.ols("log(y) ~ x + w")
    exact = sm.OLS(table[:, 0], columns(table, "x", "w")).fit()
    ours = fit.wald_test("x = 0.7, w = -0.3")
    theirs = exact.wald_test((np.eye(3)[1:], [0.7, -0.3]), scalar=True, use_f=False)
    assert ours.statistic == pytest.approx(float(theirs.statistic), rel=1e-3)
    assert "Free" in str(fit.summary())
    assert list(fit.to_frame().index) == ["Intercept", "x", "w"]
    fit.plot()
    fit.check()


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("log(y) + x", "Write a response"),
        ("log(y) ~ nothing", "is not in this study"),
        ("log(y) ~ x + log(y)", "also among the terms"),
        ("g ~ x", "has 2 columns"),
        ("log(y) ~ x +", "missing at the end"),
        ("log(y) ~ x + + w", "missing beside"),
        ("log(y) ~ (x", "Close every bracket"),
        ("log(y) ~ 0", "no terms"),
        ("log(y) ~ x | z1", "for iv"),
        ("log(y) ~ x:w", "is not in this study"),
    ],
)
def test_a_formula_that_cannot_be_read_says_why(study: Any, formula: str, words: str) -> None:
    with pytest.raises(InvalidFormula, match=words):
        study.ols(formula)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "off"), [(50, 0.4), pytest.param(150, 0.2, marks=pytest.mark.audit)]
)
def test_errors_of_first_order_are_those_of_the_noise(table: Any, draws: int, off: float) -> None:
    """Coefficients, a correlation, an eigenvalue and an indirect effect over draws of noise: sd
    over prediction, to four of its standard errors at least.
    """
    seen = {"slope": [], "r": [], "partial": [], "eigenvalue": [], "indirect": []}
    said = {name: [] for name in seen}
    for seed in range(draws):
        study = study_of(table, 0.01, seed)
        fit, pair = study.ols("log(y) ~ x + w + z1"), study.partial_corr("x", "w")
        held = study.partial_corr("x", "w", ["z1", "z2"])
        parts = study.pca(["log(y)", "x", "w"])
        paths = study.mediation("z1", "x", "log(y)")
        for name, value, error in (
            ("slope", fit.params["x"], fit.privacy_bse["x"]),
            ("r", pair.value, pair.privacy_bse),
            ("partial", held.value, held.privacy_bse),
            ("eigenvalue", parts.eigenvalues[0], parts.privacy_bse[0]),
            ("indirect", paths["indirect"], paths.privacy_bse[0]),
        ):
            seen[name].append(value)
            said[name].append(error)
    for name, errors in said.items():
        assert np.std(seen[name]) / np.mean(errors) == pytest.approx(1.0, abs=off), name


def test_noise_and_sampling_add_up(table: Any) -> None:
    clean, noisy = (study_of(table, sd).ols("log(y) ~ x + w") for sd in (0.0, 0.01))
    np.testing.assert_allclose(noisy.sampling_bse, clean.bse, rtol=0.1)
    assert np.all(np.asarray(noisy.bse) > np.asarray(clean.bse))
    before, after = (study_of(table, sd).partial_corr("x", "w") for sd in (0.0, 0.01))
    assert after.bse**2 == pytest.approx(before.bse**2 + after.privacy_bse**2, rel=0.1)
    low, high = after.conf_int()
    assert high - low == pytest.approx(2 * 1.96 * after.bse, rel=0.02)
    assert after.privacy_bse > before.bse / 2


def with_narrow(table: Any, share: Any, ratio: Any) -> Any:
    """A study whose narrower radius has the first 1 − share of the records only."""
    result, kept = result_of(table), int(len(table) * (1 - share))
    Z = np.column_stack([np.ones(kept), table[:kept]])
    narrow = {
        "moments": (Z.T @ Z / len(table)).tolist(),
        "noise": {**result["noise"], "sd": 1e-9},
        "ratio": ratio,
        "typical": 1e3,
    }
    return read(Question(NAMES), {**result, "narrow": narrow})


def test_errors_are_longer_where_a_narrower_radius_says_another_thing(table: Any) -> None:
    """b = λA X(S − S₂)v is, for records left out, λ times what they have moved to first order."""
    order = np.argsort(table[:, 0] - 0.7 * table[:, 1])
    leaning = with_narrow(table[order], 0.05, 0.5)
    plain, longer = study_of(table).ols("log(y) ~ x"), leaning.ols("log(y) ~ x")
    X, y = sm.add_constant(table[order][:, 1]), table[order][:, 0]
    residual = sm.OLS(y, X).fit().resid
    beyond = np.arange(N) >= int(N * 0.95)
    b = 0.5 * np.linalg.solve(X.T @ X, X[beyond].T @ residual[beyond])
    np.testing.assert_allclose(longer.bse**2, plain.bse**2 + b**2, rtol=0.02)
    np.testing.assert_allclose(longer.params, plain.params, rtol=1e-9)
    assert any("Few records with large values" in said for said in longer.result["warnings"])
    assert plain.result["warnings"] == []
    none = with_narrow(table[order], 0.05, 0.0).ols("log(y) ~ x")
    np.testing.assert_allclose(none.bse, plain.bse, rtol=1e-9)


def test_correlations_are_less_sure_where_a_narrower_radius_says_another_thing(table: Any) -> None:
    order = np.argsort(np.abs(table[:, 0] - 5))
    (moved, plain) = (
        with_narrow(table[order], 0.02, ratio).partial_corr("log(y)", "x") for ratio in (1.0, 0.0)
    )
    inner = np.corrcoef(table[order][: int(N * 0.98), :2].T)[0, 1]
    assert moved.value == pytest.approx(plain.value)
    assert moved.bse**2 - plain.bse**2 == pytest.approx((plain.value - inner) ** 2, rel=0.5)


def test_a_shut_gate_leaves_numbers_and_no_intervals(table: Any) -> None:
    near = table.copy()
    near[:, 3] = near[:, 1] + 0.3 * near[:, 3]
    fit = study_of(near, 0.01).ols("log(y) ~ x + w")
    assert 1 / 3 < fit.gate < 2
    assert not any(fit.estimable)
    assert np.isnan(fit.conf_int()).all()
    assert np.isnan(np.asarray(fit.pvalues)).all()
    assert "Leave one of them out" in fit.result["warnings"][0]
    with pytest.raises(NotEstimable):
        fit.wald_test("x = 0")
    assert study_of(near, 0.01).ols("log(y) ~ x").estimable == (True, True)


def test_ridge_is_about_its_own_coefficients(study: Any, table: Any) -> None:
    fit, penalty = study.ridge("log(y) ~ x + w", 0.5), 0.5
    scale = np.array(study.result["scales"])[[2, 4]]
    X = (table[:, [1, 3]] - table[:, [1, 3]].mean(0)) / scale
    y = table[:, 0] - table[:, 0].mean()
    # The penalty is on columns centred at public centres, and so is the intercept's freedom.
    slopes = np.linalg.solve(X.T @ X / N + penalty * np.eye(2), X.T @ y / N) / scale
    np.testing.assert_allclose(np.asarray(fit.params)[1:], slopes, rtol=1e-6)
    assert np.all(
        np.abs(np.asarray(fit.params)[1:])
        < np.abs(np.asarray(study.ols("log(y) ~ x + w").params)[1:])
    )
    assert "Ridge" in fit.result["estimand"]
    with pytest.raises(ValueError, match="positive"):
        study.ridge("log(y) ~ x", 0.0)


def test_the_lassos_path_starts_at_nothing_and_ends_at_least_squares(study: Any) -> None:
    formula = "log(y) ~ x + w + z1 + g"
    path = study.lasso(formula)
    np.testing.assert_allclose(path.coefficients[0, 1:], 0.0, atol=1e-9)
    exact = np.asarray(study.ols(formula).params)
    np.testing.assert_allclose(path.coefficients[-1], exact, atol=0.02)
    assert np.all(np.diff(path.penalties) < 0)
    sizes = np.count_nonzero(np.abs(path.coefficients[:, 1:]) > 1e-9, axis=1)
    assert sizes[5] < sizes[-1] == 5
    path.plot()
    assert path.to_frame().shape == path.coefficients.shape


def two_stage(y: Any, X: Any, Z: Any) -> tuple[Any, Any]:
    fitted = Z @ np.linalg.lstsq(Z, X, rcond=None)[0]
    beta = np.linalg.lstsq(fitted, y, rcond=None)[0]
    r = y - X @ beta
    return beta, np.sqrt(np.diag(np.linalg.inv(fitted.T @ fitted)) * (r @ r) / len(y))


def test_instruments_are_two_stages(study: Any, table: Any) -> None:
    fit = study.iv("log(y) ~ x + w | z1 + z2 + w")
    beta, errors = two_stage(table[:, 0], columns(table, "x", "w"), columns(table, "z1", "z2", "w"))
    np.testing.assert_allclose(fit.params, beta, rtol=1e-6)
    np.testing.assert_allclose(fit.bse, errors, rtol=1e-3)
    first = sm.OLS(table[:, 1], columns(table, "w", "z1", "z2")).fit()
    f = first.wald_test(np.eye(4)[2:], scalar=True, use_f=True)
    assert fit.first_stage["x"]["F"] == pytest.approx(float(f.statistic), rel=1e-2)
    ((low, high),) = fit.anderson_rubin()
    assert low < beta[1] < high
    # At an end the instruments' coefficients in a regression of y − βx are just significant.
    for end in (low, high):
        moved = sm.OLS(table[:, 0] - end * table[:, 1], columns(table, "w", "z1", "z2")).fit()
        statistic = float(moved.wald_test(np.eye(4)[2:], scalar=True, use_f=False).statistic)
        assert statistic == pytest.approx(chi2.ppf(0.95, 2), rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("tables", [40, pytest.param(100, marks=pytest.mark.audit)])
def test_anderson_rubin_sets_keep_their_level_with_weak_instruments_and_noise(tables: int) -> None:
    """Tables with a first-stage F near 1, from fixed seeds: the sets hold the coefficient, and most
    are unbounded.
    """
    held, unbounded = 0, 0
    for seed in range(tables):
        weak = records(100 + seed, 2_000, strength=0.03)
        fit = study_of(weak, 0.02, seed).iv("log(y) ~ x + w | z1 + z2 + w")
        held += any(low <= 0.7 <= high for low, high in fit.anderson_rubin())
        unbounded += any(inf in map(abs, ends) for ends in fit.anderson_rubin())
    assert held >= 0.9 * tables
    assert unbounded >= 0.5 * tables


@pytest.mark.parametrize(
    "formula", ["log(y) ~ x + w", "log(y) ~ x | x", "log(y) ~ x + w | z1", "log(y) ~ x | z1 | z2"]
)
def test_instruments_that_do_not_identify_are_refused(study: Any, formula: str) -> None:
    with pytest.raises(InvalidFormula):
        study.iv(formula)


def test_correlations_are_the_records_own(study: Any, table: Any) -> None:
    found = study.corr(["log(y)", "x", "g"])
    exact = np.corrcoef(table[:, [0, 1, 6, 7]].T)
    np.testing.assert_allclose(found.values, exact, atol=1e-6)
    z = np.arctanh(exact[0, 1]) + np.array([-1.96, 1.96]) / np.sqrt(N - 3)
    np.testing.assert_allclose([found.lower[0, 1], found.upper[0, 1]], np.tanh(z), atol=1e-5)
    found.plot()
    assert "log(y), x" in str(found.summary())
    held = study.partial_corr("log(y)", "x", ["w", "z1"])
    residuals = [sm.OLS(table[:, k], columns(table, "w", "z1")).fit().resid for k in (0, 1)]
    assert held.value == pytest.approx(np.corrcoef(residuals)[0, 1], abs=1e-6)
    assert held.pvalue < 1e-6


def test_a_column_that_hardly_varies_has_no_correlation(table: Any) -> None:
    flat = table.copy()
    flat[:, 3] = 2.0
    result = result_of(flat, 0.05, 1)
    assert np.isnan(read(Question(NAMES), result).partial_corr("x", "w").value)


def test_a_correlation_that_few_records_decide_has_no_interval() -> None:
    table = seeded(3).normal(size=(N, len(NAMES)))
    result = result_of(table, 0.0, 1)
    lost = [0.0] * len(result["terms"])
    lost[result["terms"].index("x")] = 0.3
    bared = read(Question(NAMES), result | {"lost": lost})
    others = [name for name in NAMES if name != "x"][:3]
    with_it, without = (bared.partial_corr(*pair, []) for pair in (("x", others[0]), others[:2]))
    assert np.isfinite(with_it.value)
    assert np.isnan([*with_it.conf_int(), with_it.pvalue, with_it.bse]).all()
    assert np.isfinite([*without.conf_int(), without.pvalue]).all()
    assert np.isnan(bared.partial_corr(*others[:2], ["x"]).pvalue)
    assert "few records" in str(bared.corr())


def test_components_and_factors(study: Any, table: Any) -> None:
    rng = seeded(1)
    loadings = np.array([0.9, 0.8, 0.7, 0.6])
    common = rng.normal(size=(N, 1))
    X = common * loadings + rng.normal(size=(N, 4)) * np.sqrt(1 - loadings**2)
    made = study_of(X, names=("a", "b", "c", "d"))
    found = made.pca()
    exact = np.linalg.eigvalsh(np.corrcoef(X.T))[::-1]
    np.testing.assert_allclose(found.eigenvalues, exact, rtol=1e-6)
    assert found.explained.sum() == pytest.approx(1.0)
    assert found.above_noise == 4
    factors = made.factor(1)
    np.testing.assert_allclose(factors.loadings[:, 0], loadings, atol=0.03)
    np.testing.assert_allclose(factors.uniqueness, 1 - loadings**2, atol=0.05)
    found.plot()
    assert found.to_frame().shape == (4, 4)
    assert "uniqueness" in factors.to_frame()
    with pytest.raises(ValueError, match="factor"):
        made.factor(4)


def test_mediation_is_a_product_of_slopes(study: Any, table: Any) -> None:
    found = study.mediation("z1", "x", "log(y)", ["w"])
    a = sm.OLS(table[:, 1], columns(table, "z1", "w")).fit()
    b = sm.OLS(table[:, 0], columns(table, "z1", "x", "w")).fit()
    total = sm.OLS(table[:, 0], columns(table, "z1", "w")).fit()
    assert found["indirect"] == pytest.approx(a.params[1] * b.params[2], rel=1e-5)
    assert found["direct"] == pytest.approx(b.params[1], rel=1e-4)
    assert found["total"] == pytest.approx(total.params[1], rel=1e-5)
    sobel = np.hypot(a.params[1] * b.bse[2], b.params[2] * a.bse[1])
    assert found.bse[0] == pytest.approx(sobel, rel=0.05)
    assert list(found.to_frame().index) == list(found.effects)
    found.plot()
    assert "indirect" in repr(found)


def test_r_squared_with_its_interval(study: Any, table: Any) -> None:
    value, low, high = study.r2("log(y) ~ x + w")
    assert value == pytest.approx(
        sm.OLS(table[:, 0], columns(table, "x", "w")).fit().rsquared, rel=1e-5
    )
    assert 0 < low < value < high < 1


def test_selection_finds_the_subset_and_widens_its_intervals(study: Any) -> None:
    found = study.select("log(y)", ["x", "w", "z2", "g"])
    best = set(found.ranking[0][0])
    assert {"x", "w"} <= best
    nominal = study.ols(found.fit.formula)
    ratio = np.ptp(found.fit.conf_int(), axis=1) / np.ptp(nominal.conf_int(), axis=1)
    np.testing.assert_allclose(ratio, np.sqrt(chi2.ppf(0.95, 6)) / 1.959964, rtol=1e-5)
    assert "simultaneous" in " ".join(found.fit.result["warnings"])
    assert found.to_frame()["bic"].is_monotonic_increasing
    every = study.select("w")
    assert len(every.ranking) == 10


def test_a_specification_curve(study: Any) -> None:
    curve = study.robustness("log(y) ~ x + w", ["- w", "+ g", "log(y) ~ z1 + x"])
    assert curve.term == "x"
    assert curve.formulas[1] == "log(y) ~ x + w - w"
    np.testing.assert_allclose(curve.values[1], study.ols("log(y) ~ x").params["x"])
    assert curve.to_frame().shape == (4, 5)
    curve.plot()
    assert "x by specification" in str(curve.summary())
    with pytest.raises(InvalidFormula, match="needs x"):
        study.robustness("log(y) ~ x", ["log(y) ~ w"])


def test_a_twin_has_the_released_moments(study: Any, table: Any) -> None:
    made = study.twin(50_000, seed=1, variables=["log(y)", "x", "w", "g[b]"])
    exact = table[:, [0, 1, 3, 6]]
    np.testing.assert_allclose(made.mean(), exact.mean(0), atol=0.05)
    np.testing.assert_allclose(made.corr(), np.corrcoef(exact.T), atol=0.03)
    assert set(made["g[b]"]) == {0.0, 1.0}
    assert study.twin(5, seed=1).equals(study.twin(5, seed=1))


def test_groups_are_studies(table: Any) -> None:
    whole = result_of(table)
    own = ("moments", "noise", "clipped", "radius")
    groups = {
        "f": {k: whole[k] for k in own},
        "m": {k: result_of(records(9), 0.0)[k] for k in own},
    }
    by = read(
        Question(NAMES), {k: v for k, v in whole.items() if k not in own} | {"groups": groups}
    )
    assert set(by.groups) == {"f", "m"}
    np.testing.assert_allclose(
        by["f"].ols("log(y) ~ x").params, study_of(table).ols("log(y) ~ x").params
    )
    whole["warnings"] = ["a tail"]
    assert "a tail" in str(read(Question(NAMES), whole).ols("log(y) ~ x").summary())
    assert "Groups: f, m" in str(by.summary())
    frame = by.to_frame()
    assert list(frame["level"]) == ["f"] * len(NAMES) + ["m"] * len(NAMES)
    assert list(frame["mean"][: len(NAMES)]) == list(by["f"].to_frame()["mean"])
    with pytest.raises(ValueError, match="by groups"):
        by.ols("log(y) ~ x")
    with pytest.raises(KeyError, match="the groups are"):
        by["x"]


def test_what_a_study_shows(study: Any, table: Any) -> None:
    frame = study.to_frame()
    np.testing.assert_allclose(frame["mean"], table.mean(0), rtol=1e-6)
    np.testing.assert_allclose(frame["sd"], table.std(0), rtol=1e-4)
    assert "Free from here on" in str(study.summary())
    assert study.clipped == (0.001, 0.002)
    assert study.nobs == N
    study.plot()
    with pytest.raises(KeyError, match="main"):
        _ = study.main


def test_contrasts_and_joined_levels_are_named_as_the_study_s_columns(table: Any) -> None:
    spelled = {
        "g[b]": "C(g, Sum)[S.b]",
        "g[c]": "C(g, Sum)[S.c]",
        "g[b]:x": 'merge(h, low=["a", "b"])[low]',
    }
    names = tuple(spelled.get(name, name) for name in NAMES)
    fit = study_of(table, names=names).ols(
        'log(y) ~ C(g,Sum) + C(merge(h, low=["a","b"]), ref="c") + x'
    )
    expected = ["Intercept", "C(g, Sum)[S.b]", "C(g, Sum)[S.c]", spelled["g[b]:x"], "x"]
    assert list(fit.to_frame().index) == expected


@pytest.mark.parametrize(
    ("analysis", "named"),
    [
        ("partial_corr", ("x", "x")),
        ("partial_corr", ("x", "w", ["w"])),
        ("mediation", ("x", "x", "log(y)")),
        ("mediation", ("x", "w", "log(y)", ["w"])),
    ],
)
def test_a_column_that_is_named_twice_is_refused(study: Any, analysis: str, named: Any) -> None:
    with pytest.raises(InvalidFormula, match="must all be different"):
        getattr(study, analysis)(*named)


def test_columns_of_any_level_and_a_minus_behind_a_plus() -> None:
    columns = Columns(["Intercept", "q[Don't know]", "q[low (a]", "x", "x:q[low (a]"])
    assert columns.places("C(q)") == (1, 2)
    assert columns.places("q:x") == (4,)
    found = columns.specification("x ~ q + -1")
    assert (found.terms, found.intercept) == ((1, 2), False)
    with pytest.raises(InvalidFormula, match="missing"):
        columns.specification("x ~ -+q")
