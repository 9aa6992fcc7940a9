# SPDX-License-Identifier: Apache-2.0
"""Released values: statsmodels' names, text and HTML, files, and No Reply."""

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import reticent
from support.client.replying_server import COEFFICIENTS, COVARIANCE, TERMS, Server, release


@pytest.fixture
def fit(server: Server) -> reticent.RegressionResults:
    ds = server.dataset()
    server.always(201, release())
    answer = ds.linear_regression("y ~ x1*x2 + g", epsilon=1.0)
    assert isinstance(answer, reticent.RegressionResults)
    return answer


def test_the_arrays(fit: reticent.RegressionResults) -> None:
    assert fit.names == tuple(TERMS)
    assert fit.params.tolist() == COEFFICIENTS
    assert fit.params["x1:x2"] == 1.0
    assert fit.cov_params().tolist() == COVARIANCE
    assert fit.bse.tolist()[:-1] == pytest.approx(np.sqrt(np.diag(COVARIANCE))[:-1])
    assert np.isnan(fit.bse["x1:x2"])
    assert np.isnan(fit.privacy_bse["x1:x2"])
    assert fit.privacy_bse["x1"] == 0.03
    assert fit.sampling_bse["x1"] == pytest.approx(0.04)
    assert fit.tvalues["x1"] == pytest.approx(10.0)
    assert fit.pvalues["x2"] == 0.0027
    assert np.isnan(fit.pvalues["x1:x2"])
    assert fit.estimable == (True, True, True, True, False)
    assert (fit.nobs, fit.scale, fit.tuning) == (20_000, 1.25, 1.0)
    assert fit.formula == "y ~ x1*x2 + g"
    assert (fit.status, fit.id, fit.dataset, fit.version) == ("reply", "rel_1", "houses", 2)
    assert fit.charged.epsilon == 1.0
    assert fit.guarantee.tier == "unconditional"
    assert fit.release == release()


def test_intervals_keep_the_released_calibration(fit: reticent.RegressionResults) -> None:
    released = np.array(release()["result"]["confidence_intervals"], dtype=float)
    assert np.array_equal(fit.conf_int(), released, equal_nan=True)
    wide, narrow = stats.norm.ppf([0.995, 0.95])
    for alpha, z in ((0.01, wide), (0.1, narrow)):
        lower, upper = fit.conf_int(alpha).T
        expected = z * np.asarray(fit.bse) * [1, 1, 1.25, 1, np.nan]
        assert upper - lower == pytest.approx(2 * expected, nan_ok=True)
        assert (upper + lower)[:4] == pytest.approx(2 * np.asarray(fit.params)[:4])


def test_vectors_are_arrays_with_names(fit: reticent.RegressionResults) -> None:
    params = fit.params
    assert isinstance(params, np.ndarray)
    assert params.to_dict()["g[b]"] == 0.1
    assert (params / fit.bse).names == ()
    assert params[1:3].tolist() == [0.5, -0.3]
    assert repr(params).splitlines()[1].split() == ["x1", "0.5"]
    with pytest.raises(KeyError, match="the names are Intercept, x1"):
        params["absent"]
    with pytest.raises(ValueError, match="read-only"):
        params[0] = 1.0
    with pytest.raises(ValueError, match="one name for each value"):
        reticent.Vector([1.0], ["a", "b"])


def test_the_summary(fit: reticent.RegressionResults) -> None:
    text = str(fit.summary())
    lines = text.splitlines()
    (row,) = (line for line in lines if line.startswith("x1 "))
    cells = "x1 0.5000 0.0500 0.0300 0.0400 10.00 <.001 0.4020 0.5980"
    assert " ".join(row.split()) == cells
    assert "Linear regression on houses (version 2)" in lines
    assert "Formula: y ~ x1*x2 + g" in lines
    assert "Records: 20,000   Residual scale: 1.2500   c = 1" in lines
    assert "Charged: ε = 1, δ = 1e-06, ρ = 0.02436. Release rel_1, 2026-01-02T03:04:05Z." in lines
    assert "Guarantee: (1, 1e-06)-differentially private, unconditional." in text
    assert "Replacing one row changes" in text.replace("\n", " ")
    assert repr(fit) == repr(fit.summary()) == text


