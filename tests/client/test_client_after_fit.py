# SPDX-License-Identifier: Apache-2.0
"""Predictions, marginal effects, marginal means and contrasts: statsmodels' values where there is
no noise.
"""

from typing import Any

import numpy as np
import pandas as pd
import patsy
import pyarrow as pa
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import reticent
from reticent.kinds.quantile_regression import QuantileRegressionResults
from support.client.replying_server import release
from support.seeds import seeded

ROWS = 400


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = seeded(5)
    x, w = rng.normal(size=ROWS), rng.uniform(1, 4, size=ROWS)
    g, h = rng.choice(["a", "b", "c"], ROWS), rng.choice(["u", "v"], ROWS)
    eta = 0.3 + 0.5 * x - 0.4 * np.log(w) + 0.6 * (g == "b") - 0.5 * (g == "c") + 0.3 * (h == "v")
    y = eta + rng.normal(size=ROWS)
    yes = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-eta))).astype(float)
    count = rng.poisson(np.exp(eta)).astype(float)
    return pd.DataFrame({"x": x, "w": w, "g": g, "h": h, "y": y, "yes": yes, "count": count})


def released(fit: Any, formula: str, **more: Any) -> reticent.RegressionResults:
    """A release that holds a statsmodels fit, without noise."""
    ends = (
        np.asarray(fit.params)[:, None]
        + 1.959963984540054 * np.array([-1, 1]) * np.asarray(fit.bse)[:, None]
    )
    renamed = {"I(h == 'v')[True]": "h[v]"}
    names = [name.replace("[T.", "[").replace("np.", "") for name in fit.params.index]
    terms = [renamed.get(name, name) for name in names]
    result = {
        "terms": terms,
        "coefficients": fit.params.tolist(),
        "standard_errors": fit.bse.tolist(),
        "covariance": np.asarray(fit.cov_params()).tolist(),
        "confidence_level": 0.95,
        "confidence_intervals": ends.tolist(),
        "p_values": fit.pvalues.tolist(),
        "privacy_standard_errors": [0.0] * len(terms),
        "estimable": [True] * len(terms),
        "scale": float(np.sqrt(fit.scale)),
        "tuning": None,
        "n": ROWS,
        "warnings": [],
    }
    query = {"kind": "linear_regression", "formula": formula, **more.pop("query", {})}
    return reticent.RegressionResults(release(query=query, result=result | more))


LINEAR = "y ~ x * g + np.log(w) + h"


def linear(data: pd.DataFrame) -> tuple[Any, reticent.RegressionResults]:
    fit = smf.ols(LINEAR, data).fit(use_t=False)
    return fit, released(fit, LINEAR.replace("np.", ""))


def logit(data: pd.DataFrame) -> tuple[Any, reticent.RegressionResults]:
    fit = smf.glm("yes ~ x + w + g", data, family=sm.families.Binomial()).fit()
    return fit, released(fit, "yes ~ x + w + g", family="binomial", link="logit")


