# SPDX-License-Identifier: Apache-2.0
"""Wald tests of linear hypotheses, against the textbook formula and statsmodels."""

import numpy as np
import pytest
from scipy import stats

import reticent
from reticent._hypothesis_grammar import parse
from reticent._queries import build
from reticent_server.formula import parse_hypothesis
from support.client.replying_server import COEFFICIENTS, COVARIANCE, TERMS, release

FIT = reticent.RegressionResults(release())


@pytest.mark.parametrize(
    ("text", "R", "r"),
    [
        ("x1 = 0", [[0, 1, 0, 0, 0]], [0]),
        ("x1", [[0, 1, 0, 0, 0]], [0]),
        ("x1 = x2", [[0, 1, -1, 0, 0]], [0]),
        ("x1=0,x2 = g[b]", [[0, 1, 0, 0, 0], [0, 0, 1, -1, 0]], [0, 0]),
        ("2*x1 - x2*.5 = 3 - Intercept", [[1, 2, -0.5, 0, 0]], [3]),
        ("-x1 + 1e0 = +2", [[0, -1, 0, 0, 0]], [1]),
        ("x1:x2 = x1", [[0, -1, 0, 0, 1]], [0]),
        ("x1 + x1 = 4", [[0, 2, 0, 0, 0]], [4]),
        ("1 = x2", [[0, 0, -1, 0, 0]], [-1]),
    ],
)
def test_hypotheses_in_words(text: str, R: list[list[float]], r: list[float]) -> None:
    _, matrix, right = parse(text, TERMS)
    assert matrix.tolist() == R
    assert right.tolist() == r


def test_a_basis_in_a_hypothesis() -> None:
    names = ["poly(x, 2)[1]", "poly(x, 2)[2]", "bs(x, knots=[0, 1], degree=3)[1]"]
    text = "poly(x, 2)[2] = 0, bs(x, knots=[0, 1], degree=3)[1] = 2*poly(x, 2)[1]"
    _, R, r = parse(text, names)
    assert R.tolist() == [[0, 1, 0], [-2, 0, 1]]
    assert r.tolist() == [0, 0]


def test_the_server_reads_hypotheses_in_one_text() -> None:
    """It knows the coefficients' names, and a level may hold a comma or a bracket."""
    text = "C(g)[a, b] = 0, C(g)[low (a] = 0, C(g)[Don't know]"
    query = build("test", "y ~ x", f" {text} ")
    assert query["hypothesis"] == [text]
    names = ["Intercept", "C(g)[a, b]", "C(g)[low (a]", "C(g)[Don't know]"]
    assert parse_hypothesis(query["hypothesis"], names).df == 3


def test_names_that_look_like_formulas() -> None:
    names = ["x", "x1", "I(x**2)", "C(g)[a, b]", "log(x)", "C(g)[a, b]:x"]
    texts, R, r = parse(["I(x**2) = 2*C(g)[a, b]", "C(g)[a, b]:x = x", "log(x) = x1"], names)
    assert texts == ["I(x**2) = 2*C(g)[a, b]", "C(g)[a, b]:x = x", "log(x) = x1"]
    assert R.tolist() == [[0, 0, 1, -2, 0, 0], [-1, 0, 0, 0, 0, 1], [0, -1, 0, 0, 1, 0]]
    assert r.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "x1 =", "= 0", "x1 = 0,", "x9 = 0", "x1 x2 = 0", "2 x1 = 0", "x1*x2 = 0", "x1 == 0"),
        *("x1 < 0", "x = 0", "1 = 0", "x1 = x1", "__import__('os')", "x1*", "2*", "x1 = 0 x2 = 0"),
    ],
)
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(reticent.InvalidHypothesis):
        FIT.wald_test(text)


def test_against_the_formula() -> None:
    test = FIT.wald_test("x1 = 0.4, x2 = g[b]")
    R = np.array([[0, 1, 0, 0, 0], [0, 0, 1, -1, 0]])
    difference = R @ COEFFICIENTS - [0.4, 0]
    statistic = difference @ np.linalg.inv(R @ np.array(COVARIANCE) @ R.T) @ difference
    assert test.statistic == pytest.approx(statistic)
    assert test.df == 2
    assert test.pvalue == pytest.approx(stats.chi2.sf(statistic, 2))
    assert repr(test) == (
        f"Wald test of x1 = 0.4, x2 = g[b]: chi2(2) = {statistic:.4g}, p = {test.pvalue:.4g}"
    )
    assert FIT.wald_test(["x1 = 0.4", "x2 = g[b]"]).statistic == test.statistic


