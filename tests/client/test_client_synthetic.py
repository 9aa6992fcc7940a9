# SPDX-License-Identifier: Apache-2.0
"""Tables of cliques in the client: margins, shares, fits and records, with the noise counted."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import reticent
from reticent.results.cell_fits import IDENTITY, LOGIT, CellDesign, fit_result
from reticent.results.cell_table import CellTable
from support.client.replying_server import release
from support.seeds import seeded

N = 20_000
NUMBERS: dict[str, dict[str, float | None]] = {
    "a": {"1": 1.0, "2": 2.0, "3": 3.0, "4": 4.0},
    "g": {"u": None, "v": None, "w": None},
    "y": {"no": None, "yes": None},
    "z": {"0": 0, "1": 1},
}
LEVELS = [
    {"column": column, "level": level, "number": number, "lower": None, "upper": None}
    for column, levels in NUMBERS.items()
    for level, number in levels.items()
]


def shares() -> Any:
    """(24,) of a, g and y, whose logit is −1 + .4a + .5[w]; g follows a."""
    a, g, y = (x.ravel() for x in np.indices((4, 3, 2)))
    eta = -1 + 0.4 * (a + 1) + 0.5 * (g == 2)
    of_y = np.where(y == 1, 1.0, 0.0) * eta - np.log1p(np.exp(eta))
    p = np.exp(0.3 * a * (g == 1) + of_y)
    return p / p.sum()


def tables(counts: Any, sigma: float, total: float | None = N, **query: Any) -> Any:
    result = {
        "levels": LEVELS,
        "tables": [
            {"columns": ["a", "g", "y"], "values": np.asarray(counts).tolist(), "total": total},
            {"columns": ["y", "z"], "values": [6000.0, 2000.0, 5000.0, 7000.0], "total": total},
        ],
        "standard_error": sigma,
        "n": N,
    }
    asked = {"kind": "synthetic", "columns": ["a", "g", "y", "z"], **query}
    found = reticent.SyntheticTables(release("mean") | {"query": asked, "result": result})
    found.check()
    return found


def noisy(seed: int, sigma: float) -> Any:
    rng = seeded(seed)
    counts = rng.multinomial(N, shares()) + np.rint(rng.normal(0, sigma, 24))
    return counts - (counts.sum() - N) / 24


def rows() -> tuple[Any, Any, Any]:
    """y, the design and the counts of a table without noise."""
    a, g, y = (x.ravel() for x in np.indices((4, 3, 2)))
    return y, np.column_stack([np.ones(24), a + 1, g == 1, g == 2]).astype(float), N * shares()


def test_without_noise_a_logit_is_statsmodels_own_with_its_robust_errors() -> None:
    y, X, counts = rows()
    fit = tables(counts, 1e-9).logit("y ~ a + C(g)")
    theirs = sm.GLM(y, X, sm.families.Binomial(), freq_weights=counts).fit()
    assert fit.names == ("Intercept", "a", "C(g)[v]", "C(g)[w]")
    np.testing.assert_allclose(fit.params, theirs.params, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fit.bse, theirs.bse, rtol=0.02)
    assert np.all(np.asarray(fit.privacy_bse) < 1e-6)
    assert fit.wald_test("a = 0.4").pvalue > 0.9


def test_without_noise_least_squares_are_statsmodels_with_hc0() -> None:
    _, X, counts = rows()
    design = X[:, [0, 2, 3]]
    fit = tables(counts, 1e-9).ols("a ~ C(g)")
    whole = sm.WLS(X[:, 1], design, weights=counts).fit()
    np.testing.assert_allclose(fit.params, whole.params, rtol=1e-6, atol=1e-9)
    e = X[:, 1] - design @ whole.params
    bread = np.linalg.inv((design.T * counts) @ design)
    V = bread @ ((design.T * counts * e**2) @ design) @ bread
    np.testing.assert_allclose(fit.cov_params(), V, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("total", [N, None])
def test_intervals_hold_what_is_true_as_often_as_they_say(total: Any) -> None:
    """Of 300 tables: .95 ± 4.5 standard errors of .0126, and errors that are the spread."""
    truth, held, sd, said = np.array([-1.0, 0.4, 0.0, 0.5]), [], [], []
    for seed in range(300):
        fit = tables(noisy(seed, 40.0), 40.0, total).logit("y ~ a + C(g)")
        low, high = fit.conf_int().T
        held.append((low <= truth) & (truth <= high))
        sd.append(np.asarray(fit.params))
        said.append(np.asarray(fit.bse))
    assert np.all(np.abs(np.mean(held, axis=0) - 0.95) < 0.057)
    np.testing.assert_allclose(np.median(said, axis=0) / np.std(sd, axis=0), 1, atol=0.15)


@pytest.mark.slow
def test_shares_hold_the_population_as_often_as_they_say() -> None:
    truth = shares().reshape(4, 3, 2).sum(axis=2).ravel()
    held = []
    for seed in range(200):
        found = tables(noisy(seed, 20.0), 20.0).shares(["a", "g"])
        off = np.abs(found["share"] - truth).to_numpy()
        held.append(off <= 1.96 * found["standard_error"].to_numpy())
    assert abs(np.mean(held) - 0.95) < 0.015


def test_a_margin_has_the_noise_of_what_it_adds_up() -> None:
    """As drawn: noise of 24 cells on a public sum, then of 4 and of 1."""
    rng = seeded(0)
    z = rng.normal(0, 10.0, (4000, 24))
    z -= z.mean(axis=1, keepdims=True)
    table = CellTable(("a", "g", "y"), np.zeros((4, 3, 2)), 10.0, N)
    margin = table.margin(["a"])
    drawn = z.reshape(-1, 4, 6).sum(axis=2)
    np.testing.assert_allclose(margin.noise(np.eye(4)), np.cov(drawn.T), atol=45)
    assert margin.noise(np.ones((1, 4)))[0, 0] == pytest.approx(0, abs=1e-9)
    counts = np.arange(24.0).reshape(4, 3, 2)
    turned = CellTable(("a", "g", "y"), counts, 1.0, None).margin(["y", "a"])
    np.testing.assert_array_equal(turned.counts, counts.sum(axis=1).T)


@pytest.mark.slow
def test_any_analysis_has_the_errors_of_the_fit_that_it_repeats() -> None:
    found = tables(noisy(1, 20.0), 20.0)

    def slope(cells: Any) -> Any:
        X = np.column_stack([np.ones(len(cells)), cells["g"] == "v", cells["g"] == "w"])
        w = cells["weight"].to_numpy()
        return np.linalg.solve((X.T * w) @ X, X.T @ (w * cells["a"]))

    free = found.fit(slope, ["a", "g"], draws=400)
    fit = found.ols("a ~ C(g)")
    np.testing.assert_allclose(free.params, np.asarray(fit.params), rtol=1e-9)
    np.testing.assert_allclose(free.bse, np.asarray(fit.bse), rtol=0.2)
    assert np.all(free.conf_int()[:, 1] - free.conf_int()[:, 0] > 3.9 * free.bse)
    with pytest.raises(ValueError, match="at least 10"):
        found.fit(slope, ["a", "g"], draws=2)


def test_an_analysis_that_noise_displaces_has_no_interval() -> None:
    """A sum of squares grows by the noise's variance in each cell."""

    def both(cells: Any) -> Any:
        w = cells["weight"].to_numpy()
        return [w @ w, w @ cells["a"]]

    free = tables(noisy(1, 600.0), 600.0).fit(both, ["a", "g", "y"])
    assert np.isnan(free.conf_int()).tolist() == [[True, True], [False, False]]
    assert free.displacement[0] > free.bse[0]
    assert not np.isnan(tables(noisy(1, 5.0), 5.0).fit(both, ["a", "g", "y"]).conf_int()).any()