def test_linear_predictions_are_those_of_statsmodels(data: pd.DataFrame) -> None:
    fit, mine = linear(data)
    new = data.iloc[:7]
    theirs = fit.get_prediction(new).summary_frame(alpha=0.1)
    ours = mine.get_prediction(new).summary_frame(alpha=0.1)
    assert list(ours) == list(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(mine.predict(new), fit.predict(new), rtol=1e-9)


@pytest.mark.parametrize("more", [{"family": "tweedie"}, {"family": "tweedie", "link": "power"}])
def test_a_family_whose_link_is_not_known_is_refused_in_words(
    data: pd.DataFrame, more: Any
) -> None:
    fit, _ = logit(data)
    mine = released(fit, "yes ~ x + w + g", **more)
    with pytest.raises(reticent.InvalidQuery, match="link"):
        mine.predict(data.iloc[:7])


def test_predictions_go_through_the_link(data: pd.DataFrame) -> None:
    fit, mine = logit(data)
    theirs = fit.get_prediction(data.iloc[:7]).summary_frame()
    ours = mine.get_prediction(data.iloc[:7]).summary_frame()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    "power", ["I(x**2)", "I((x**2)**2)", "sqrt(w)", "log1p(w)", "log10(w)", "exp(x)"]
)
def test_functions_and_their_derivatives(data: pd.DataFrame, power: str) -> None:
    from reticent.results.design import Design

    name = "w" if "w" in power else "x"
    design, step = Design(["Intercept", power, f"{power}:h[v]"]), 1e-6
    moved = [design.rows(data.assign(**{name: data[name] + s})) for s in (step, -step)]
    expected = (moved[0] - moved[1]) / (2 * step)
    np.testing.assert_allclose(design.derivative(data, name), expected, rtol=1e-6, atol=1e-7)
    value = eval(power, {"I": lambda v: v, "x": data.x, "w": data.w, **vars(np)})
    np.testing.assert_allclose(design.rows(data)[:, 2], value * (data.h == "v"))


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_marginal_effects_are_those_of_get_margeff(data: pd.DataFrame, family: str) -> None:
    y = {"binomial": "yes", "poisson": "count"}[family]
    model = {"binomial": smf.logit, "poisson": smf.poisson}[family]
    fit = model(f"{y} ~ x + w + I(h == 'v')", data).fit(disp=0)
    mine = released_discrete(fit, family)
    theirs = fit.get_margeff(dummy=False)
    ours = mine.margins(data)
    np.testing.assert_allclose(ours.estimates[:2], theirs.margeff[1:], rtol=1e-9)
    np.testing.assert_allclose(ours.bse[:2], theirs.margeff_se[1:], rtol=1e-7)
    np.testing.assert_allclose(ours.pvalues[:2], theirs.pvalues[1:], rtol=1e-6)
    dummies = discrete(data, y, model)
    theirs = dummies.get_margeff(dummy=True)
    np.testing.assert_allclose(ours.estimates[2], theirs.margeff[2], rtol=1e-7)
    np.testing.assert_allclose(ours.bse[2], theirs.margeff_se[2], rtol=1e-6)


def released_discrete(fit: Any, family: str) -> reticent.RegressionResults:
    return released(
        Plain(fit),
        "y ~ h + x + w",
        family=family,
        link={"binomial": "logit", "poisson": "log"}[family],
    )


class Plain:
    """A discrete model's fit as `released` reads it."""

    def __init__(self, fit: Any) -> None:
        self.params, self.bse, self.pvalues, self.scale = fit.params, fit.bse, fit.pvalues, 1.0
        self.cov_params = fit.cov_params


def discrete(data: pd.DataFrame, y: str, model: Any) -> Any:
    return model(f"{y} ~ x + w + v", data.assign(v=(data.h == "v").astype(float))).fit(disp=0)


def test_dummies_are_changes_from_0_to_1(data: pd.DataFrame) -> None:
    theirs = discrete(data, "yes", smf.logit)
    mine = released(Plain(theirs), "yes ~ x + w + v", family="binomial", link="logit")
    frame = data.assign(v=(data.h == "v").astype(float))
    ours, expected = mine.margins(frame, dummy=["v"]), theirs.get_margeff(dummy=True)
    np.testing.assert_allclose(ours.estimates, expected.margeff, rtol=1e-7)
    np.testing.assert_allclose(ours.bse, expected.margeff_se, rtol=1e-6)


def test_weights_of_rows_are_shares(data: pd.DataFrame) -> None:
    mine = logit(data)[1]
    some, twice = data.iloc[[0, 1]], data.iloc[[0, 1, 1]]
    ours = mine.margins(some, weights=[1, 2])
    np.testing.assert_allclose(ours.estimates, mine.margins(twice).estimates)
    np.testing.assert_allclose(ours.bse, mine.margins(twice).bse)
    with pytest.raises(ValueError, match="weights"):
        mine.margins(some, weights=[1, -1])


