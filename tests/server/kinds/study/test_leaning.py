# SPDX-License-Identifier: Apache-2.0
"""What clipping has moved, judged by a narrower radius."""

from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.study.leaning import (
    DIRECTED,
    MOST,
    Leaning,
    NarrowMoments,
    lengthened,
    ratio,
)
from reticent_server.kinds.study.moments import Moments
from reticent_server.numerics.mallows import mallows_weights
from support.seeds import seeded

N, RADII, TYPICAL = 20_000, (6.0, 24.0), 0.8


def moments_at(Z: Any, radius_squared: Any) -> Any:
    w = mallows_weights(np.sum(Z**2, axis=1), radius_squared)
    return (Z * w[:, None]).T @ Z


def tailed(seed: Any = 1) -> Any:
    """(1, y, x): 2 % of the records lie far out, where the slope is another one."""
    rng = seeded(seed)
    x, far = rng.normal(size=N), rng.random(N) < 0.02
    x[far] *= 4
    y = np.where(far, 2.0, 0.5) * x + rng.normal(size=N)
    return np.column_stack([np.ones(N), y / 2, x])


def fitted(Z: Any, sd: Any = 0.0) -> Any:
    wide, inner = moments_at(Z, RADII[1]), moments_at(Z, RADII[0])
    fit = Moments(wide, np.eye(3), 0.0).least_squares(np.eye(3)[1], np.eye(3)[[0, 2]])
    lengths = np.sum(Z**2, axis=1)
    taus = [np.sum(np.maximum(lengths - r, 0.0)) for r in RADII]
    narrow = NarrowMoments(inner, np.eye(3), sd, ratio(taus[1], taus[0]), TYPICAL)
    return fit, narrow.leaning(wide, fit.residual, np.eye(3)[[0, 2]], fit.inverse, fit.sampling)


def test_it_points_to_least_squares_of_all_records_and_is_of_the_right_size() -> None:
    Z = tailed()
    fit, leaning = fitted(Z)
    exact = np.linalg.lstsq(Z[:, [0, 2]], Z[:, 1], rcond=None)[0]
    missing = exact[1] - fit.theta[1]
    assert missing > 20 * np.sqrt(fit.sampling[1, 1])
    assert 0.4 < leaning.moved[1] / missing < 2.5
    (square,) = leaning.squares(np.array([[0.0, 1.0]]))
    assert square == pytest.approx(leaning.moved[1] ** 2)


def test_where_noise_hides_it_what_is_typical_is_added() -> None:
    fit, _ = fitted(tailed())
    _, loud = fitted(tailed(), 1e9)
    np.testing.assert_allclose(
        loud.squares(np.eye(2)), TYPICAL**2 * np.diag(fit.sampling), rtol=1e-3
    )


def test_in_between_it_is_the_mean_square_given_what_was_seen() -> None:
    """Over b ~ N(0, T) and its estimate's noise N(0, V), the mean of what is added is that of
    b².
    """
    rng, T, V = seeded(3), 2.0, 3.0
    b = rng.normal(0, np.sqrt(T), 40_000)
    seen = b + rng.normal(0, np.sqrt(V), len(b))
    near = np.abs(seen - 2.0) < 0.2
    added = Leaning(np.array([2.0]), np.array([[V]]), np.array([[T]])).squares(np.eye(1))
    assert added[0] == pytest.approx(np.mean(b[near] ** 2), rel=0.1)


def test_its_noise_is_that_of_the_narrow_moments() -> None:
    """The sd of b over draws of noise: within 15 % of what is said (500 draws: 3 %)."""
    Z, sd, rng = tailed(), 40.0, seeded(0)
    X = np.eye(3)[[0, 2]]
    wide, inner = moments_at(Z, RADII[1]), moments_at(Z, RADII[0])
    fit = Moments(wide, np.eye(3), 0.0).least_squares(np.eye(3)[1], X)
    found = []
    for _ in range(500):
        E = np.triu(rng.normal(size=(3, 3)), 1) / np.sqrt(2)
        E = E + E.T + np.diag(rng.normal(size=3))
        narrow = NarrowMoments(inner + sd * E, np.eye(3), sd, 0.7, 0.0)
        found.append(narrow.leaning(wide, fit.residual, X, fit.inverse, fit.sampling))
    spread = np.std([each.moved for each in found], axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(found[0].noise)), rtol=0.15)


