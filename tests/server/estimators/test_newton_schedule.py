"""The plan's numbers: steps, fractions, shares; and that their ρ adds up."""

from itertools import pairwise

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.estimators.newton.schedule import (
    allocate,
    forecast_errors,
    gradient_fractions,
    least_steps,
    plan_steps,
)
from reticent_server.estimators.newton.settings import Dimensions, noise_ratio, plan_settings


def sizes(p, n, unit_rows=1):
    return Dimensions(p + 1, p + 1, True, 0.8 * (p + 1), 0.8 * (p + 1), n, unit_rows)


@pytest.mark.parametrize(
    ("eta", "typical"),
    [
        (0.025, (0.03, 0.03, 0.05, 0.10, 0.23, 0.56)),
        (0.09, (0.06, 0.06, 0.08, 0.11, 0.21, 0.48)),
        (0.4, (0.32, 0.33, 0.35)),
        (0.81, (0.25, 0.75)),
    ],
)
def test_typical_fractions(eta, typical):
    found = plan_steps(eta)
    assert sum(found) == pytest.approx(1)
    np.testing.assert_allclose(found, typical, atol=0.015)


@pytest.mark.parametrize("eta", [0.005, 0.05, 0.2, 0.5])
def test_fractions_are_a_minimum_of_the_forecast_error(eta):
    f = np.array(plan_steps(eta))
    least = forecast_errors(tuple(f), eta)[0][-1]
    rng = np.random.default_rng(3)
    for _ in range(200):
        moved = f * np.exp(rng.normal(scale=0.1, size=len(f)))
        assert forecast_errors(tuple(moved / moved.sum()), eta)[0][-1] >= least * (1 - 1e-6)


def test_more_steps_only_for_a_gain():
    for eta in np.geomspace(1e-3, 3, 25):
        chosen = len(plan_steps(eta))
        errors = {T: forecast_errors(gradient_fractions(T, eta), eta)[0][-1] for T in range(2, 7)}
        assert all(errors[chosen] <= errors[T] for T in range(least_steps(eta), chosen))


def test_allocation_is_exact():
    for rho in (23, 1000, 24_359_123_457):
        parts = allocate(rho, (0.4, 0.3, 0.2, 0.1))
        assert sum(parts) == rho
        assert all(type(p) is int and p > 0 for p in parts)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("p", "n", "epsilon"), [(1, 100, 0.01), (4, 5000, 1), (10, 10**6, 8)])
def test_settings_spend_exactly_rho(p, n, epsilon, masked):
    rho = rho_units(epsilon, 1e-6)
    settings = plan_settings(sizes(p, n), rho, tuning=None, masked=masked)
    assert settings.rho == rho
    parts = [
        part for t in range(settings.steps) for part in settings.score_parts(t, sizes(p, n))
    ] + [settings.scale_part(t, sizes(p, n)) for t in range(settings.steps - 1)]
    assert sum(part.rho for part in parts) == rho
    assert settings.count == (0 if not masked else pytest.approx(0.01 * rho, abs=1))


def test_the_noise_ratio_and_what_hangs_on_it():
    rho = rho_units(0.2, 1e-6)
    assert noise_ratio(sizes(4, 2000), rho) == pytest.approx(
        2 * 2 * 5**0.5 / (2000 * (2 * rho / 1e12) ** 0.5 * 0.68762 * 0.68269), rel=1e-4
    )
    quiet = plan_settings(sizes(4, 20_000), rho, tuning=None, masked=False)
    noisy = plan_settings(sizes(10, 2_000), rho, tuning=None, masked=False)
    assert (quiet.c, noisy.c) == (1.0, 0.6)
    assert plan_settings(sizes(4, 20_000), rho, tuning=1.7, masked=False).c == 1.7


def test_rows_of_a_unit_scale_the_noise():
    rho = rho_units(1, 1e-6)
    ratios = [noise_ratio(sizes(4, 5000, m), rho) for m in (1, 2, 5)]
    np.testing.assert_allclose(ratios, np.array([1, 2, 5]) * ratios[0])
    assert all(len(plan_steps(a)) >= len(plan_steps(b)) for a, b in pairwise((0.01, 0.3, 1.0)))