def test_the_summary_says_where_noise_makes_an_interval_useless(
    fit: reticent.RegressionResults,
) -> None:
    text = " ".join(str(fit.summary()).split())
    assert "- Useless intervals, made of privacy noise and holding both signs: g[b] (5.0×)." in text
    assert text.count("Not identifiable") == 1
    assert "- Not identifiable at this epsilon (collinear, constant or too rare): x1:x2." in text
    assert "x1:x2 (not identifiable) 1.0000 – – – – – – –" in text


def test_noise_that_leaves_the_sign_is_said_differently() -> None:
    document = release()
    document["result"]["privacy_standard_errors"][0] = 0.195
    text = " ".join(str(reticent.RegressionResults(document).summary()).split())
    assert "- Intervals that are mostly privacy noise: Intercept (4.5×)." in text


def test_what_many_coefficients_have_in_common_is_said_once() -> None:
    document = release()
    document["result"]["estimable"] = [True, False, False, False, False]
    document["result"]["warnings"] = []
    text = " ".join(str(reticent.RegressionResults(document).summary()).split())
    assert "- Not identifiable at this epsilon: x1, x2, g[b], x1:x2." in text
    assert text.count("Do not interpret") == 1


def test_missing_numbers_are_shown_as_dashes() -> None:
    document = release()
    for name in ("coefficients", "standard_errors", "privacy_standard_errors", "p_values"):
        document["result"][name][4] = None
    document["result"]["covariance"][4] = [None] * 5
    document["result"]["confidence_intervals"][4] = [None, None]
    document["result"]["scale"] = None
    fit = reticent.RegressionResults(document)
    assert np.isnan(fit.params["x1:x2"])
    (row,) = (line for line in str(fit.summary()).splitlines() if line.startswith("x1:x2 "))
    assert row.split()[3:] == ["–"] * 8
    assert fit.wald_test("x1 = 0").df == 1


def test_html_is_escaped() -> None:
    document = release()
    document["result"]["terms"] = ["Intercept", "g[<script>]", "x2", "x3", "x4"]
    html = reticent.RegressionResults(document)._repr_html_()
    assert "g[&lt;script&gt;]" in html
    assert "<script>" not in html


def test_a_frame(fit: reticent.RegressionResults) -> None:
    frame = fit.to_frame()
    assert frame.loc["x1", "privacy_bse"] == 0.03
    assert frame.loc["g[b]", "upper"] == fit.conf_int()[3, 1]
    assert list(frame.index) == TERMS