def test_a_condition_that_nobody_meets_has_no_shares() -> None:
    z = seeded(0).normal(0, 10.0, 24)
    found = tables(z, 10.0, None)
    for ask in (found.shares, found.plot, lambda names: found.fit(lambda _: [0.0], names)):
        with pytest.raises(reticent.InvalidQuery, match="noise hides how many"):
            ask(["a", "g"])
    assert not any(found.ols("a ~ C(g)").estimable)
    assert len(tables(noisy(1, 10.0), 10.0, None).shares(["a", "g"])) == 12


def test_a_column_that_is_0_throughout_has_no_interval_and_a_constant_is_exact() -> None:
    """Columns whose bounds coincide."""
    table = CellTable(("x", "y"), np.array([[4.0, 6.0]]), 1.0, 10.0)
    flat = CellDesign(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [1.0, 0.0]]), ("Intercept", "x"))
    assert fit_result(table, flat, LOGIT, "", 10)["estimable"] == [False, False]
    constant = CellDesign(np.full(2, 5.0), np.ones((2, 1)), ("Intercept",))
    exact = fit_result(table, constant, IDENTITY, "", 10)
    np.testing.assert_allclose(exact["confidence_intervals"], [[5.0, 5.0]], atol=1e-6)


def test_columns_of_no_common_clique_get_a_sentence() -> None:
    found = tables(noisy(1, 5.0), 5.0)
    with pytest.raises(reticent.InvalidQuery, match="No table has"):
        found.logit("z ~ a")
    with pytest.raises(reticent.InvalidQuery, match="No table has"):
        found.shares(["a", "z"])
    with pytest.raises(reticent.InvalidQuery, match="Name different columns"):
        found.shares(["a", "a"])