def test_effects_that_are_the_same_everywhere_need_no_frame(data: pd.DataFrame) -> None:
    fit = smf.ols("y ~ x + g", data).fit()
    mine = released(fit, "y ~ x + g")
    ours = mine.margins()
    assert ours.names == ("x", "g[b]", "g[c]")
    expected = [mine.params[name] for name in ours.names]
    np.testing.assert_allclose(ours.estimates, expected)
    for other in (linear(data)[1], logit(data)[1]):
        with pytest.raises(reticent.InvalidFormula, match="public frame"):
            other.margins()


def test_marginal_means_weigh_the_other_factors_alike(data: pd.DataFrame) -> None:
    """emmeans' definition: predictions over the reference grid, averaged with equal weights."""
    fit, mine = linear(data)
    at = {"x": 0.5, "w": 2.0}
    ours = mine.marginal_means("g", at=at, baseline="a")
    assert ours.names == ("a", "b", "c")
    for k, level in enumerate("abc"):
        grid = pd.DataFrame({"g": level, "h": ["u", "v"], **at})
        assert ours.estimates[k] == pytest.approx(float(fit.predict(grid).mean()))
        row = exog(fit, grid).mean(axis=0)
        expected = np.sqrt(row @ np.asarray(fit.cov_params()) @ row)
        assert ours.bse[k] == pytest.approx(float(expected))
    with pytest.raises(reticent.InvalidFormula, match="released value of"):
        mine.marginal_means("g", at={"x": 0.5})


def exog(fit: Any, grid: pd.DataFrame) -> Any:
    """statsmodels' design of new data."""
    return np.asarray(patsy.dmatrix(fit.model.data.model_spec, grid))


def test_contrasts_of_a_factor(data: pd.DataFrame) -> None:
    mine = logit(data)[1]
    ours = mine.contrasts("g", baseline="a")
    assert ours.names == ("a - b", "a - c", "b - c")
    b, c = mine.params["g[b]"], mine.params["g[c]"]
    np.testing.assert_allclose(ours.estimates, [-b, -c, b - c])
    C = mine.cov_params()[1:3, 1:3]
    np.testing.assert_allclose(ours.bse[2] ** 2, C[0, 0] + C[1, 1] - 2 * C[0, 1])
    control = mine.contrasts("g", "trt.vs.ctrl")
    np.testing.assert_allclose(control.estimates, [b, c])
    joint, one = control.conf_int(simultaneous=True), control.conf_int()
    assert np.all(np.diff(joint) > np.diff(one))
    with pytest.raises(ValueError, match="pairwise"):
        mine.contrasts("g", "tukey")
    with pytest.raises(reticent.InvalidFormula, match="not a factor"):
        mine.contrasts("x")


def test_ratios(data: pd.DataFrame) -> None:
    mine = logit(data)[1]
    np.testing.assert_allclose(mine.conf_int(exp=True), np.exp(mine.conf_int()))
    text = str(mine.summary(exp=True))
    assert "exp(coef)" in text
    assert f"{np.exp(mine.params['x']):.4f}" in text


def test_what_the_noise_hides_is_said() -> None:
    fit = reticent.RegressionResults(release())
    ours = fit.get_prediction({"x1": [1.0, 1.0], "x2": [0.0, 2.0], "g": ["a", "b"]})
    assert np.isfinite(ours.predicted_mean[0])
    assert np.isnan(ours.predicted_mean[1])
    assert np.isnan(ours.conf_int()[1]).all()
    effects = fit.margins({"x1": [1.0], "x2": [0.0], "g": ["a"]})
    assert effects.estimable == (True, False, True)
    assert np.isnan(effects.estimates[1])
    assert "Not identifiable" in str(effects.summary())


def test_intervals_are_as_wide_as_the_fit_s() -> None:
    """The release of the fixtures has an interval that is 1.25 times a normal one."""
    fit = reticent.RegressionResults(release())
    ours = fit.contrasts("g")
    expected = 2 * 1.25 * 1.959963984540054 * fit.bse["g[b]"]
    assert float(np.diff(ours.conf_int())[0, 0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"x1": [1.0], "g": ["a"]}, "lack x2"),
        ({"x1": [1.0], "x2": [1.0, 2.0], "g": ["a"]}, "differ in length"),
        ({"x1": [1.0] * 2, "x2": [1.0] * 2, "g": ["a", "z"]}, "cannot all be"),
    ],
)
def test_data_that_do_not_fit_the_formula(frame: dict[str, Any], said: str) -> None:
    with pytest.raises(reticent.InvalidFormula, match=said):
        reticent.RegressionResults(release()).predict(frame)


