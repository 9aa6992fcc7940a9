# SPDX-License-Identifier: Apache-2.0
"""Cohen's kappa: statsmodels' without noise, and with noise an interval that holds the truth."""

from typing import Any

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

import reticent
from reticent.results.agreement import kappa, weights_of
from support.client.replying_server import release
from support.seeds import seeded

P = np.array([[0.3, 0.05, 0.02], [0.06, 0.2, 0.06], [0.01, 0.08, 0.22]])


@pytest.mark.parametrize("kind", [None, "linear", "quadratic"])
def test_without_noise_kappa_is_the_textbook_s(kind: Any) -> None:
    counts = np.round(1000 * P)
    theirs = cohens_kappa(counts, wt=kind)
    ours = kappa(counts, 0.0, weights_of(3, kind), total=True)
    assert ours.value == pytest.approx(theirs.kappa)
    assert ours.bse == pytest.approx(theirs.std_kappa, rel=1e-6)
    assert ours.privacy_bse == 0.0


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("kind", [None, "quadratic"])
def test_intervals_count_the_noise(kind: Any, total: bool) -> None:
    """Of 800 intervals of level .95, chances below 10⁻⁶ outside of .915 to .985 (binomial)."""
    rng, W, n, sigma = seeded(7), weights_of(3, kind), 1000, 12.0
    truth = kappa(P, 0.0, W, total=True).value
    held, errors, spread = [], [], []
    for _ in range(800):
        noise = rng.normal(0, sigma, P.shape)
        if total:
            noise -= noise.mean()
        counts = rng.multinomial(n, P.ravel()).reshape(P.shape) + noise
        found = kappa(counts, sigma * (np.sqrt(1 - 1 / 9) if total else 1.0), W, total=total)
        low, high = found.conf_int()
        held.append(low <= truth <= high)
        errors.append(found.bse)
        spread.append(found.value)
    assert 0.915 <= np.mean(held) <= 0.985
    assert np.std(spread) == pytest.approx(np.mean(errors), rel=0.1)


@pytest.mark.parametrize("total", [False, True])
def test_the_noise_s_part_is_the_delta_method_s(total: bool) -> None:
    """With finite differences of the value in each count; of a public sum, noise that adds up to
    0."""
    counts, W, sigma, step = 1000 * P, weights_of(3, "linear"), 12.0, 1e-3
    u = np.zeros(9)
    for k in range(9):
        more = counts.ravel().copy()
        more[k] += step
        u[k] = kappa(more.reshape(3, 3), 0.0, W, total=False).value
    u = (u - kappa(counts, 0.0, W, total=False).value) / step
    Sigma = sigma**2 * (np.eye(9) - (1 / 9 if total else 0.0))
    found = kappa(counts, float(np.sqrt(Sigma[0, 0])), W, total=total)
    assert found.privacy_bse == pytest.approx(float(np.sqrt(u @ Sigma @ u)), rel=1e-3)


def crosstab(values: Any, **changed: Any) -> reticent.Crosstab:
    test = {"statistic": 1.0, "df": 1, "p_value": 0.3, "simulated_p_value": None}
    result = {
        "columns": ["a", "b"],
        "levels": [["x", "y"], ["x", "y"]],
        "values": values,
        "standard_error": 3.0,
        "confidence_level": 0.95,
        "interval_half_width": 6.0,
        "independence": test,
        "n": 100,
    }
    query = {"kind": "crosstab", "columns": ["a", "b"]}
    return reticent.Crosstab(release("mean") | {"query": query, "result": result | changed})


def test_a_table_s_kappa() -> None:
    found = crosstab([[40.0, 10.0], [10.0, 40.0]]).kappa()
    assert found.value == pytest.approx(0.6)
    assert 0 < found.privacy_bse < found.bse
    assert "kappa 0.600" in repr(found)
    lost = crosstab([[4.0, 1.0], [1.0, 4.0]]).kappa()
    assert lost.conf_int() == (-1.0, 1.0)


@pytest.mark.parametrize("changed", [{"independence": None}, {"levels": [["x", "y"], ["u", "v"]]}])
def test_what_has_no_kappa_is_refused(changed: Any) -> None:
    with pytest.raises(ValueError, match="kappa"):
        crosstab([[4.0, 1.0], [1.0, 4.0]], **changed).kappa()


def test_weights_are_named() -> None:
    with pytest.raises(ValueError, match="weights"):
        crosstab([[4.0, 1.0], [1.0, 4.0]]).kappa("cubic")