class Axes:
    """Records what is drawn, in place of matplotlib's, which is optional."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **_: self.calls.append((name, arguments))


def test_a_plot_shows_every_slope(fit: reticent.RegressionResults) -> None:
    axes = Axes()
    assert fit.plot(axes) is axes
    (labels,) = (arguments[1] for name, arguments in axes.calls if name == "set_yticks")
    assert labels == ["x1:x2 (not identifiable)", "g[b]", "x2", "x1"]
    lines = [arguments for name, arguments in axes.calls if name == "plot"]
    x1 = [line for line in lines if line[1][0] == 3]
    assert x1[0][0] == pytest.approx(fit.conf_int()[1])
    assert x1[1][0] == pytest.approx([0.5 - 1.96 * 0.04, 0.5 + 1.96 * 0.04], abs=1e-4)
    assert x1[2][0] == [0.5]
    assert not [line for line in lines if line[1][0] == 0]


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_optional_packages(
    package: str, call: str, fit: reticent.RegressionResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.pyplot", None)
    with pytest.raises(reticent.MissingDependency, match=f"needs {package}: pip install"):
        getattr(fit, call)()


def test_a_count_and_a_mean() -> None:
    count = reticent.Estimate(release("count"))
    assert (float(count), count.bse, count.privacy_bse, count.sampling_bse) == (523.5, 5, 5, 0)
    assert count.conf_int() == pytest.approx((513.70018, 533.29982))
    assert "523.5000   95 % interval [513.7002, 533.2998]" in str(count.summary())
    assert 'Where: zone == "a"' in repr(count)
    mean = reticent.Estimate(release("mean"))
    assert (mean.privacy_bse, mean.sampling_bse, mean.nobs) == (3.0, 4.0, 20_000)
    assert "not larger than its privacy noise" not in repr(mean)


def test_a_count_below_its_noise_says_so() -> None:
    document = release("count")
    document["result"]["value"] = -3.0
    assert "not larger than its privacy noise" in repr(reticent.Estimate(document))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("no_reply", "safety test did not pass"),
        ("failed", "could not be finished"),
        ("pending", "not ready yet"),
        ("cancelled", "given back"),
        ("of a later version", "The release is of a later version."),
    ],
)
def test_no_reply_is_a_result_to_look_at(status: str, words: str, server: Server) -> None:
    ds = server.dataset()
    server.always(201, release(status=status, result=None))
    fit = ds.linear_regression("y ~ x1", epsilon=1.0)
    assert isinstance(fit, reticent.NoReply)
    assert fit.status == status
    assert words in " ".join(str(fit.summary()).split())
    assert fit.charged.epsilon == 1.0
    assert fit.guarantee.epsilon == 1.0
    assert not hasattr(fit, "params")
    with pytest.raises(AttributeError, match=f"status of this release is '{status}'"):
        _ = fit.params


def test_a_release_survives_a_file(fit: reticent.RegressionResults, tmp_path: pathlib.Path) -> None:
    fit.save(tmp_path / "fit.json")
    again = reticent.load(tmp_path / "fit.json")
    assert isinstance(again, reticent.RegressionResults)
    assert again.release == fit.release
    assert str(again.summary()) == str(fit.summary())
    (tmp_path / "raw.json").write_text(json.dumps(release("count")), "utf-8")
    assert isinstance(reticent.load(tmp_path / "raw.json"), reticent.Estimate)
    (tmp_path / "other.json").write_text("{}", "utf-8")
    with pytest.raises(reticent.UnexpectedReply):
        reticent.load(tmp_path / "other.json")
    (tmp_path / "other.json").write_text("{", "utf-8")
    with pytest.raises(reticent.UnexpectedReply):
        reticent.load(tmp_path / "other.json")


def test_a_kind_of_a_later_version_can_be_looked_at() -> None:
    document = release("mean") | {"query": {"kind": "new_kind"}, "result": {"point": [1, 2]}}
    text = repr(reticent.Release(document))
    assert "New kind on houses" in text
    assert "point: [1, 2]" in text


def test_a_fit_by_person_names_its_clusters() -> None:
    plain = reticent.RegressionResults(release())
    terms = plain.result["terms"]
    assert plain.clusters is plain.effective_clusters is plain.df_resid is None
    assert "Clusters" not in str(plain.summary())
    more = {
        "clusters": 4012.4,
        "effective_clusters": 1801.2,
        "degrees_of_freedom": [150.0 + k for k in range(len(terms))],
    }
    fit = reticent.RegressionResults(release(result=plain.result | more))
    text = str(fit.summary())
    assert "Clusters: 4,012 persons with a row in use (noisy)   effective: 1,801" in text
    assert f"degrees of freedom: 150 to {149 + len(terms)}" in text
    assert "Persons:" in text
    assert fit.df_resid is not None
    assert fit.df_resid[terms[0]] == 150
    more["degrees_of_freedom"] = [150.0] + [None] * (len(terms) - 1)
    one = reticent.RegressionResults(release(result=plain.result | more))
    assert "degrees of freedom: 150" in str(one.summary())
    more["degrees_of_freedom"] = [None] * len(terms)
    none = reticent.RegressionResults(release(result=plain.result | more))
    assert "degrees of freedom: not known" in str(none.summary())
