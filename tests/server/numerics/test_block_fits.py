# SPDX-License-Identifier: Apache-2.0
"""Many small fits at once, against fits one by one and statsmodels; blocks without an estimate."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from benchmarks.noise_free.proposal2 import fit_proposal2

from reticent_server.domain.columns import BlockModel
from reticent_server.numerics.block_fits import Blocks, block_estimates, masked_median
from support.seeds import seeded

K, B = 6, 60
FAMILIES = {
    "binomial": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}


def model(
    equation: Any, size: int = 2, tuning: float = 1.345, corrected: bool = False
) -> BlockModel:
    return BlockModel(equation, size, tuning, 1e4, corrected)


def design(rng: np.random.Generator, k: Any = K, b: Any = B) -> Any:
    return np.stack([np.ones((k, b)), rng.normal(size=(k, b)) + 3], axis=2)


def responses(rng: np.random.Generator, equation: Any, X: Any) -> Any:
    eta = X @ np.array([-1.5, 0.6])
    match equation:
        case "binomial":
            return (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
        case "poisson":
            return rng.poisson(np.exp(eta)).astype(float)
        case _:
            return np.exp(eta) * rng.gamma(2.0, 0.5, size=eta.shape)


def masked(X: Any, y: Any, used: Any) -> Blocks:
    return Blocks(X * used[:, :, None], y * used, used)


@pytest.mark.parametrize("equation", FAMILIES)
def test_likelihood_is_that_of_statsmodels_on_the_records_in_use(equation: str) -> None:
    rng = seeded(3)
    X = design(rng)
    y, used = responses(rng, equation, X), (rng.random((K, B)) < 0.8).astype(float)
    found = block_estimates(model(equation), masked(X, y, used))
    for k in range(K):
        kept = used[k] > 0
        fit = sm.GLM(y[k, kept], X[k, kept], family=FAMILIES[equation]).fit(tol=1e-12)
        np.testing.assert_allclose(found[k], fit.params, rtol=1e-5, atol=1e-6)


def test_huber_s_regression_solves_its_equation() -> None:
    rng = seeded(4)
    X = design(rng)
    y = X @ np.array([2.0, -1.0]) + rng.standard_t(2, size=(K, B))
    for beta, x, z in zip(
        block_estimates(model("huber"), Blocks(X, y, np.ones((K, B)))), X, y, strict=True
    ):
        r = z - x @ beta
        s = np.median(np.abs(r)) / 0.6744897501960817
        scores = x.T @ np.clip(r / s, -1.345, 1.345) / B
        assert np.abs(scores).max() < 1e-4


def test_proposal_2_is_that_of_a_fit_alone() -> None:
    rng = seeded(5)
    y = rng.standard_t(3, size=(K, B)) * 3 + 10
    found = block_estimates(
        model("location_scale"), Blocks(np.zeros((K, B, 0)), y, np.ones((K, B)))
    )
    for pair, values in zip(found, y, strict=True):
        fit = fit_proposal2(values, 1.345)
        np.testing.assert_allclose(pair, [fit.location, fit.scale], rtol=1e-3)


def test_firth_s_correction_maximises_the_likelihood_with_jeffreys_prior() -> None:
    """The score of log-likelihood + ½ ln det information, by differences."""
    rng = seeded(6)
    X = design(rng)
    y = responses(rng, "binomial", X)
    found = block_estimates(model("binomial", corrected=True), Blocks(X, y, np.ones((K, B))))

    def penalised(beta: Any, x: Any, z: Any) -> Any:
        eta = x @ beta
        w = np.exp(-np.logaddexp(0, eta) - np.logaddexp(0, -eta))
        return z @ eta - np.logaddexp(0, eta).sum() + 0.5 * np.linalg.slogdet((x.T * w) @ x)[1]

    for beta, x, z in zip(found, X, y, strict=True):
        for step in np.eye(2) * 1e-4:
            slope = (penalised(beta + step, x, z) - penalised(beta - step, x, z)) / 2e-4
            assert abs(slope) < 1e-3


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("equation", "b", "truth"),
    [("binomial", 40, 0.6), ("gamma", 12, 0.6), ("location_scale", 12, 1)],
)
def test_the_correction_takes_most_of_the_bias_away(equation: str, b: int, truth: float) -> None:
    """Means of 5,000 blocks: what is left of the bias is below half of it, and the bias is seen."""
    rng = seeded(7)
    k, j = 5_000, 1
    X = design(rng, k, b)
    if equation == "location_scale":
        X, y = np.zeros((k, b, 0)), rng.normal(size=(k, b))
    else:
        y = responses(rng, equation, X)
    blocks = Blocks(X, y, np.ones((k, b)))
    plain, corrected = (
        block_estimates(model(equation, corrected=c), blocks)[:, j] for c in (False, True)
    )
    both = np.isfinite(plain) & np.isfinite(corrected)
    if equation == "gamma":  # its slope has no bias; the intercept has
        plain, corrected = (
            block_estimates(model(equation, corrected=c), blocks)[:, 0] for c in (False, True)
        )
        truth = -1.5
    bias, left = plain[both].mean() - truth, corrected[both].mean() - truth
    error = plain[both].std() / np.sqrt(both.sum())
    assert abs(bias) > 3 * error
    assert abs(left) < 0.5 * abs(bias)


def test_blocks_without_an_estimate() -> None:
    """Separated, constant, too few in use, none in use, all zero; the others do not notice."""
    rng = seeded(8)
    X = design(rng, 6, 30)
    y, used = responses(rng, "binomial", X), np.ones((6, 30))
    alone = block_estimates(model("binomial"), Blocks(X[:1], y[:1], used[:1]))
    X[1, :, 1] = np.linspace(-2, 2, 30)
    y[1] = (X[1, :, 1] > 0).astype(float)
    X[2, :, 1] = 1.0
    used[3, 2:] = 0
    used[4] = 0
    X[5, :, 1] = np.linspace(-2, 2, 30)
    y[5] = 0
    found = block_estimates(model("binomial"), masked(X, y, used))
    np.testing.assert_array_equal(found[0], alone[0])
    assert np.isnan(found[1:]).all()
    firth = block_estimates(model("binomial", corrected=True), masked(X, y, used))
    assert np.isfinite(firth[[0, 1, 5]]).all()
    for equation in ("huber", "poisson", "gamma", "location_scale"):
        found = block_estimates(model(equation, corrected=True), masked(X, 0 * y, used))
        assert found.shape == (6, 2)


@pytest.mark.parametrize("equation", ["huber", "location_scale", *FAMILIES])
def test_a_block_s_estimate_does_not_know_the_other_blocks(equation: str) -> None:
    """Whatever the others hold: no error, and the same bits."""
    rng = seeded(9)
    X = design(rng)
    y = responses(rng, equation, X)
    before = block_estimates(model(equation, corrected=True), Blocks(X, y, np.ones((K, B))))
    for value in (0.0, 1e300, -1e300, 1e-300):
        other_X, other_y = X.copy(), y.copy()
        other_X[1:, :20], other_y[2:] = value, value
        after = block_estimates(
            model(equation, corrected=True), Blocks(other_X, other_y, np.ones((K, B)))
        )
        np.testing.assert_array_equal(after[0], before[0])


def test_medians_of_what_is_in_use() -> None:
    values = np.array([[3.0, 1.0, 2.0, 9.0], [4.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0]])
    used = np.array([[1.0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(masked_median(values, used), [2.0, 2.5, 0.0])