def test_a_level_that_the_fit_has_not_is_an_error_and_no_baseline() -> None:
    """Where the release says its baselines; a missing cell is NaN, as before."""
    document = release()
    document["result"] = {**document["result"], "baselines": {"g": "a"}}
    fit = reticent.RegressionResults(document)
    new = {"x1": [1.0, 1.0, 1.0], "x2": [0.0] * 3, "g": ["a", "b", None]}
    before = reticent.RegressionResults(release()).predict(new)
    np.testing.assert_array_equal(fit.predict(new), before)
    with pytest.raises(
        reticent.InvalidFormula, match=r"g has no level z in this fit: .*a is the baseline"
    ):
        fit.predict({**new, "g": ["b", "z", "b"]})
    assert fit.marginal_means("g", at={"x1": 1.0, "x2": 0.0}).names[0] == "a"


def test_a_basis_on_declared_bounds_is_refused(data: pd.DataFrame) -> None:
    fit = smf.ols("y ~ x", data).fit()
    mine = released(fit, "y ~ poly(x, 1)", terms=["Intercept", "poly(x, 1)[1]"])
    with pytest.raises(reticent.InvalidFormula, match="declared bounds"):
        mine.predict(data)


def test_every_level_has_an_indicator_without_an_intercept(data: pd.DataFrame) -> None:
    fit = smf.ols("y ~ 0 + g", data).fit()
    mine = released(fit, "y ~ 0 + g")
    assert mine.marginal_means("g").names == ("a", "b", "c")
    np.testing.assert_allclose(mine.marginal_means("g").estimates, fit.params)
    with pytest.raises(reticent.InvalidFormula, match="cannot all be"):
        mine.predict({"g": ["z"]})


@pytest.mark.parametrize("contrast", ["Sum", "Helmert"])
@pytest.mark.parametrize("terms", ["C(g, {})*x + h", "0 + C(g, {}) + x:h"])
def test_contrasts_are_read_from_the_names(data: pd.DataFrame, contrast: str, terms: str) -> None:
    formula = f"y ~ {terms.format(contrast)}"
    fit = smf.ols(formula, data).fit(use_t=False)
    mine = released(fit, formula)
    theirs = fit.get_prediction(data.iloc[:9]).summary_frame()
    np.testing.assert_allclose(
        mine.get_prediction(data.iloc[:9]).summary_frame(), theirs, rtol=1e-9
    )
    at = {"x": 0.5}
    means = mine.marginal_means("g", at=at)
    last = {"Sum": "c", "Helmert": "a"}[contrast]
    named = ["(baseline)" if level == last else level for level in "abc"]
    assert sorted(means.names) == sorted(named)
    for name, mean in zip(means.names, means.estimates, strict=True):
        level = last if name == "(baseline)" else name
        grid = pd.DataFrame({"g": level, "h": ["u", "v"], **at})
        assert mean == pytest.approx(float(fit.predict(grid).mean()))


GROUPED = 'merge(g, low=["a", "b"])'
LUMPED = """lump(g, keep=["b"], other="the rest")"""


@pytest.mark.parametrize(
    ("factor", "group"),
    [
        (GROUPED, {"a": "low", "b": "low", "c": "c"}),
        (LUMPED, {"a": "the rest", "b": "b", "c": "the rest"}),
    ],
)
def test_joined_levels_are_read_from_the_names(
    data: pd.DataFrame, factor: str, group: dict[str, str]
) -> None:
    joined = data.assign(g=data.g.map(group))
    for contrast in ("", ", Sum"):
        coded = f"C(g{contrast})"
        fit = smf.ols(f"y ~ {coded}*x", joined).fit(use_t=False)
        name = f"C({factor}{contrast})" if contrast else factor
        names = [n.replace("[T.", "[").replace(coded, name) for n in fit.params.index]
        mine = released(fit, f"y ~ {name}*x", terms=names)
        np.testing.assert_allclose(mine.predict(data.iloc[:9]), fit.predict(joined.iloc[:9]))
        assert set(mine.marginal_means("g", at={"x": 1.0}).names) <= {
            *group.values(),
            "(baseline)",
        }
        effects = mine.margins(data)
        levels = sorted(set(group.values()))
        ends = [fit.predict(joined.assign(g=level)).mean() for level in levels]
        assert abs(effects.estimates[-1]) == pytest.approx(abs(ends[1] - ends[0]))


