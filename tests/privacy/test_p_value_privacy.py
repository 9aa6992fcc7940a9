"""Private p-values: exact hockey-sticks of neighbours; the scale that the paper prints fails."""

import numpy as np
import pytest
from scipy.stats import norm

from reticent_server.numerics.smooth_p_value import (
    noise_factor,
    p_value_noise,
    smooth_density,
    smoothness,
)
from support.attacks.influence import excess

N, EPSILON, DELTA = 10_000, 1.0, 1e-6
PLACES = [0.5, 2.0, 10.0]
INFLUENCES = [1.0, 2.0, 4.0]


def literal(t, influence):
    """The noise with φ in place of φ*."""
    return 2 * np.sqrt(N) * norm.pdf(t) * influence * noise_factor(N, EPSILON, DELTA)


def smooth(t, influence):
    return float(p_value_noise(np.array([t]), np.array([influence]), N, EPSILON, DELTA)[0])


def worst(scale, t, influence):
    """Over the two neighbours whose t is one record's influence away, both ways."""
    found = []
    for sign in (-1, 1):
        other = max(t + sign * 2 * influence / np.sqrt(N), 0.0)
        laws = [(2 * norm.sf(v), scale(v, influence)) for v in (t, other)]
        found += [excess(*laws[0], *laws[1], EPSILON), excess(*laws[1], *laws[0], EPSILON)]
    return max(found)


@pytest.mark.parametrize("t", PLACES)
@pytest.mark.parametrize("influence", INFLUENCES)
def test_neighbours_p_values_are_as_close_as_is_charged(t, influence):
    assert worst(smooth, t, influence) < 1e-13


def test_the_printed_scale_fails_far_out():
    assert max(worst(literal, 10.0, influence) for influence in INFLUENCES) > 0.05


def test_the_density_is_smooth_and_no_smaller_than_the_normal_one():
    beta = smoothness(1, EPSILON, DELTA)
    for shift in (0.001, 0.02, 0.5):
        t = np.linspace(0, 12, 500)
        s = np.full_like(t, shift)
        here, there = (smooth_density(v, s, beta) for v in (t, np.maximum(t - shift, 0.0)))
        assert np.all(here >= norm.pdf(t) * (1 - 1e-12))
        assert np.all(there <= here * np.exp(beta) * (1 + 1e-12))
        steps = np.arange(0, 40_000)[:, None]
        brute = np.exp(-beta * steps) * norm.pdf(np.maximum(t[None, ::50] - steps * shift, 0))
        assert np.all(smooth_density(t, s, beta)[::50] >= brute.max(axis=0) * (1 - 1e-12))
