# SPDX-License-Identifier: Apache-2.0
"""Families: their moments are the sums and integrals that they stand for, and do not see the
block.
"""

from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from reticent_server.numerics.families import (
    Binomial,
    Gamma,
    NegativeBinomial,
    Poisson,
    gamma_moments,
)
from support.seeds import seeded

ETA = np.array([-9.0, -3.0, -0.4, 0.0, 0.7, 2.0, 5.0])
TUNINGS = (0.7, 1.345, 2.5)


def sums(values: Any, probabilities: Any, family: Any, eta: Any, c: Any) -> list[Any]:
    r = family.residual(values, np.full(len(values), eta))
    psi = np.clip(r, -c, c)
    return [float(probabilities @ v) for v in (psi, psi * r, psi**2)]


def law(family: Any, mu: Any) -> tuple[Any, Any]:
    if family.name == "poisson":
        k = np.arange(0.0, 3000.0)
        return k, stats.poisson.pmf(k, mu)
    if family.name == "negative_binomial":
        k, alpha = np.arange(0.0, 20_000.0), family.dispersion
        return k, stats.nbinom.pmf(k, 1 / alpha, 1 / (1 + alpha * mu))
    return np.array([0.0, 1.0]), np.array([1 - mu, mu])


@pytest.mark.parametrize(
    "family",
    [Binomial(), Poisson(), NegativeBinomial(0.3), NegativeBinomial(2.0)],
    ids=lambda f: f"{f.name} {f.dispersion:g}",
)
@pytest.mark.parametrize("c", TUNINGS)
def test_moments_of_discrete_families_are_the_sums(family: Any, c: float) -> None:
    found = family.moments(ETA, c)
    for i, eta in enumerate(ETA):
        expected = sums(*law(family, float(family.mean(ETA[i : i + 1])[0])), family, eta, c)
        actual = [found.mean[i], found.slope[i], found.square[i]]
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.sample(12)
@pytest.mark.parametrize("phi", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("unit", [0.05, 0.7])
@pytest.mark.parametrize("c", TUNINGS)
def test_moments_of_gamma_are_the_integrals(phi: float, unit: float, c: float) -> None:
    density = stats.gamma(1 / phi, scale=phi).pdf
    cuts = sorted({max(0.0, 1 - c * unit**0.5), 1 + c * unit**0.5})

    def mean(f: Any) -> Any:
        def integrand(t: Any) -> Any:
            r = (t - 1) / unit**0.5
            return density(t) * f(r, np.clip(r, -c, c))

        edges = [0.0, *[x for x in cuts if x > 0], 60.0]
        return sum(
            integrate.quad(integrand, a, b, limit=400, epsabs=1e-12)[0] for a, b in pairwise(edges)
        )

    expected = [mean(lambda r, p: p), mean(lambda r, p: p * r), mean(lambda r, p: p * p)]
    np.testing.assert_allclose(gamma_moments(phi, unit, c), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma(0.4), NegativeBinomial(0.4)])
def test_without_tuning_the_score_is_that_of_maximum_likelihood(family: Any) -> None:
    moments = family.moments(ETA, inf)
    assert np.all(moments.mean == 0)
    np.testing.assert_allclose(moments.slope, 1.0)
    h = 1e-6
    derivative = (family.mean(ETA + h) - family.mean(ETA - h)) / (2 * h)
    y = np.full(len(ETA), 1.0)
    variance = {"binomial": lambda m: m * (1 - m), "poisson": lambda m: m, "gamma": lambda m: m * m}
    variance["negative_binomial"] = lambda m: m + family.dispersion * m * m
    V = variance.get(family.name, np.ones_like)(family.mean(ETA))
    gain = family.gain(ETA)
    np.testing.assert_allclose(gain, derivative / np.sqrt(V), rtol=1e-6)
    phi = 1.0 if family.name == "negative_binomial" else family.dispersion
    residual = (y - family.mean(ETA)) / np.sqrt(V * phi)
    np.testing.assert_allclose(family.residual(y, ETA), residual, rtol=1e-9, atol=1e-12)


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma(0.4), NegativeBinomial(0.4)])
def test_values_do_not_depend_on_the_block(family: Any) -> None:
    rng = seeded(1)
    eta = rng.normal(0, 3, 1000)
    y = np.floor(np.exp(rng.normal(0, 1, 1000)))

    def everything(part: Any) -> Any:
        m = family.moments(eta[part].copy(), 1.4)
        residual = family.residual(y[part].copy(), eta[part].copy())
        return np.vstack([m.mean, m.slope, m.square, residual, family.gain(eta[part].copy())])

    whole = everything(slice(None))
    single = np.hstack([everything(slice(i, i + 1)) for i in range(1000)])
    odd = np.hstack([everything(slice(i, i + 7)) for i in range(0, 1000, 7)])
    assert np.array_equal(whole, single)
    assert np.array_equal(whole, odd)