def test_centres_scales_and_dates_are_read_from_the_names(data: pd.DataFrame) -> None:
    from reticent.results.design import Design

    scaled = "scale(x, at=3, by=2)"
    names = [
        "center(x, at=-0.5)",
        "I(scale(log(w), at=1e-05, by=2.5)**2)",
        scaled,
        f"{scaled}:h[v]",
    ]
    design, log_w, x = Design(names), (np.log(data.w) - 1e-5) / 2.5, (data.x - 3) / 2
    expected = np.column_stack([data.x + 0.5, log_w**2, x, x * (data.h == "v")])
    np.testing.assert_allclose(design.rows(data), expected)
    slopes = np.column_stack([0 * x, 2 * log_w / 2.5 / data.w, 0 * x, 0 * x])
    np.testing.assert_allclose(design.derivative(data, "w"), slopes, atol=1e-12)
    dates = pd.to_datetime(["2014-05-02", "1969-12-31", None])
    dated = Design(["year(sold)", "month(sold)", 'days_since(sold, "2014-05-01")', "sold"])
    lines = [[2014, 5, 1, 16192], [1969, 12, -16192, -1], [np.nan] * 4]
    for cells in (dates, dates.date, ["2014-05-02", "1969-12-31", ""], [16192, -1, None]):
        np.testing.assert_array_equal(dated.rows({"sold": cells}), lines)
    first = np.array(["1970-01-01"], dtype="datetime64[D]")
    np.testing.assert_array_equal(dated.rows({"sold": first}), [[1970, 1, -16191, 0]])
    np.testing.assert_array_equal(dated.derivative({"sold": [0.0]}, "sold"), [[0, 0, 1, 1]])


def test_months_and_years_are_factors_of_a_date(data: pd.DataFrame) -> None:
    """Two factors of one column; data hold the dates, marginal means have the factors' own
    levels.
    """
    sold = pd.Timestamp("2013-11-01") + pd.to_timedelta(np.arange(ROWS), "D")
    dated = data.assign(sold=sold, m=sold.month, t=sold.year)
    fit = smf.ols("y ~ C(m) + C(t, Sum) + x", dated).fit(use_t=False)
    names = [n.replace("[T.", "[").replace("C(m)", "C(month(sold))") for n in fit.params.index]
    names = [n.replace("C(t, Sum)", "C(year(sold), Sum)") for n in names]
    mine = released(fit, "y ~ C(month(sold)) + C(year(sold), Sum) + x", terms=names)
    public = dated[["sold", "x"]].iloc[::30]
    np.testing.assert_allclose(mine.predict(public), fit.predict(dated.iloc[::30]))
    means = mine.marginal_means("month(sold)", at={"x": 0.0}, baseline="1")
    grid = [
        fit.predict(pd.DataFrame({"m": int(name), "t": [2013, 2014], "x": 0.0})).mean()
        for name in means.names
    ]
    np.testing.assert_allclose(means.estimates, grid)


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        ([1.0], "columns by name"),
        (np.ones((2, 1)), "columns by name"),
        ({"x": ["many"]}, "neither a number"),
        ({"x": ["20000", "35000"]}, "neither a number"),
        ({"x": pd.Categorical(["2", "3"])}, "neither a number"),
        ({"x": ["2020"]}, "neither a number"),
    ],
)
def test_new_data_that_cannot_be_read_are_refused(
    data: pd.DataFrame, frame: Any, named: str
) -> None:
    fit = released(smf.ols("y ~ x", data).fit(), "y ~ x")
    for ask in (fit.predict, fit.margins):
        with pytest.raises(reticent.InvalidFormula, match=named):
            ask(frame)


