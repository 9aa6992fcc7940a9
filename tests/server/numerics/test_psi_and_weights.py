# SPDX-License-Identifier: Apache-2.0
"""ψ, its constants, and the Mallows weight: against integrals, differences and simulation."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from reticent_server.numerics.mallows import mallows_weights, mean_weighted_norm
from reticent_server.numerics.psi import Huber
from support.seeds import seeded


@pytest.mark.parametrize("c", [0.6, 1.0, 1.345])
def test_constants_are_normal_moments(c: float) -> None:
    family = Huber(c)

    def mean(f: Any) -> Any:
        pieces = [(-12, -c), (-c, c), (c, 12)]
        return sum(quad(lambda z: f(np.float64(z)) * norm.pdf(z), a, b)[0] for a, b in pieces)

    assert family.mean_derivative == pytest.approx(mean(lambda z: abs(z) <= c), abs=1e-9)
    assert family.mean_square == pytest.approx(mean(lambda z: family.psi(z) ** 2), abs=1e-9)


def test_psi_is_the_derivative_of_the_loss_and_z_times_the_weight() -> None:
    family, h = Huber(0.8), 1e-6
    z = np.linspace(-3, 3, 61) + 0.01
    slope = (family.loss(z + h) - family.loss(z - h)) / (2 * h)
    np.testing.assert_allclose(family.psi(z), slope, atol=1e-6)
    np.testing.assert_allclose(family.psi(z), z * family.weight(z), atol=1e-12)
    assert family.weight(np.zeros(1))[0] == 1
    np.testing.assert_array_equal(family.derivative(np.array([0.0, 0.8, -0.8, 0.81])), [1, 1, 1, 0])


def test_mallows_weight_bounds_both_norms() -> None:
    squares = np.array([0.0, 1.0, 4.0, 5.0, 1e12])
    w = mallows_weights(squares, 4.0)
    np.testing.assert_array_equal(w[:3], 1)
    assert np.all(w * squares <= 4 * (1 + 1e-12))
    assert np.all(w * np.sqrt(squares) <= 2 * (1 + 1e-12))


@pytest.mark.parametrize(("p", "expected"), [(4, 0.688), (10, 0.732)])
def test_mean_weighted_norm_has_its_published_values(p: int, expected: float) -> None:
    assert mean_weighted_norm(p, 0.8 * (p + 1)) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("p", "intercept"), [(3, True), (3, False), (1, True)])
def test_mean_weighted_norm_by_simulation(p: int, intercept: bool) -> None:
    rng = seeded(5)
    squares = intercept + np.sum(rng.normal(size=(400_000, p)) ** 2, axis=1)
    q = p + intercept
    simulated = np.mean(mallows_weights(squares, 0.8 * q) * squares) / q
    assert mean_weighted_norm(p, 0.8 * q, intercept) == pytest.approx(simulated, rel=3e-3)
