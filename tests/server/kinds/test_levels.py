# SPDX-License-Identifier: Apache-2.0
"""Multinomial and ordinal logits: what they estimate, how sure they are of it, what they decline,
and what they refuse.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.kinds.glm.categories.law import Latent
from reticent_server.kinds.glm.categories.multinomial import Multinomial
from reticent_server.kinds.glm.categories.ordinal import Ordinal
from reticent_server.kinds.glm.kind import KIND
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.subsample_aggregate.model import fitted_model
from support.fits.categories import (
    AGE,
    ANSWER,
    COLUMNS,
    design,
    even_people,
    people,
    planned,
    truth,
)
from support.fits.regressions import HUGE_RHO, drive, facts_of, numeric, whole
from support.seeds import seeded

FAMILIES = ("multinomial", "ordinal")
REFERENCE = json.loads(
    (Path(__file__).resolve().parents[2] / "fixtures/statsmodels_levels.json").read_text("utf-8")
)
RHO = int(0.02436 * RHO_UNITS)  # ε = 1


def answered(plan: Any, table: Any) -> Any:
    return drive(plan.run(), whole(table)).result


def numbers(result: Any, name: str) -> Any:
    return np.array(result[name], dtype=float)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_it_is_the_fit_of_statsmodels(family: str) -> None:
    """On a table where all records have the weight 1; standard errors are a sandwich, statsmodels'
    those of the model.
    """
    given = np.random.default_rng(11)  # fixed: statsmodels was given its table
    table = even_people(given, 3000, family)
    found = answered(planned(table, HUGE_RHO, family, "g ~ age + arm"), table)
    wanted, errors = (np.array(REFERENCE[family][k]) for k in ("coefficients", "standard_errors"))
    se = numbers(found, "standard_errors")
    assert np.abs((numbers(found, "coefficients") - wanted) / se).max() < 1e-3
    assert se[: len(errors)] == pytest.approx(errors, rel=0.06)
    assert all(found["estimable"])
    assert found["levels"] == list(ANSWER.levels)


def log_likelihood(family: str, X: Any, y: Any, b: Any) -> Any:
    """(n,) of each record, by the textbook's formula."""
    rows = np.arange(len(y))
    if family == "multinomial":
        eta = np.column_stack([np.zeros(len(X)), X @ b.reshape(3, -1).T])
        return eta[rows, y] - np.logaddexp.reduce(eta, axis=1)
    k = X.shape[1] - 1
    below = expit(b[k:] - (X[:, 1:] @ b[:k])[:, None])
    cells = np.diff(np.column_stack([np.zeros(len(X)), below, np.ones(len(X))]), axis=1)
    return np.log(np.maximum(cells[rows, y], 1e-300))


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimand_is_the_likelihood_with_the_weights_of_the_reply(family: str) -> None:
    """With a column of weights, a mask, and records far out: solved from `weighting` by another
    method.
    """
    table = people(seeded(3), 4000, family)
    plan = planned(table, HUGE_RHO, family, where="age < 2", weights="a")
    found = answered(plan, table)
    X, matrix = design(table), np.array(found["weighting"]["matrix"])
    radius = found["weighting"]["radius_squared"]
    w = np.minimum(1, radius / ((X @ matrix.T) ** 2).sum(axis=1)) * table["a"] * (table["age"] < 2)
    assert (w < table["a"]).sum() > 200
    codes = table["g"].astype(int)

    def loss(b: Any) -> Any:
        return -float(w @ log_likelihood(family, X, codes, b)) / len(X)

    wanted = minimize(loss, truth(family), method="BFGS", options={"gtol": 1e-7}).x
    off = (numbers(found, "coefficients") - wanted) / numbers(found, "standard_errors")
    assert np.abs(off).max() < 0.02
    used = table["a"][table["age"] < 2].sum()
    assert found["sum_of_weights"] == pytest.approx(used, rel=1e-3)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_hold_the_truth_and_are_as_wide_as_forecast(family: str) -> None:
    rng, held, ratios = seeded(6), [], []
    for _ in range(8):
        table = people(rng, 5000, family)
        plan = planned(table, RHO, family)
        found = answered(plan, table)
        se, noise = numbers(found, "standard_errors"), numbers(found, "privacy_standard_errors")
        held += (np.abs(numbers(found, "coefficients") - truth(family)) < 1.96 * se).tolist()
        ratios.append(noise / np.sqrt(se**2 - noise**2))
    assert np.mean(held) > 0.88  # 8 tables; the audit has 200, and .93 to .97
    forecast = np.array(plan.forecast["privacy_to_sampling"], dtype=float)
    assert np.median(ratios, axis=0) == pytest.approx(forecast, rel=0.4)
    assert plan.precision.names == tuple(found["terms"])
    assert sum(plan.shares.values()) == pytest.approx(1)
    assert plan.passes == plan.budget.steps + len(plan.budget.rounds)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_releases_do_not_tell_has_no_interval(family: str) -> None:
    """A regressor that is constant in the table, and so is nothing beside the intercept."""
    table = people(seeded(7), 20000, family)
    table["dose"][:] = 1.0
    found = answered(planned(table, RHO, family), table)
    flags = dict(zip(found["terms"], found["estimable"], strict=True))
    before = "" if family == "ordinal" else "middle: "
    assert not flags[f"{before}dose"]
    assert flags[f"{before}age"]
    assert any(f"{before}dose" in said for said in found["warnings"])
    for name, interval in zip(found["terms"], found["confidence_intervals"], strict=True):
        assert (interval[0] is None) is not flags[name]


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_separated_levels_are_a_reply_that_says_so(family: str) -> None:
    table = people(seeded(8), 4000, family)
    table["g"] = np.floor(np.clip(table["age"] + 2, 0, 3.99))
    found = answered(planned(table, 100 * RHO, family, "g ~ age"), table)
    assert np.isfinite(numbers(found, "coefficients")).all()
    assert any("separated" in said for said in found["warnings"])