def counted(data: pd.DataFrame, **fields: str) -> tuple[Any, reticent.RegressionResults]:
    columns = {name: data[column] for name, column in fields.items()}
    fit = smf.glm("count ~ x + g", data, family=sm.families.Poisson(), **columns).fit()
    more = {"family": "poisson", "link": "log", "query": fields}
    return fit, released(fit, "count ~ x + g", **more)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("field", ["offset", "exposure"])
def test_predictions_count_the_offset_and_the_exposure(
    data: pd.DataFrame, field: str, given: bool
) -> None:
    """From the new data's column, or given by itself."""
    fit, mine = counted(data, **{field: "w"})
    new = data.iloc[:7]
    theirs = fit.get_prediction(new, **{field: new.w}).summary_frame()
    told = {field: new.w} if given else {}
    frame = new.drop(columns="w") if given else new
    ours = mine.get_prediction(frame, **told)
    np.testing.assert_allclose(ours.summary_frame(), theirs, rtol=1e-7)
    np.testing.assert_allclose(mine.predict(frame, **told), ours.predicted_mean)
    one = fit.predict(new.iloc[:1], **{field: [2.0]})
    np.testing.assert_allclose(mine.predict(frame.iloc[:1], **{field: 2.0}), one, rtol=1e-9)
    with pytest.raises(reticent.InvalidFormula, match=f"lack w, the {field} of this fit"):
        mine.predict(new.drop(columns="w"))
    with pytest.raises(reticent.InvalidFormula, match="asked for without"):
        linear(data)[1].predict(new, **{field: 1.0})


@pytest.mark.parametrize("field", ["offset", "exposure"])
def test_effects_and_means_count_the_offset_and_the_exposure(
    data: pd.DataFrame, field: str
) -> None:
    fit, mine = counted(data, **{field: "w"})
    mean = np.asarray(fit.predict(data, **{field: data.w}))
    effects = mine.margins(data)
    assert effects.names == ("x", "g[b]", "g[c]")
    assert effects.estimates[0] == pytest.approx(fit.params["x"] * mean.mean(), rel=1e-7)
    gradient = mean @ (exog(fit, data) * fit.params["x"]) / ROWS + mean.mean() * np.eye(4)[3]
    error = np.sqrt(gradient @ np.asarray(fit.cov_params()) @ gradient)
    assert effects.bse[0] == pytest.approx(error, rel=1e-7)
    means = mine.marginal_means("g", at={"x": 0.5, "w": 2.0})
    shift = 2.0 if field == "offset" else np.log(2.0)
    expected = fit.params["Intercept"] + 0.5 * fit.params["x"] + shift
    assert means.estimates[0] == pytest.approx(expected)
    np.testing.assert_allclose(mine.contrasts("g", "trt.vs.ctrl").estimates, fit.params[1:3])
    with pytest.raises(reticent.InvalidFormula, match="released value of w"):
        mine.marginal_means("g", at={"x": 0.5})


def test_new_data_may_be_any_frame_or_records(data: pd.DataFrame) -> None:
    fit, mine = linear(data)
    new = data[["x", "w", "g", "h"]].iloc[:7]
    for frame in (
        new,
        new.to_dict("list"),
        new.to_dict("records"),
        pa.Table.from_pandas(new),
        new.astype({"x": "Float64", "g": "category"}),
    ):
        np.testing.assert_allclose(mine.predict(frame), fit.predict(new), rtol=1e-9)
    absent = new.astype({"x": "Float64", "g": "string"})
    absent.loc[0, "x"] = pd.NA
    absent.loc[1, "g"] = pd.NA
    assert np.isnan(mine.predict(absent)).tolist() == [True, True, *[False] * 5]


