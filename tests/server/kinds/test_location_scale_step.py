# SPDX-License-Identifier: Apache-2.0
"""One step of the filter: its equations, its limits, what is left after it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.proposal2 import fit_proposal2, jacobian
from scipy.integrate import quad
from scipy.stats import norm

from reticent_server.kinds.location_scale.maps import STRETCH
from reticent_server.kinds.location_scale.recipe import _normal_fourth
from reticent_server.kinds.location_scale.step import (
    MeasuredStep,
    moved,
    normal_entries,
    start_position,
    usable_jacobian,
)
from reticent_server.numerics.psi import Huber
from support.seeds import seeded

C = 1.5


def measured(y: Any, at: Any, noise: float = 0.0) -> MeasuredStep:
    u = (y - at.mu) / at.scale
    psi, t = np.clip(u, -C, C), u / C
    inner = np.abs(t) < 1
    score = np.array([psi.mean(), (STRETCH / C * psi**2).mean()])
    entries = np.array([inner.mean(), (t * inner).mean(), (t * t * inner).mean()])
    return MeasuredStep(score, noise, entries, noise)


@pytest.mark.parametrize("c", [0.7, 1.5, 2.5])
def test_the_normal_laws_moments(c: float) -> None:
    inner = [quad(lambda u, k=k: (u / c) ** k * norm.pdf(u), -c, c)[0] for k in range(3)]
    np.testing.assert_allclose(normal_entries(c), inner, atol=1e-12)
    fourth = quad(lambda u: u**4 * norm.pdf(u), -c, c)[0] + 2 * c**4 * norm.sf(c)
    assert _normal_fourth(c) == pytest.approx(fourth)


def test_a_released_jacobian_is_that_of_the_equations() -> None:
    y = seeded(0).exponential(size=3000)
    fit = fit_proposal2(y, C)
    at = start_position(fit.location, fit.scale, C)
    entries = measured(y, at).entries
    A = usable_jacobian(entries, 0.0, C, Huber(C).mean_square)
    np.testing.assert_allclose(A, jacobian((y - fit.location) / fit.scale, C), rtol=1e-12)


def test_steps_without_noise_converge_and_say_so() -> None:
    y = seeded(1).gamma(2.0, size=5000)
    fit, at, left = fit_proposal2(y, C), start_position(1.0, 1.0, C), []
    for _ in range(6):
        at = moved(at, measured(y, at, 1e-9), C)
        left.append(np.sqrt(np.diag(at.covariance)).max())
    assert at.mu == pytest.approx(fit.location, abs=1e-6)
    assert at.scale == pytest.approx(fit.scale, abs=1e-6)
    assert left[-1] < 1e-6
    assert np.all(np.diff(left) < 0)


def test_noise_is_averaged_and_counted() -> None:
    """At the solution, steps of equal noise: the covariance falls as one over their number."""
    y = norm.ppf((np.arange(4000) + 0.5) / 4000)
    at, noise = start_position(0.0, 1.0, C), 0.02
    found, after = replace(measured(y, at, noise), entry_noise=1e-9), []
    for _ in range(8):
        at = replace(moved(at, found, C), mu=0.0, log_scale=0.0)
        after.append(at.covariance[0, 0])
    assert after[0] == pytest.approx((noise / normal_entries(C)[0]) ** 2, rel=0.1)
    assert after[7] == pytest.approx(after[0] / 8, rel=0.1)


def test_steps_of_mere_noise_do_not_move() -> None:
    at = replace(start_position(0.0, 1.0, C), covariance=1e-4 * np.eye(2))
    y = norm.ppf((np.arange(4000) + 0.5) / 4000)
    clean = measured(y, at, 0.3)
    after = moved(at, replace(clean, score=clean.score + 0.3), C)
    assert np.hypot(after.mu, after.log_scale) < 0.002


def test_a_step_is_limited_and_what_is_cut_off_stays_in_the_covariance() -> None:
    y = 50.0 + norm.ppf((np.arange(4000) + 0.5) / 4000)
    at = start_position(0.0, 1.0, C)
    after = moved(at, measured(y, at, 1e-6), C)
    assert after.mu == pytest.approx(2.0)
    assert after.scale == pytest.approx(4.0)
    assert np.sqrt(after.covariance[0, 0]) * after.scale > 5


def test_a_score_that_is_larger_than_chance_makes_it_is_followed() -> None:
    """The covariance says that the position is known to a hundredth; the score, that it is half a
    scale away.
    """
    at = replace(start_position(0.5, 1.0, C), covariance=1e-4 * np.eye(2), variance=1e-6)
    y = norm.ppf((np.arange(4000) + 0.5) / 4000)
    after = moved(at, measured(y, at, 0.02), C)
    assert abs(after.mu) < 0.1
    assert np.sqrt(after.covariance[0, 0]) > 0.05
