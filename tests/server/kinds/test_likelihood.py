# SPDX-License-Identifier: Apache-2.0
"""Generalised linear models with target="likelihood": what glm() estimates, told what the cut
takes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost, decimal_units
from reticent_server.domain.design import ColumnValue, Compare
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.trust import words
from reticent_server.kinds.glm.families import FAMILIES, LINKED
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.kind import KIND
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.mechanisms import registry
from support.attacks.seeded_noise import seed_noise
from support.fits.glm import fitted, glm_table, planned, response, slopes
from support.fits.regressions import (
    HUGE_RHO,
    boolean,
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded
from support.tables.follow_up import offer

N = 6_000
WHOLE = PrivacyCost(
    decimal_units(1.0, EPSILON_UNITS), decimal_units(1e-6, DELTA_UNITS), offer(1.0).rho
)
LINKS = sm.families.links
REFERENCE = {
    ("binomial", "logit"): sm.families.Binomial(),
    ("binomial", "probit"): sm.families.Binomial(LINKS.Probit()),
    ("binomial", "cloglog"): sm.families.Binomial(LINKS.CLogLog()),
    ("poisson", None): sm.families.Poisson(),
    ("gamma", None): sm.families.Gamma(LINKS.Log()),
    ("negative_binomial", None): sm.families.NegativeBinomial(alpha=0.5),
}


def table_of(family: str, **more: Any) -> Any:
    """A slope that differs between few far records and the others: a robust fit and the
    likelihood's differ.
    """
    table = glm_table(family, N, seeded(8), p=2, **more)
    if family != "binomial":
        table["y"] = np.where(table["x0"] > 1.5, np.round(1.5 * table["y"]), table["y"])
    return table


def reference(table: Any, family: Any, used: Any = None, offset: Any = None) -> Any:
    keep = np.ones(N, dtype=bool) if used is None else used
    X = np.column_stack([np.ones(N), table["x0"], table["x1"]])[keep]
    where = None if offset is None else offset[keep]
    return sm.GLM(table["y"][keep], X, family=family, offset=where).fit(cov_type="HC0")


def near(result: Any, reference: Any, most: float = 0.25) -> None:
    away = np.abs(np.array(result["coefficients"]) - reference.params) / reference.bse
    assert np.max(away) < most
    assert np.array(result["standard_errors"]) == pytest.approx(reference.bse, rel=0.12)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("family", "link"), REFERENCE)
def test_without_noise_it_is_maximum_likelihood(family: str, link: Any) -> None:
    table = table_of(family)
    plan = planned(table, slopes(2), family, HUGE_RHO, target="likelihood", link=link)
    result = drive(plan.run(), whole(table)).result
    near(result, reference(table, REFERENCE[family, link]))
    assert result["tuning"] is None
    assert "what maximum likelihood estimates on all records" in result["estimand"]
    assert result["weighting"]["radius_squared"] > 1e200


def test_a_robust_fit_of_the_same_table_is_another() -> None:
    table = table_of("poisson")
    plan = planned(table, slopes(2), "poisson", HUGE_RHO)
    robust = drive(plan.run(), whole(table)).result
    plain = reference(table, REFERENCE["poisson", None])
    away = np.abs(np.array(robust["coefficients"]) - plain.params) / plain.bse
    assert np.max(away) > 1


def test_it_is_of_the_records_in_use_with_their_offset() -> None:
    table = table_of("poisson")
    table["t"] = seeded(4).uniform(-0.5, 0.5, N)
    table["y"] = seeded(5).poisson(
        np.exp(0.5 + 0.4 * table["x0"] + 0.4 * table["x1"] + table["t"])
    ) * np.ones(N)
    columns = [*slopes(2), numeric("t", -1.0, 1.0)]
    where = Compare("x0", ">", -0.5)

    every = [*columns, response("poisson")]
    facts = facts_of(N, every, profile_of(table, every))
    design = plain_design(slopes(2), response("poisson"), where=where, offset=ColumnValue("t"))
    design = replace(design, columns=("x0", "x1", "y", "t"))
    asked = Glm("y ~ x", "poisson", target="likelihood")
    plan = plan_glm(facts, design, asked, HUGE_RHO)
    result = drive(plan.run(), whole(table)).result
    near(result, reference(table, REFERENCE["poisson", None], table["x0"] > -0.5, table["t"]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", ["binomial", "gamma"])
def test_the_reply_says_what_the_cut_takes_and_costs_what_is_planned(
    family: str, monkeypatch: Any
) -> None:
    seed_noise(monkeypatch, "what the cut takes")
    table = table_of(family)
    plan, result = fitted(table, slopes(2), family, target="likelihood")
    assert 45 < result["cut"]["records_beyond"] < 80
    assert result["cut"]["tail_index"] > 1.5
    assert all(result["estimable"])
    steps = drive(plan.run(), whole(table)).steps
    assert sum(map(registry.rho, steps)) == plan.rho
    assert len(steps) == plan.passes
    plain = reference(table, REFERENCE[family, "logit" if family == "binomial" else None])
    away = np.array(result["coefficients"]) - plain.params
    assert np.max(np.abs(away) / result["standard_errors"]) < 4


def test_a_level_without_events_has_no_interval_and_its_neighbours_have(monkeypatch: Any) -> None:
    seed_noise(monkeypatch, "without events")
    table = glm_table("binomial", 20_000, seeded(2), p=1, base=-1.0)
    rare = seeded(3).random(20_000) < 0.05
    table |= {"d": rare.astype(float), "y": np.where(rare, 0.0, table["y"])}
    table["y"][np.flatnonzero(rare)[:4]] = 1.0
    _, result = fitted(table, [*slopes(1), boolean("d")], "binomial", target="likelihood")
    assert result["estimable"] == [True, True, False]
    assert any("events decide d" in said for said in result["warnings"])


@pytest.mark.parametrize("law", [*FAMILIES.values(), *LINKED.values()], ids=lambda x: x.link)
def test_the_score_is_the_derivative_of_the_log_likelihood(law: Any) -> None:
    """Of each record, with what h is: its own derivative."""
    start = Start(0.3 if law.link != "log" else -0.4, 0.8, 30.0)
    score = law.likelihood(0.8, start)
    if score is None:
        assert law.link == "log"
        return
    eta, y = np.array([-2.0, -0.7, 0.2, 0.9]), np.array([1.0, 0.0, 1.0, 1.0])
    scale = score.scale * float(score.law.gain(np.array([start.eta]))[0])

    def of_u(eta: Any) -> Any:
        """v q over u, in the likelihood's units times s²."""
        return score.leverage(eta) * score.evaluate(y, eta) * scale

    h = 1e-5
    slope = (log_likelihood(law, start, y, eta + h) - log_likelihood(law, start, y, eta - h)) / (
        2 * h
    )
    assert of_u(eta) == pytest.approx(slope, rel=1e-6)
    second = -(of_u(eta + h) - of_u(eta - h)) / (2 * h)
    _, observed = score.with_curvature(y, eta)
    unit = scale / score.unit
    assert observed * score.leverage(eta) ** 2 * unit == pytest.approx(second, rel=1e-5, abs=1e-9)
    away, rate = score.away(eta, np.zeros(4))
    assert away == pytest.approx(0, abs=1e-12)
    assert rate == pytest.approx(score.leverage(eta) / score.unit, rel=1e-4)