@pytest.mark.parametrize("level", ["Don't know", '5" pipe', "low (a", "a]:b", "`", "a: b", "[c]"])
def test_a_level_may_be_any_text(data: pd.DataFrame, level: str) -> None:
    """In every free computation that reads the terms' names."""
    fit = smf.ols("y ~ g * x + h", data).fit(use_t=False)
    names = [n.replace("[T.b]", f"[{level}]").replace("[T.", "[") for n in fit.params.index]
    mine = released(fit, "y ~ g * x + h", terms=names)
    new = data.iloc[:7]
    renamed = new.assign(g=new.g.replace("b", level))
    np.testing.assert_allclose(mine.predict(renamed), fit.predict(new), rtol=1e-9)
    assert f"g[{level}]" in mine.margins(renamed).names
    at = {"x": 0.5}
    assert mine.marginal_means("g", at=at).names == ("(baseline)", level, "c")
    assert mine.contrasts("g", "trt.vs.ctrl", at=at).names[0] == f"{level} - (baseline)"
    tested = mine.wald_test(f"g[{level}] = 0")
    theirs = fit.wald_test("g[T.b] = 0", scalar=True)
    assert tested.statistic == pytest.approx(float(theirs.statistic))


def test_quantile_regressions_predict_by_tau(data: pd.DataFrame) -> None:
    fit = smf.quantreg("y ~ x", data).fit(q=0.5)
    one = released(fit, "y ~ x").release
    halves = {**one["result"], "tau": 0.5}
    more = {**halves, "coefficients": [1.0, 2.0], "tau": 0.75}
    new = {"x": [0.5, 1.0]}

    def regressions(*fits: Any) -> QuantileRegressionResults:
        return QuantileRegressionResults({**one, "result": {"fits": list(fits)}})

    np.testing.assert_allclose(regressions(halves).predict(new), fit.predict(pd.DataFrame(new)))
    both = regressions(halves, more).predict(new)
    assert list(both) == [0.5, 0.75]
    np.testing.assert_allclose(both[0.75], [2.0, 3.0])
    with pytest.raises(AttributeError, match=r"reticent\.table\("):
        released(smf.ols("y ~ x", data).fit(), "y ~ x").summary().as_latex()


def test_a_term_that_was_left_out_is_nan_and_the_rest_answers(data: pd.DataFrame) -> None:
    """g[z] is a declared level without records."""
    fit = smf.ols("y ~ x + g", data).fit()
    plain = released(fit, "y ~ x + g", baselines={"g": "a"})
    kept = dict(plain.result)
    more = {
        "terms": [*kept["terms"], "g[z]"],
        "coefficients": [*kept["coefficients"], None],
        "standard_errors": [*kept["standard_errors"], None],
        "privacy_standard_errors": [*kept["privacy_standard_errors"], None],
        "covariance": [*([*row, None] for row in kept["covariance"]), [None] * 5],
        "confidence_intervals": [*kept["confidence_intervals"], [None, None]],
        "p_values": [*kept["p_values"], None],
        "estimable": [*kept["estimable"], False],
        "warnings": ["No coefficient, as there may be none: g[z]."],
        "directions": [],
        "baselines": {"g": "a"},
    }
    found = released(fit, "y ~ x + g", **more)
    found.check()
    assert np.isnan(found.params["g[z]"])
    assert "No coefficient" in str(found.summary())
    assert "g[z]" in found._repr_html_()
    new = {"x": [0.5, 0.5, 0.5], "g": ["a", "b", "z"]}
    theirs = fit.predict(pd.DataFrame({"x": [0.5, 0.5], "g": ["a", "b"]}))
    mean = found.predict(new)
    assert mean[:2] == pytest.approx(theirs.to_numpy())
    assert np.isnan(mean[2])
    effects = found.margins(new)
    assert effects.estimates[effects.names.index("x")] == pytest.approx(fit.params["x"])
    means, theirs = (each.marginal_means("g", at={"x": 0.5}) for each in (found, plain))
    assert means.estimates[:3] == pytest.approx(theirs.estimates)
    assert np.isnan(means.estimates[means.names.index("z")])
    assert found.wald_test("x = 0").pvalue == plain.wald_test("x = 0").pvalue
    with pytest.raises(reticent.NotEstimable):
        found.wald_test("g[z] = 0")
    assert len(found.to_frame()) == 5
    assert found.plot() is not None
