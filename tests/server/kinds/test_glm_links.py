# SPDX-License-Identifier: Apache-2.0
"""Probit, complementary log-log and log-binomial regressions: near statsmodels', with intervals
that hold the truth.
"""

import json
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.genmod.families import links

from reticent.results.link import link_of
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost, decimal_units
from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.glm.families import LINKED, family_of
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.kind import KIND
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.subsample_aggregate.kind import KIND as BLOCKS
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from support.fits.links import BETA, MEANS, X, Y, planned, reply_weights, table, without_privacy
from support.fits.regressions import HUGE_RHO, facts_of, whole
from support.kinds.recipes import outcome
from support.seeds import seeded
from support.tables.follow_up import offer

WHOLE = PrivacyCost(
    decimal_units(1.0, EPSILON_UNITS), decimal_units(1e-6, DELTA_UNITS), offer(1.0).rho
)
LINKS = ("probit", "cloglog", "log")
REFERENCE = {"probit": links.Probit, "cloglog": links.CLogLog}


@pytest.mark.sample(4)
@pytest.mark.parametrize("link", LINKS)
def test_with_little_noise_it_solves_the_estimating_equation(link: Any) -> None:
    data = table(seeded(3), 20_000, link)
    fit = outcome(planned(data, link, HUGE_RHO), whole(data))
    exact, errors = without_privacy(data, link, reply_weights(data, fit))
    assert (np.abs(np.array(fit.coefficients) - exact) < 0.25 * errors).all()
    assert np.array(fit.standard_errors) == pytest.approx(errors, rel=0.1)
    assert fit.family == "binomial"
    assert fit.link == link
    json.dumps(result_json(fit), allow_nan=False)


@pytest.mark.parametrize("link", REFERENCE)
def test_it_is_near_maximum_likelihood_of_statsmodels(link: Any) -> None:
    """Two consistent estimators that share their data: their difference has about .2 of a standard
    error.
    """
    data = table(seeded(4), 20_000, link)
    rows = np.column_stack([np.ones(20_000), data["x0"], data["x1"], data["x2"]])
    family = sm.families.Binomial(link=REFERENCE[link]())
    reference = sm.GLM(data["y"], rows, family=family).fit()
    fit = outcome(planned(data, link, HUGE_RHO), whole(data))
    assert (np.abs(np.array(fit.coefficients) - reference.params) < 0.8 * reference.bse).all()
    ratio = np.array(fit.standard_errors) / reference.bse
    assert ((ratio > 0.95) & (ratio < 1.15)).all()


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("n", "epsilon"), [(2000, 4.0), pytest.param(10_000, 1.0, marks=pytest.mark.audit)]
)
def test_intervals_hold_the_truth_and_the_noise_is_as_reported(
    link: Any, n: Any, epsilon: Any
) -> None:
    """Of 30 seeded tables: 120 intervals, whose coverage has a standard error of .02."""
    rng, held, distance = seeded(n), [], []
    for _ in range(30):
        data = table(rng, n, link)
        fit = outcome(planned(data, link, offer(epsilon).rho), whole(data))
        low, high = np.array(fit.confidence_intervals, dtype=float).T
        held.append((low <= BETA[link]) & (high >= BETA[link]))
        exact, _ = without_privacy(data, link, reply_weights(data, fit))
        distance.append((np.array(fit.coefficients) - exact) / fit.privacy_standard_errors)
    assert np.mean(held) >= 0.88
    assert 0.6 < np.sqrt(np.mean(np.square(distance))) < 1.7


@pytest.mark.parametrize("key", LINKED)
def test_the_curvature_is_the_derivative_of_the_score_and_both_keep_their_bounds(key: Any) -> None:
    law = LINKED[key]
    score = law.score(law.tuning, 1.0, Start(-0.5, 1.0, 1.0))
    low, high = score.limits
    eta = np.linspace(low + 1e-4, high - 1e-4, 4001)
    for y in (0.0, 1.0):
        responses = np.full_like(eta, y)
        q, h = score.with_curvature(responses, eta)
        slope = (
            score.evaluate(responses, eta - 1e-6) - score.evaluate(responses, eta + 1e-6)
        ) / 2e-6
        np.testing.assert_allclose(h, slope, atol=1e-6)
        assert np.abs(q).max() <= score.bound
        assert h.min() >= 0
        assert 0.99 * score.curvature_bound < h.max() <= score.curvature_bound
    ends = [
        np.abs(score.evaluate(np.array([y, y]), np.array([low, high]))).max() for y in (0.0, 1.0)
    ]
    assert max(ends) == pytest.approx(score.bound, rel=1e-9)
    q, h = score.away(eta[::40], np.full(101, 0.3))
    assert q == pytest.approx(
        score.evaluate(np.zeros(101), eta[::40]) - score.evaluate(np.zeros(101), eta[::40] + 0.3)
    )
    assert h == pytest.approx(score.with_curvature(np.zeros(101), eta[::40] + 0.3)[1])
    rng = seeded(1)
    draws = np.mean(
        score.with_curvature(np.zeros(1), -0.7 + 0.8 * rng.normal(size=(400_000, 1)))[1]
    )
    expected = score.expected(np.array([-0.7]), np.array([0.64]))[0]
    assert expected == pytest.approx(float(draws), abs=0.01)


@pytest.mark.parametrize("link", LINKS)
def test_the_clients_link_is_the_servers(link: Any) -> None:
    eta = np.linspace(-4, -0.1, 40)
    found = link_of({"family": "binomial", "link": link})
    assert found.mean(eta) == pytest.approx(MEANS[link](eta))
    step = 1e-6
    assert found.slope(eta) == pytest.approx(
        (found.mean(eta + step) - found.mean(eta - step)) / (2 * step), rel=1e-6
    )
    assert found.bend(eta) == pytest.approx(
        (found.slope(eta + step) - found.slope(eta - step)) / (2 * step), abs=1e-7
    )


def test_families_by_their_links() -> None:
    assert family_of("binomial", None) is family_of("binomial", "logit")
    assert family_of("poisson", "log") is family_of("poisson", None)
    assert family_of("poisson", "probit") is None
    assert family_of("gaussian", None) is None


REFUSED = [
    Glm("y ~ x0", "poisson", link="probit"),
    Glm("y ~ x0", "gaussian", link="log"),
    Glm("y ~ x0", "binomial", link="probit", tuning=1.5),
    Glm("y ~ x0", "binomial", link="probit", mechanism="influence"),
]


@pytest.mark.parametrize("query", REFUSED)
def test_what_has_no_such_link_is_refused_when_planning(query: Any) -> None:
    with pytest.raises(InvalidQuery):
        KIND.plan(facts_of(1000, [*X, Y], None), query, WHOLE)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
def test_blocks_have_canonical_links_only(family: Any) -> None:
    query = SubsampleAggregateQuery(
        Glm("y ~ x0", family, link="probit"), 7, ((0.0, 1.0), (2.0, 3.0))
    )
    with pytest.raises(InvalidQuery):
        BLOCKS.plan(facts_of(1000, [*X, Y], None), query, WHOLE)