def log_likelihood(law: Any, start: Any, y: Any, eta: Any) -> Any:
    match law.name, law.link:
        case "binomial", link:
            mu = {"logit": LINKS.Logit(), "probit": LINKS.Probit(), "cloglog": LINKS.CLogLog()}[
                link
            ].inverse(eta)
            return y * np.log(mu) + (1 - y) * np.log1p(-mu)
        case "poisson", _:
            return y * eta - np.exp(eta)
        case "gamma", _:
            return -y * np.exp(-eta) - eta
    alpha = start.scale**2
    return y * eta - (y + 1 / alpha) * np.log1p(alpha * np.exp(eta))


def test_far_predictors_have_the_scores_that_they_have() -> None:
    """y = 1 where the model says never: the probit's score is about |eta|."""
    score = LINKED["binomial", "probit"].likelihood(1.0, Start(0.0, 1.0, 1.0))
    eta = np.array([-7.5, 7.5])
    found = score.leverage(eta) * score.evaluate(np.array([1.0, 0.0]), eta) / score.unit
    assert found == pytest.approx([7.63, -7.63], abs=0.01)


REFUSED = {
    "persons": (Glm("k ~ x", "poisson", target="likelihood"), 4, "by persons= with features"),
    "a tuning": (Glm("b ~ x", "binomial", tuning=2.0, target="likelihood"), 1, "tuning"),
    "relative risks": (Glm("b ~ x", "binomial", link="log", target="likelihood"), 1, "poisson"),
    "groups": (Glm("b ~ x", "binomial", by="g", target="likelihood"), 1, "not fitted by group"),
    "influence": (
        Glm("b ~ x", "binomial", mechanism="influence", target="likelihood"),
        1,
        "newton",
    ),
    "gaussian": (Glm("x ~ b", "gaussian", target="likelihood"), 1, 'loss="squared"'),
    "no dispersion": (Glm("k ~ x", "negative_binomial", target="likelihood"), 1, "dispersion="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_has_no_answer_to_is_refused_when_planning(case: str) -> None:
    query, rows, words = REFUSED[case]
    columns = [numeric("x"), boolean("b"), numeric("k", 0.0, 50.0)]
    facts = facts_of(500, columns, None, rows)
    with pytest.raises(InvalidQuery, match=words):
        KIND.plan(facts, query, WHOLE)


def test_a_fit_that_has_not_arrived_has_no_intervals() -> None:
    assert trust.arrived(1e-3).intervals
    assert trust.arrived(1e-5).sentences == (words.NOT_ARRIVED,)


def test_events_are_those_of_a_predictor_that_is_a_standard_error_rarer() -> None:
    score = FAMILIES["binomial"].likelihood(1.0, Start(0.0, 1.0, 1.0))
    eta = np.array([-3.0, 0.0])
    sure, unsure = (score.events(eta, np.full(2, e)) for e in (0.0, 1.0))
    assert sure == pytest.approx([0.0452, 0.25], abs=1e-4)
    assert unsure == pytest.approx([0.0177, 0.1966], abs=1e-4)


def test_an_information_below_its_noise_gives_no_intervals(monkeypatch: Any) -> None:
    seed_noise(monkeypatch, "information")
    table = {k: v[:700].copy() for k, v in table_of("poisson").items()}
    _, result = fitted(table, slopes(2), "poisson", 0.5, target="likelihood")
    assert not any(result["estimable"])
    assert trust.information(0.99).intervals
    assert trust.information(1.01).sentences == (words.INFORMATION_UNKNOWN,)


def test_amounts_allow_for_what_is_cut_along_one_direction() -> None:
    """All long scores of a Gamma law have one sign: what is cut of them is longer than counts allow
    for, and no longer than amounts do, which allow for more the farther out the cut is."""
    family, law = FAMILIES["gamma"], table_of("gamma")
    fit = reference(law, REFERENCE["gamma", None])
    score = family.likelihood(float(np.sqrt(fit.scale)), Start(0.5, 1.0, 50.0))
    X = np.column_stack([np.ones(N), law["x0"], law["x1"]])
    q = score.evaluate(law["y"], X @ fit.params)
    white = X @ np.linalg.cholesky(np.linalg.inv(X.T @ X / N))
    lengths = np.abs(q) * np.linalg.norm(white, axis=1)
    cut = np.sort(lengths)[-60]
    over = np.maximum(lengths - cut, 0) / lengths
    lost = np.linalg.norm((white * q[:, None]).T @ over)
    excess = float((over * lengths).sum())
    counts = FAMILIES["poisson"].likelihood(1.0, Start(0.5, 1.0, 50.0))
    assert counts.leaning(3, 60 / N) * excess < lost <= score.leaning(3, 60 / N) * excess
    assert [score.leaning(3, share) for share in (0.02, 0.002)] == [0.9, 1.0]
    assert score.leaning(3, 0.002 / 32) == pytest.approx(4.0)
