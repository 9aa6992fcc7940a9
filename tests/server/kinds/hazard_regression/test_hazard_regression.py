# SPDX-License-Identifier: Apache-2.0
"""Hazard regressions beside R's and Cox's on the same tables: near them, with intervals that hold
the truth.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.kinds.hazard_regression import HazardResults
from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.kinds.hazard_regression.budget import SHARES, planned_stop
from reticent_server.kinds.hazard_regression.follow_up import stopped, watched
from reticent_server.kinds.hazard_regression.maps import ExposureMap
from reticent_server.kinds.hazard_regression.offset import PublicOffset
from reticent_server.kinds.hazard_regression.report import OFFSET_LEANS
from reticent_server.kinds.hazard_regression.surv import Hazards, parse_hazards
from support.fits.hazards import (
    BETA,
    COLUMNS,
    FORMULA,
    GROUP,
    OFFSET,
    PARTS,
    RATE,
    SHAPE,
    cox,
    persons,
    planned,
)
from support.fits.regressions import HUGE_RHO, facts_of, profile_of, whole
from support.kinds.recipes import outcome
from support.tables.follow_up import offer

LATE = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")
R = json.loads((Path(__file__).parents[3] / "fixtures" / "r_hazards.json").read_text())
CUTS = tuple(map(float, R["cuts"]))
ASKED = Hazards(
    planned(persons(np.random.default_rng(0), 50), 10**10).asked.design, "t", "e", "s", CUTS
)


def result_of(fit: Any) -> Any:
    """As a client has it."""
    return HazardResults({"result": result_json(fit), "query": {"formula": FORMULA}})


@pytest.mark.parametrize(
    ("name", "late", "formula"), [("plain", 0.0, FORMULA), ("late", 0.5, LATE)]
)
def test_with_little_noise_it_is_rs_regression(name: Any, late: Any, formula: Any) -> None:
    """Weights and stopped follow-up cost a few per cent of the information: what two such fits
    differ by is some .3 standard errors.
    """
    data = persons(np.random.default_rng(18), 8000, late=late)
    fit = outcome(planned(data, HUGE_RHO, formula, CUTS), whole(data))
    reference = R[name]
    for kind in ("cox", "piecewise"):
        gap = (np.array(fit.coefficients) - reference[kind]) / reference[f"{kind}_errors"]
        assert np.abs(gap).max() < 0.8
    ratio = np.array(fit.standard_errors) / reference["cox_errors"]
    assert (ratio > 0.95).all()
    assert (ratio < 1.25).all()
    people = {name: np.array(values) for name, values in R["persons"].items()}
    curves = result_of(fit).predict_survival(people, R["times"])
    assert curves.survival == pytest.approx(np.array(reference["survival"]), abs=0.03)
    assert (curves.lower < curves.survival).all()
    assert (curves.survival < curves.upper).all()


def test_late_entry_matters() -> None:
    """Without the start column the persons who left unseen before it would be missing from the
    baseline.
    """
    data = persons(np.random.default_rng(18), 8000, late=0.5)
    early = outcome(planned(data, HUGE_RHO, FORMULA, CUTS), whole(data)).baseline.hazards
    right = outcome(planned(data, HUGE_RHO, LATE, CUTS), whole(data)).baseline.hazards
    assert early[0] < 0.85 * right[0]


def test_an_offset_is_coxs() -> None:
    """Half of its variance goes with age: without it age's slope takes .5 of it. Baselines are
    those at an offset of 0, where the true hazard is RATE * SHAPE * t^.3, less what standard
    persons have.
    """
    data = persons(np.random.default_rng(19), 8000, offset=0.7)
    X = np.column_stack([data[name] for name in ("age", "arm", "dose")])
    exact, V = cox(X, 0 * data["t"], data["t"], data["e"], offset=data["o"])
    fit = outcome(planned(data, HUGE_RHO, FORMULA, CUTS, offset="o"), whole(data))
    assert (np.abs(np.array(fit.coefficients) - exact) < 0.9 * np.sqrt(np.diag(V))).all()
    without = outcome(planned(data, HUGE_RHO, FORMULA, CUTS), whole(data))
    assert without.coefficients[0] > exact[0] + 0.3
    at, middle = np.array([2.0, 6.0]), BETA @ [0.0, 0.5, 1.0]
    curve = result_of(fit).predict_survival({"age": [0.5], "arm": [1.0], "dose": [0.5]}, at)
    eta = BETA @ [0.5, 1.0, 0.5] - middle
    assert curve.survival[0] == pytest.approx(np.exp(-RATE * at**SHAPE * np.exp(eta)), abs=0.02)
    assert fit.estimand.endswith("with an offset in the predictor")
    assert OFFSET_LEANS in fit.warnings
    without = outcome(planned(data, HUGE_RHO, FORMULA, CUTS), whole(data))
    assert OFFSET_LEANS not in without.warnings


def test_a_shifted_offset_moves_the_baseline_alone_and_an_exposure_is_its_exponential() -> None:
    data = persons(np.random.default_rng(20), 5000, offset=0.7)
    fit = outcome(planned(data, HUGE_RHO, FORMULA, CUTS, offset="o"), whole(data))
    parts = outcome(planned(data, HUGE_RHO, FORMULA, CUTS, exposure="parts"), whole(data))
    data["o"] = data["o"] - 1.5
    moved = outcome(planned(data, HUGE_RHO, FORMULA, CUTS, offset="o"), whole(data))
    for other, ratio in ((parts, 1.0), (moved, np.exp(1.5))):
        # The noise of HUGE_RHO, and what public rows know of the two columns' middles.
        assert other.coefficients == pytest.approx(np.array(fit.coefficients), abs=0.01)
        hazards = np.array(fit.baseline.hazards) * ratio
        assert np.array(other.baseline.hazards) == pytest.approx(hazards, rel=0.02)


def test_times_at_risk_count_an_offset_up_to_a_public_limit() -> None:
    """By hand: o − m of −1, 0 and 3, at most 2 times; and the plan has m = ln E exp(o)."""
    data = {"t": np.full(3, 1.0), "e": np.zeros(3), "o": np.array([-0.5, 0.5, 3.5])}
    asked = planned(persons(np.random.default_rng(0), 50), 10**10, offset="o").asked
    (rows,) = ExposureMap(asked, PublicOffset(0.5, 2.0))(whole(data))
    J = len(asked.cuts)
    full = min(1.0, asked.cuts[0]) / asked.cuts[0] / np.sqrt(J)
    assert np.asarray(rows)[J] == pytest.approx(full * np.array([np.exp(-1) / 2, 0.5, 1.0]))
    many = persons(np.random.default_rng(1), 20_000, offset=0.5)
    ground = planned(many, 10**10, offset="o").ground
    assert ground.offset.middle == pytest.approx(0.125, abs=0.02)
    assert 2.0 < ground.offset.most < 2.6  # exp(.5 * 2.05 - .125)


AUDITED = [(20_000, 1.0, 0.0), (5000, 4.0, 0.7), (20_000, 1.0, 0.7)]
CELLS = [
    (2000, 4.0, 0.0),
    (5000, 1.0, 0.0),
    *(pytest.param(*x, marks=pytest.mark.audit) for x in AUDITED),
]


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize(("n", "epsilon", "spread"), CELLS)
def test_intervals_hold_the_truth_and_the_noise_is_as_reported(
    n: Any, epsilon: Any, spread: Any
) -> None:
    """Of 24 seeded tables: 72 intervals, whose coverage has a standard error of .026. spread: the
    offset's.
    """
    rng = np.random.default_rng(n)
    held, distance = [], []
    for _ in range(24):
        data = persons(rng, n, offset=spread)
        offset = "o" if spread else None
        fit = outcome(planned(data, offer(epsilon).rho, offset=offset), whole(data))
        low, high = np.array(fit.confidence_intervals, dtype=float).T
        held.append((low <= BETA) & (high >= BETA))
        X = np.column_stack([data[name] for name in ("age", "arm", "dose")])
        exact, _ = cox(X, 0 * data["t"], data["t"], data["e"], offset=data["o"])
        distance.append((np.array(fit.coefficients) - exact) / fit.privacy_standard_errors)
    assert np.mean(held) >= 0.86
    assert 0.6 < np.sqrt(np.mean(np.square(distance))) < {4.0: 1.8, 1.0: 1.6}[epsilon]


@pytest.mark.slow
def test_baseline_and_curves_cover_the_true_survival() -> None:
    """Of 20 seeded tables at three times: 60 intervals of a person's survival, dependent within a
    table.
    """
    rng, held = np.random.default_rng(4), []
    person = {"age": [0.5], "arm": [1.0], "dose": [0.5]}
    at, eta = np.array([2.0, 5.0, 9.0]), BETA @ [0.5, 1.0, 0.5]
    middle = BETA @ [0.0, 0.5, 1.0]
    for _ in range(20):
        data = persons(rng, 10_000)
        fit = outcome(planned(data, offer(4.0).rho), whole(data))
        curves = result_of(fit).predict_survival(person, at.tolist())
        truth = np.exp(-RATE * at**SHAPE * np.exp(eta - middle))
        held.append((curves.lower[0] <= truth + 0.01) & (curves.upper[0] >= truth - 0.01))
    assert np.mean(held) >= 0.85


def test_stopped_follow_up_by_hand() -> None:
    table = {
        "t": [3.0, 0.5, 12.0, 2.0, 5.0],
        "e": [1.0, 1.0, 0.0, 1.0, 1.0],
        "s": [0.0, 0.0, 0.0, 2.5, 4.0],
    }
    block = whole({name: np.array(values) for name, values in table.items()})
    found = watched(ASKED, block)
    assert found.at_risk[:, 0].tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert found.at_risk[:, 2].tolist() == [1, 1, 1, 1.5, 1.5, 2, 4]
    assert found.at_risk[:, 3].tolist() == [0] * 7  # comes after it has left
    assert found.at_risk[:, 4].tolist() == [0, 0, 0, 0.5, 0.5, 0, 0]
    seen, expected = stopped(found, np.full(7, 0.4), np.zeros(5), 1.0)
    assert expected[:, 0] == pytest.approx([0.4, 0.4, 0.2, 0, 0, 0, 0])
    assert seen.sum(axis=0).tolist() == [
        0,
        1,
        0,
        0,
        1,
    ]  # the first is stopped before, the fourth was never there
    assert seen[0, 1] == seen[4, 4] == 1
    assert expected.sum(axis=0) == pytest.approx([1, 0.2, 1, 0, 0.4])


@pytest.mark.parametrize("stop", [1.0, 2.0])
def test_stopping_biases_nothing_at_the_true_hazards(stop: Any) -> None:
    """m_j and x_j Σm have mean 0: within 4.9 standard errors, as all but one in 10^6 of such means
    are.
    """
    rng, n = np.random.default_rng(7), 100_000
    x, hazards = rng.normal(size=n), np.array([0.05, 0.2, 0.1, 0.3, 0.1, 0.2, 0.1])
    running = np.append(0.0, np.cumsum(hazards * np.diff(CUTS, prepend=0.0)))
    until = np.interp(
        rng.exponential(size=n) * np.exp(-0.7 * x), running, np.append(0.0, CUTS), right=99.0
    )
    end = rng.uniform(0, 12, n)
    start = rng.uniform(0, 3, n) * (rng.random(n) < 0.5)
    kept = start < np.minimum(until, end)
    table = {"t": np.minimum(until, end)[kept], "e": (until <= end)[kept] * 1.0, "s": start[kept]}
    seen, expected = stopped(watched(ASKED, whole(table)), hazards, 0.7 * x[kept], stop)
    m = seen - expected
    for values in (*m, x[kept] * m.sum(axis=0)):
        assert abs(values.mean()) < 4.9 * values.std() / np.sqrt(len(values))


def test_a_dummy_group_and_records_out_of_use() -> None:
    rng, n = np.random.default_rng(5), 20_000
    data = persons(rng, n)
    data["g"] = rng.integers(0, 3, n) * 1.0
    columns = [*COLUMNS, GROUP]
    facts = facts_of(n, columns, profile_of(data, COLUMNS, {"g": 3}))
    from reticent_server.kinds.hazard_regression.plan import plan_hazard_regression

    rho = offer(4.0).rho
    asked = parse_hazards("Surv(t, e) ~ age + C(g)", facts, None, "arm == 1", rho / 10**12)
    plan = plan_hazard_regression(facts, asked, 0.95, rho)
    fit = outcome(plan, whole(data))
    assert fit.terms == ["age", "C(g)[b]", "C(g)[c]"]
    assert all(fit.estimable)
    assert fit.records_in_use == pytest.approx(n / 2, rel=0.1)
    slopes, errors = np.array(fit.coefficients), np.array(fit.standard_errors)
    assert (np.abs(slopes[1:]) < 4.5 * errors[1:]).all()
    assert plan.rho <= rho
    assert plan.rho == plan.budget.rho < sum(plan.budget.amounts.values())
    assert sum(plan.shares.values()) == pytest.approx(1)


def test_without_a_profile_the_query_makes_its_own() -> None:
    data = persons(np.random.default_rng(6), 20_000)
    plan = planned(data, offer(4.0).rho, profile=False)
    fit = outcome(plan, whole(data))
    assert plan.passes == 6
    assert plan.forecast["notes"] == fit.warnings[-1:]
    assert (np.abs(np.array(fit.coefficients) - BETA) < 5 * np.array(fit.standard_errors)).all()


def test_too_little_is_said_to_be_too_little() -> None:
    data = persons(np.random.default_rng(8), 300)
    fit = outcome(planned(data, offer(0.3).rho), whole(data))
    assert not any(fit.estimable)
    assert fit.p_values == [None] * 3
    assert "Not identifiable" in fit.warnings[0]
    json.dumps(result_json(fit), allow_nan=False)


def test_collinear_regressors_are_not_identifiable() -> None:
    data = persons(np.random.default_rng(9), 10_000)
    data["dose"] = np.clip(data["age"] + 6, 0, 12)
    fit = outcome(planned(data, offer(2.0).rho), whole(data))
    assert not fit.estimable[0]
    assert not fit.estimable[2]


def test_a_new_centre_changes_no_hazard() -> None:
    rng = np.random.default_rng(2)
    plan = planned(persons(rng, 50), 10**10)
    begun = plan._point(rng.normal(size=(3, 4)), np.full(len(plan.asked.cuts), 0.2), 0.0)
    slopes, logs, x = rng.normal(size=3), rng.normal(size=len(begun.hazards)), rng.normal(size=4)
    moved = plan._moved(begun, slopes, logs)
    x[0] = 1.0
    wanted = begun.hazards * np.exp(logs + begun.transform @ x @ slopes)
    assert moved.hazards * np.exp(moved.transform @ x @ slopes) == pytest.approx(wanted)


def test_what_is_planned_from_sizes_alone() -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0)
    assert planned_stop(5000, 3, offer(1.0).rho // 2, 1) == 1.0
    assert planned_stop(200_000, 3, offer(4.0).rho // 2, 1) == 3.0
    data = persons(np.random.default_rng(1), 2000)
    counts = [len(planned(data, offer(e).rho).asked.cuts) for e in (0.5, 4.0)]
    assert counts == [4, 6]
    ratios = [planned(data, offer(e).rho).forecast["privacy_to_sampling"][0] for e in (1.0, 4.0)]
    assert ratios[0] > 1 > ratios[1]


WRONG = {
    "t ~ age": InvalidFormula,
    "Surv(t) ~ age": InvalidFormula,
    "Surv(t, e, age, arm) ~ age": InvalidFormula,
    "Surv(t, e) ~ 0 + age": InvalidFormula,
    "Surv(t, e) ~ 1": InvalidFormula,
    "Surv(t, e) ~ nowhere": InvalidFormula,
    "Surv(t, e) ~ age + t": InvalidFormula,
    "Surv(t, e) ~ age + e": InvalidFormula,
    "Surv(t, age) ~ dose": InvalidQuery,
    "Surv(age, e) ~ dose": InvalidQuery,
    "Surv(t, t, e) ~ age": InvalidQuery,
}


@pytest.mark.parametrize("formula", WRONG)
def test_wrong_formulas_are_refused_when_planning(formula: Any) -> None:
    facts = facts_of(1000, COLUMNS, None)
    with pytest.raises(WRONG[formula]):
        parse_hazards(formula, facts, None, None, 0.01)


WRONG_OFFSETS: list[tuple[dict[str, str], str]] = [
    ({"offset": "t"}, "cannot be the offset"),
    ({"exposure": "e"}, "cannot be the offset"),
    ({"offset": "o", "exposure": "parts"}, "not both"),
    ({"exposure": "o"}, "above 0"),
    ({"offset": "g"}, "numeric column"),
    ({"offset": "nowhere"}, "numeric column"),
]


@pytest.mark.parametrize(("special", "words"), WRONG_OFFSETS)
def test_wrong_offsets_are_refused_when_planning(special: Any, words: str) -> None:
    facts = facts_of(1000, [*COLUMNS, OFFSET, PARTS, GROUP], None)
    with pytest.raises(InvalidQuery, match=words):
        parse_hazards(FORMULA, facts, None, None, 0.01, **special)


def test_persons_with_several_rows_have_no_offset() -> None:
    data = persons(np.random.default_rng(0), 50)
    with pytest.raises(InvalidQuery, match="one row"):
        planned(data, 10**10, offset="o", max_rows=3)


@pytest.mark.parametrize("cuts", [(), (0.0, 1.0), (2.0, 1.0), (1.0, 13.0), (float("nan"),)])
def test_wrong_cuts_are_refused_when_planning(cuts: Any) -> None:
    with pytest.raises(InvalidQuery):
        parse_hazards(FORMULA, facts_of(1000, COLUMNS, None), cuts, None, 0.01)