@pytest.mark.slow
def test_whole_numbers_are_levels_and_a_profile_of_its_own_is_part_of_the_charge() -> None:
    table = people(seeded(9), 20000, "ordinal")
    table["g"] += 1.0
    columns = [*COLUMNS, Column("g", ColumnKind.INTEGER, 1.0, 4.0)]
    facts = facts_of(len(table["g"]), columns, None)
    offer = PrivacyCost(10**9, 10**3, RHO)
    plan = KIND.plan(facts, Glm("g ~ age + arm + dose", "ordinal"), offer)
    found = answered(plan, table)
    assert found["levels"] == ["1", "2", "3", "4"]
    assert found["shares"]["profile"] > 0.01
    assert 0.999 * RHO < plan.rho <= RHO
    off = (numbers(found, "coefficients") - truth("ordinal")) / numbers(found, "standard_errors")
    assert np.abs(off).max() < 4
    assert any("profile" in said for said in found["warnings"])


def asked(**fields: Any) -> Any:
    two = Column("two", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
    many = Column("many", ColumnKind.INTEGER, 0.0, 40.0)
    more = [numeric(f"x{j}") for j in range(20)]
    unit = fields.pop("max_rows", 1)
    facts = facts_of(1000, [*COLUMNS, ANSWER, two, many, *more], None, unit)
    query = Glm(**{"formula": "g ~ age", "family": "multinomial"} | fields)
    return KIND.plan(facts, query, PrivacyCost(10**9, 10**3, RHO))


@pytest.mark.parametrize(
    "fields",
    [
        {"formula": "age ~ arm"},
        {"formula": "two ~ age"},
        {"formula": "many ~ age"},
        {"formula": "g ~ 1"},
        {"formula": "g ~ 0 + age"},
        {"formula": "g ~ " + " + ".join(f"x{j}" for j in range(20))},
        {"tuning": 2.0},
        {"link": "probit"},
        {"dispersion": 0.5},
        {"by": "two"},
        {"offset": "dose"},
        {"exposure": "dose"},
        {"fit_statistics": True},
        {"mechanism": "influence"},
        {"calibration": "ptr"},
        {"max_rows": 3},
    ],
    ids=str,
)
def test_what_these_families_have_no_proof_of_is_refused_when_planning(fields: Any) -> None:
    with pytest.raises(InvalidQuery):
        asked(**fields)


def test_other_questions_take_no_column_of_levels() -> None:
    for formula in ("C(g) ~ age", "log(g) ~ age", "g + age ~ arm"):
        with pytest.raises((InvalidFormula, InvalidQuery)):
            asked(formula=formula)
    with pytest.raises(InvalidFormula):
        asked(formula="g ~ age", family="poisson")
    facts = facts_of(1000, [AGE, Column("k", ColumnKind.INTEGER, 0.0, 3.0)], None)
    with pytest.raises(InvalidQuery):
        fitted_model(facts, Glm("k ~ age", "ordinal"), correction=False)


LAWS = {
    "multinomial": Multinomial(4),
    "ordinal": Ordinal(5, 1),
    "ordinal from the first": Ordinal(3, 0),
}


@pytest.mark.parametrize("name", LAWS)
def test_scores_are_derivatives_of_the_log_probabilities_of_levels(name: str) -> None:
    law, rng, h = LAWS[name], seeded(5), 1e-6
    eta, spacings = rng.normal(size=(law.predictors, 7)), rng.normal(size=law.spacings)
    p, s = law.cells(Latent(eta, spacings))
    assert p.sum(axis=0) == pytest.approx(1)
    for k in range(law.predictors + law.spacings):
        step = np.eye(law.predictors + law.spacings)[k] * h
        moved = [
            law.cells(
                Latent(
                    eta + sign * step[: law.predictors, None],
                    spacings + sign * step[law.predictors :],
                )
            )[0]
            for sign in (1, -1)
        ]
        slope = (np.log(moved[0]) - np.log(moved[1])) / (2 * h)
        assert s[:, k] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", LAWS)
def test_what_is_reported_has_its_derivative(name: str) -> None:
    law, rng, h = LAWS[name], seeded(6), 1e-6
    theta, spacings = rng.normal(size=(law.predictors, 3)), rng.normal(size=law.spacings)
    _, change = law.reported(theta, spacings)
    whole_point = np.append(theta.ravel(), spacings)

    def at(point: Any) -> Any:
        return law.reported(point[: theta.size].reshape(theta.shape), point[theta.size :])[0]

    for k, row in enumerate(h * np.eye(len(whole_point))):
        slope = (at(whole_point + row) - at(whole_point - row)) / (2 * h)
        assert change[:, k] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", LAWS)
def test_a_start_has_the_public_shares(name: str) -> None:
    law = LAWS[name]
    shares = np.arange(1.0, law.levels + 1) / np.arange(1.0, law.levels + 1).sum()
    eta, spacings = law.start(shares)
    assert law.cells(Latent(eta[:, None], spacings))[0][:, 0] == pytest.approx(shares)