def test_one_coefficient_is_the_square_of_its_z() -> None:
    test = FIT.wald_test("x2")
    assert test.statistic == pytest.approx(FIT.tvalues["x2"] ** 2)
    assert test.pvalue == pytest.approx(2 * stats.norm.sf(abs(FIT.tvalues["x2"])))


def test_small_units_are_no_obstacle() -> None:
    document = release()
    scale = np.array([1e-9, 1.0, 1e9, 1.0, 1.0])
    document["result"]["covariance"] = (np.array(COVARIANCE) * np.outer(scale, scale)).tolist()
    document["result"]["coefficients"] = (np.array(COEFFICIENTS) * scale).tolist()
    scaled = reticent.RegressionResults(document).wald_test("Intercept, x1, x2")
    assert scaled.statistic == pytest.approx(FIT.wald_test("Intercept, x1, x2").statistic)


def test_repeated_hypotheses_are_refused() -> None:
    with pytest.raises(reticent.InvalidHypothesis, match="repeat or contradict"):
        FIT.wald_test("x1 = x2, x2 = g[b], x1 = g[b]")
    with pytest.raises(reticent.InvalidHypothesis, match="repeat or contradict"):
        FIT.wald_test("x1 = 0, x1 = 1")


def test_what_is_below_the_noise_is_not_tested() -> None:
    with pytest.raises(reticent.NotEstimable, match=r"Not identifiable .*: x1 = x1:x2\."):
        FIT.wald_test("x2 = 0, x1 = x1:x2")
    document = release()
    for i, j in ((1, 1), (1, 2), (2, 1), (2, 2)):
        document["result"]["covariance"][i][j] = 0.01
    with pytest.raises(reticent.NotEstimable, match="singular"):
        reticent.RegressionResults(document).wald_test("x1, x2")


def with_directions() -> reticent.RegressionResults:
    """x1 and x2 cannot be told apart; their sum can."""
    vectors = np.eye(5)
    vectors[1:3, 1:3] = [[0.7, 0.7], [7, -7]]
    document = release()
    document["result"]["directions"] = [
        {"vector": vector.tolist(), "resolved": k != 2} for k, vector in enumerate(vectors)
    ]
    document["result"]["estimable"] = [True, False, False, True, True]
    return reticent.RegressionResults(document)


def test_of_a_pair_that_cannot_be_told_apart_the_sum_is_tested() -> None:
    fit = with_directions()
    for text in ("x1 + x2 = 1", "x1 + x2, g[b], x1:x2", "Intercept"):
        assert 0 <= fit.wald_test(text).pvalue <= 1
    for text, named in {
        "x1": "x1",
        "x2 = 3": "x2 = 3",
        "Intercept, x1 = x2": "x1 = x2",
        "x1 + 1.6*x2, x1 + x2": "x1 + 1.6*x2",
        "x1 + 1.1*x2, x1 + .9*x2": "x1 + 1.1*x2, x1 + .9*x2",
    }.items():
        with pytest.raises(reticent.NotEstimable) as refused:
            fit.wald_test(text)
        assert f"epsilon: {named}." in str(refused.value)


def test_what_few_records_decide_is_tested_by_no_hypothesis() -> None:
    fit = with_directions()
    fit.result["estimable"][3] = False  # its direction is resolved: few records decide it
    for text in ("g[b] = 0", "g[b] = Intercept", "Intercept, g[b]"):
        with pytest.raises(reticent.NotEstimable):
            fit.wald_test(text)
    assert 0 <= fit.wald_test("x1 + x2, x1:x2").pvalue <= 1


def test_directions_have_the_size_of_the_fit() -> None:
    fit = with_directions()
    fit.check()
    fit.result["directions"][0]["vector"].pop()
    with pytest.raises(ValueError, match="fit its number of terms"):
        fit.check()