@pytest.mark.parametrize(
    "formula", ["y", "y ~ a:g", "y ~ a + a", "C(y) ~ a", "y ~ log(a)", "g ~ a"]
)
def test_formulas_are_of_columns(formula: str) -> None:
    with pytest.raises(reticent.InvalidFormula):
        tables(noisy(1, 5.0), 5.0).ols(formula)


def test_a_logit_is_of_two_values() -> None:
    with pytest.raises(reticent.InvalidQuery, match="two levels"):
        tables(noisy(1, 5.0), 5.0).logit("a ~ C(g)")


def test_noise_that_hides_the_coefficients_leaves_no_interval() -> None:
    fit = tables(noisy(1, 3000.0), 3000.0).logit("y ~ a + C(g)")
    assert not any(fit.estimable)
    assert np.isnan(fit.conf_int()).all()
    assert "No intervals" in str(fit.summary())


def test_records_of_a_clique_follow_its_table_and_say_what_they_are() -> None:
    found = tables(noisy(1, 5.0), 5.0)
    frame = found.records(columns=["g", "y"])
    assert len(frame) == N
    assert frame.attrs["reticent"] == "synthetic, not for inference"
    np.testing.assert_allclose(
        frame.groupby(["g", "y"]).size() / N,
        shares().reshape(4, 3, 2).sum(axis=0).ravel(),
        atol=0.02,
    )
    assert found.records(50, ["a"], seed=3).equals(found.records(50, ["a"], seed=3))
    with pytest.raises(reticent.InvalidQuery, match="Name different columns"):
        found.records(columns=["a", "nobody"])
    with pytest.raises(ValueError, match="at least 1"):
        found.records(0, ["a"])


def test_positive_counts_are_the_nearest_of_their_sum() -> None:
    table = CellTable(("a",), np.array([-3.0, 1.0, 6.0, 6.0]), 1.0, 10.0)
    np.testing.assert_allclose(table.positive(), [0.0, 0.0, 5.0, 5.0])


def test_records_of_all_columns_are_of_mbis_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of it: its tables, their noise, and no junction tree that is too large."""
    asked: dict[str, Any] = {}

    def estimate(domain: Any, known: Any, **given: Any) -> Any:
        asked.update(domain=domain, known=known, **given)

        def drawn(rows: int) -> Any:
            return SimpleNamespace(data={name: np.random.randint(0, 2, rows) for name in domain[0]})

        return SimpleNamespace(synthetic_data=drawn)

    mbi: Any = ModuleType("mbi")
    mbi.Domain = lambda names, sizes: (names, sizes)
    mbi.LinearMeasurement = lambda values, clique, stddev: (clique, stddev, len(values))
    mbi.junction_tree = SimpleNamespace(
        hypothetical_model_size=lambda _, cliques: 0.1 if len(cliques) < 2 else 100.0
    )
    mbi.estimation = SimpleNamespace(MirrorDescent=lambda: SimpleNamespace(estimate=estimate))
    monkeypatch.setitem(sys.modules, "mbi", mbi)
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    frame = tables(noisy(1, 5.0), 5.0).records(70)
    assert np.random.get_state()[1].tolist() == before
    assert list(frame) == ["a", "g", "y", "z"]
    assert set(frame["g"]) == {"u", "v"}
    assert frame.equals(tables(noisy(1, 5.0), 5.0).records(70))
    assert not frame.equals(tables(noisy(1, 5.0), 5.0).records(70, seed=1))
    assert asked["known"] == [(("y", "z"), 5.0, 4)]  # more informative than the other one
    assert asked["known_total"] == N


def test_a_frame_has_every_released_count() -> None:
    frame = tables(noisy(1, 5.0), 5.0).to_frame()
    assert len(frame) == 28
    assert frame.loc[24].tolist() == ["y × z", "no × 0", 6000.0]


def test_a_summary_names_the_cliques() -> None:
    text = str(tables(noisy(1, 5.0), 5.0).summary())
    assert "a × g × y" in text
    assert "y × z" in text