def test_lengthened_errors_keep_their_correlations() -> None:
    C = np.array([[4.0, 1.0], [1.0, 1.0]])
    longer = lengthened(C, np.array([5.0, 0.0]))
    np.testing.assert_allclose(np.diag(longer), [9.0, 1.0])
    assert longer[0, 1] / 3.0 == pytest.approx(0.5)
    np.testing.assert_array_equal(lengthened(C, np.zeros(2)), C)


def test_the_ratio_is_what_is_missing_over_what_lies_between() -> None:
    assert ratio(1.0, 5.0) == pytest.approx(DIRECTED * 0.25)
    assert ratio(0.0, 5.0) == 0
    assert ratio(5.0, 5.0) == 1
    assert ratio(100.0, 101.0) == MOST


def test_the_tail_of_a_column_is_what_a_doubling_of_the_radius_adds() -> None:
    narrow = NarrowMoments(np.diag([3.0, 1.0, 2.0, -1.0]), np.eye(4), 0.0, 0.0, 0.0)
    sums, far = np.diag([4.0, 1.0, 4.0, 0.5]), np.array([9.0, 9.0, 1.9, 9.0])
    quiet, plain = np.zeros(4), np.zeros(4, bool)
    np.testing.assert_allclose(narrow.tails(sums, quiet, far, 4.0, plain), [0.125, 0.0, 0.0, 0.5])
    np.testing.assert_allclose(narrow.tails(sums, quiet, far, 1.0, plain), [0.25, 0.0, 0.0, 1.0])
    loud = np.array([0.3, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(narrow.tails(sums, loud, far, 4.0, plain), [0.0, 0.0, 0.0, 0.5])


def test_a_publicly_skewed_column_has_a_tail_unless_the_noise_excludes_it() -> None:
    """Two deviations above what is seen, within reach only; a column that is not skewed has what is
    seen, if it is clear.
    """
    narrow = NarrowMoments(np.diag([3.9, 3.9, 3.9, 5.0]), np.eye(4), 0.0, 0.0, 0.0)
    sums, noise = np.diag(np.full(4, 4.0)), np.full(4, 0.3)
    reach, skewed = np.array([9.0, 9.0, 1.9, 9.0]), np.array([True, False, True, True])
    found = narrow.tails(sums, noise, reach, 4.0, skewed)
    np.testing.assert_allclose(found, [(0.1 + 0.6) / 4 / 2, 0.0, 0.0, (-1 + 0.6) / 4 / 2])


@pytest.mark.parametrize("sd", [0.0, 3.0])
def test_of_persons_a_tail_is_what_lies_beyond_the_share_of_all_directions(sd: float) -> None:
    """Of 100 a third between the radii, as in all directions, is no tail; of one column half is."""
    sums = np.diag([100.0, 100.0, 100.0])
    narrow = NarrowMoments(np.diag([70.0, 70.0, 50.0]), np.eye(3), sd, 0.5, 0.5)
    heavy, light = np.full(3, 1.5), np.array([1.5, 1.2, 1.5])
    usual = narrow.usual(sums, np.eye(3), heavy, 2.0)
    np.testing.assert_allclose(usual, 1.1 / 3)
    more = narrow.usual(sums, np.eye(3), light, 4.0) - usual
    np.testing.assert_allclose(more, [0, 0.16, 0], atol=1e-12)
    told = (sums, np.zeros(3), np.full(3, 50.0), 2.0, np.zeros(3, bool))
    found = narrow.tails(*told, usual)
    np.testing.assert_allclose(found, [0, 0, 0.5 - (1.1 / 3 - 0.05)])
    np.testing.assert_allclose(narrow.tails(*told), [0.3, 0.3, 0.5])
    loud = NarrowMoments(narrow.sums, np.eye(3), 5.0, 0.5, 0.5)
    assert not loud.tails(*told, usual).any(), "noise may have made it"
    turned = np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])
    moved = NarrowMoments(turned @ narrow.sums @ turned.T, np.linalg.inv(turned).T, sd, 0.5, 0.5)
    overlap = np.linalg.inv(turned @ turned.T)
    same = moved.usual(turned @ sums @ turned.T, np.linalg.inv(overlap), heavy, 2.0)
    np.testing.assert_allclose(same, usual)
