# SPDX-License-Identifier: Apache-2.0
"""A bank of filters: calibrated where the curvature is one of those believed, open about what is
unlikely under all, and the last check that a fit makes of itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent_server.fitting.beliefs import (
    EXPECTED,
    SEEN,
    Beliefs,
    beliefs_of,
    covariance,
    doubt,
    faded,
    mean_factor,
    stepped,
    surprise,
    surprised,
    widened,
)
from reticent_server.fitting.filter import Correction, corrected_curvature, moved
from reticent_server.fitting.trust import believed
from reticent_server.fitting.trust.thresholds import DOUBT
from support.seeds import seeded

Q, STEPS, NOISE = 4, 6, 0.02
FACTORS = tuple(h for h, _ in SEEN)


def curvature(J: Any, unit: float = 1.0, shape: float = 0.0) -> Any:
    known = Correction(np.eye(len(J)), np.zeros(len(J)), np.full(len(J), shape))
    return corrected_curvature(J, unit, known)


@dataclass(frozen=True)
class FollowedPath:
    """left (q,) after the steps; beliefs: after them; chances: of the scores, as seen before."""

    left: Any
    beliefs: Beliefs
    chances: Sequence[float]

    @property
    def square(self) -> float:
        """Of what is left, relative to what is said to be left: about 1."""
        return float(self.left @ np.linalg.solve(covariance(self.beliefs), self.left)) / Q


def path(
    rng: np.random.Generator, h: float, factors: Any = SEEN, steps: int = STEPS
) -> FollowedPath:
    """Of a fit whose curvature is h times what is expected, from a way N(0, I)."""
    there, noise = curvature(np.diag([1.0, 0.7, 0.5, 0.4])), NOISE**2 * np.eye(Q)
    left, beliefs, chances = rng.normal(size=Q), beliefs_of(factors, np.eye(Q)), []
    for _ in range(steps):
        g = h * there.H @ left + NOISE * rng.normal(size=Q)
        chances.append(surprise(beliefs, there, noise, g))
        step = stepped(beliefs, there, noise, g)
        left, beliefs = left - step.way, step.beliefs
    return FollowedPath(left, beliefs, chances)


def test_one_belief_is_the_filter() -> None:
    rng = seeded(0)
    there, noise = curvature(np.diag([1.0, 0.6, 0.3, 0.1]), 0.5, 0.2), 0.01 * np.eye(Q)
    beliefs, C = beliefs_of(EXPECTED, np.eye(Q)), np.eye(Q)
    for _ in range(3):
        g = rng.normal(size=Q)
        bank, one = stepped(beliefs, there, noise, g), moved(C, there, noise, g)
        np.testing.assert_allclose(bank.way, one.way, rtol=1e-10)
        np.testing.assert_allclose(covariance(bank.beliefs), one.covariance, rtol=1e-10, atol=1e-15)
        beliefs, C = bank.beliefs, one.covariance


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("h", FACTORS)
def test_what_is_left_is_what_is_said_to_be_left(h: float) -> None:
    """Also where the curvature is a quarter of what is expected; the mean of 40 χ²_q/q has a
    standard deviation of .11.
    """
    rng = seeded(1)
    squares = [path(rng, h).square for _ in range(40)]
    assert 0.3 < np.mean(squares) < 1.6


def test_a_filter_that_is_sure_of_its_curvature_stops_short() -> None:
    rng = seeded(2)
    sure = [path(rng, 0.35, EXPECTED).square for _ in range(20)]
    assert np.mean(sure) > 10


@pytest.mark.slow
def test_steps_tell_the_curvature_from_others() -> None:
    rng = seeded(3)
    for at, h in enumerate(FACTORS):
        told = [path(rng, h).beliefs[at].chance for _ in range(20)]
        assert np.mean(told) > 0.8


def test_where_the_curvature_is_as_expected_beliefs_cost_next_to_nothing() -> None:
    rng = seeded(4)
    bank, sure = (
        np.mean([np.trace(covariance(path(rng, 1.0, f).beliefs)) for _ in range(20)])
        for f in (SEEN, EXPECTED)
    )
    assert bank < 1.03 * sure


def test_a_first_score_tells_nothing_of_the_curvature() -> None:
    """How far there is to go is a guess on the safe side: a small score is no small curvature."""
    there, noise = curvature(np.eye(Q)), 1e-4 * np.eye(Q)
    step = stepped(beliefs_of(SEEN, np.eye(Q)), there, noise, np.full(Q, 0.05))
    assert [b.chance for b in step.beliefs] == pytest.approx([chance for _, chance in SEEN])
    assert step.way == pytest.approx(0.05, rel=0.02)
    for b, (h, _) in zip(step.beliefs, SEEN, strict=True):
        assert b.off == pytest.approx(0.05 / h - 0.05, abs=1e-3)


def test_the_covariance_is_that_of_the_mixture() -> None:
    there, noise = curvature(np.eye(Q)), 1e-2 * np.eye(Q)
    beliefs = stepped(beliefs_of(SEEN, np.eye(Q)), there, noise, np.full(Q, 0.3)).beliefs
    step = stepped(beliefs, there, noise, np.full(Q, 0.1))
    np.testing.assert_allclose(sum(b.chance * b.off for b in step.beliefs), 0.0, atol=1e-12)
    rng = seeded(5)
    which = rng.choice(len(SEEN), size=20_000, p=[b.chance for b in step.beliefs])
    draws = np.array([step.beliefs[k].off for k in which])
    draws += np.array([np.sqrt(step.beliefs[k].C[0, 0]) for k in which])[:, None] * rng.normal(
        size=draws.shape
    )
    np.testing.assert_allclose(np.cov(draws.T), covariance(step.beliefs), atol=0.01)


def test_a_jacobian_takes_the_place_of_a_belief() -> None:
    beliefs = beliefs_of(SEEN, np.eye(Q))
    assert [b.factor for b in faded(beliefs, 0.0)] == [1.0] * len(SEEN)
    assert [b.factor for b in faded(beliefs, 0.5)] == pytest.approx([(1 + h) / 2 for h in FACTORS])
    assert mean_factor(faded(beliefs, 1.0)) == pytest.approx(sum(h * p for h, p in SEEN))


def test_room_is_room_under_every_belief() -> None:
    beliefs = beliefs_of(SEEN, np.eye(Q))
    np.testing.assert_allclose(covariance(widened(beliefs, np.eye(Q))), 2 * np.eye(Q))


def test_the_chances_are_those_of_a_law() -> None:
    assert sum(chance for _, chance in SEEN) == pytest.approx(1.0)
    assert SEEN[0] == (1.0, 0.5)
    assert doubt(beliefs_of(SEEN, np.eye(Q))) == pytest.approx(0.5)


def test_a_score_that_is_too_large_raises_the_covariance() -> None:
    C, noise, there = 0.01 * np.eye(Q), 1e-4 * np.eye(Q), curvature(np.eye(Q), 0.5)
    beliefs = beliefs_of(EXPECTED, C)
    usual = 0.5 * np.sqrt(np.diag(there.H @ C @ there.H.T))
    assert surprised(beliefs, there, noise, usual) is beliefs
    g = np.array([6.0, 0.0, 0.0, 0.0])
    raised = surprised(beliefs, there, noise, g)
    way = np.linalg.solve(there.H, g)
    np.testing.assert_allclose(covariance(raised), C + np.outer(way, way))
    assert stepped(raised, there, noise, g).way[0] > 0.99 * way[0]


def test_surprises_are_as_rare_as_they_say() -> None:
    """The least of 600 chances of a fit that is right is above 10⁻⁷ but once in 16,000."""
    rng = seeded(6)
    chances = [c for _ in range(100) for c in path(rng, 1.0, EXPECTED).chances]
    assert min(chances) > 1e-7
    assert 0.35 < np.mean(chances) < 0.65


@pytest.mark.slow
def test_the_last_check_declines_what_steps_contradict_and_nothing_else() -> None:
    rng = seeded(7)
    sound = [path(rng, 1.0) for _ in range(60)]
    wrong = [path(rng, 0.5) for _ in range(60)]
    assert all(believed(doubt(p.beliefs)).intervals for p in sound)
    assert np.mean([believed(doubt(p.beliefs)).intervals for p in wrong]) < 0.1
    measured = [faded(p.beliefs, 0.1) for p in wrong]
    assert all(believed(doubt(b)).intervals for b in measured)


def test_a_verdict_names_its_reason() -> None:
    assert believed(DOUBT.value).intervals
    (doubted,) = believed(1.0).sentences
    assert "curvature" in doubted
