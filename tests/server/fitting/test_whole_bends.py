# SPDX-License-Identifier: Apache-2.0
"""What a likelihood's whole fit knows of bends, of rare counts and of noisy curvature."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from reticent_server.domain.design import ColumnValue
from reticent_server.fitting import trust
from reticent_server.fitting.whole_newton import _sure_curvature, drift_room
from reticent_server.fitting.whole_scores import PlainScore
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.families.likelihood import CountLikelihoodScore
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.numerics.families import Poisson
from support.fits.glm import glm_table, response, slopes
from support.fits.regressions import facts_of, numeric, plain_design, profile_of
from support.seeds import seeded


def rare_counts(mean: float) -> CountLikelihoodScore:
    return CountLikelihoodScore(Poisson(), 1.0, (-12.0, 3.0), np.log(mean))


def test_a_mean_score_of_counts_turns_as_their_exponential() -> None:
    """m(d) = μ(eᵈ − 1): its second derivative at 0 is its first."""
    score, eta = rare_counts(0.05), np.array([-4.0, -1.0, 0.5])
    slope = score.away(eta, np.zeros(3))[1]
    assert score.turned(eta) == pytest.approx(slope, rel=1e-3)
    assert PlainScore(1.0).turned(eta) is None


def test_the_law_says_how_long_scores_of_rare_counts_are() -> None:
    rng = seeded(1)
    mu, lengths = np.full(200_000, 0.05), rng.uniform(1, 3, 200_000)
    eta, score = np.log(mu), rare_counts(0.05)
    y = rng.poisson(mu).astype(float)
    seen = lengths * np.abs(score.evaluate(y, eta))
    shape = score.shape(lengths, eta)
    assert shape is not None
    at = np.array([5.0, 8.0, 11.0, 20.0])
    expected = np.array([np.mean(seen > x) for x in at])
    told = np.interp(np.log(at), np.log(shape.lengths), shape.shares)
    assert told == pytest.approx(expected, rel=0.1, abs=2e-4)
    assert score.shape(lengths, np.log(np.full(200_000, 0.5))) is None


def test_a_curvature_counts_its_error_at_least() -> None:
    E = np.diag([0.05, 1.0, 2.0])
    sure = _sure_curvature(E, np.full(3, 0.2))
    assert np.diag(sure) == pytest.approx([0.3, 1.0, 2.0])
    assert np.diag(_sure_curvature(E, np.zeros(3))) == pytest.approx([0.05, 1.0, 2.0])


@pytest.mark.parametrize("instead", [trust.OF_LINES, trust.OF_MEANS, ""])
def test_what_few_records_decide_is_to_be_asked_of_the_robust_target_by_its_name(
    instead: str,
) -> None:
    flags = trust.CoefficientFlags(np.array([False]), np.array([False]), heavy=np.array([True]))
    (said,) = flags.tail_warnings(["a"], np.zeros(1), 60.0, instead)
    assert f"Ask for {instead}a logarithm" in said


def test_a_fit_with_exposures_starts_at_the_rate_of_the_whole() -> None:
    """Σ exp(start + offset) over the public rows is what the mean response asks for."""
    n = 4000
    table = glm_table("poisson", n, seeded(3), p=1)
    table["t"] = seeded(4).uniform(-3.0, 3.0, n)
    columns = [*slopes(1), numeric("t", -3.0, 3.0), response("poisson")]
    facts = facts_of(n, columns, profile_of(table, columns))
    design = plain_design(slopes(1), response("poisson"), offset=ColumnValue("t"))
    design = replace(design, columns=("x0", "y", "t"))
    ground = plan_glm(facts, design, Glm("y ~ x", "poisson", target="likelihood"), 10**9).ground
    assert ground.offset is not None
    mean = logsumexp(ground.offset + ground.start[0]) - np.log(len(ground.offset))
    assert mean == pytest.approx(ground.response.eta)
    assert isinstance(ground.response, Start)


def test_weights_may_move_the_solution_alike_in_all_directions() -> None:
    n = 4000
    table = glm_table("poisson", n, seeded(3), p=1)
    columns = [*slopes(1), response("poisson")]
    facts = facts_of(n, columns, profile_of(table, columns))
    design = plain_design(slopes(1), response("poisson"))
    plan = plan_glm(facts, design, Glm("y ~ x", "poisson", target="likelihood"), 10**9)
    newton: Any = plan.newton
    score = newton._score(1.0)
    place: Any = SimpleNamespace(state=SimpleNamespace(theta=np.zeros(2)))
    room = drift_room(place, score)
    assert room == pytest.approx(np.eye(2) * room[0, 0])
    assert room[0, 0] == pytest.approx((0.25 * score.unit) ** 2 / 4)
