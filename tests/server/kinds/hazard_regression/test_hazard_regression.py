# SPDX-License-Identifier: Apache-2.0
"""Hazard regressions beside R's on the same tables, what an offset does to the baseline, and
questions that are refused.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.kinds.hazard_regression import HazardResults
from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.kinds.hazard_regression.surv import parse_hazards
from support.fits.hazards import (
    COLUMNS,
    FORMULA,
    GROUP,
    OFFSET,
    PARTS,
    persons,
    planned_partial,
)
from support.fits.regressions import HUGE_RHO, facts_of, whole
from support.kinds.recipes import outcome
from support.seeds import seeded
from support.tables.follow_up import offer

LATE = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")
R = json.loads((Path(__file__).parents[3] / "fixtures" / "r_hazards.json").read_text())
CUTS = tuple(map(float, R["cuts"]))


def result_of(fit: Any) -> Any:
    """As a client has it."""
    return HazardResults({"result": result_json(fit), "query": {"formula": FORMULA}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "late", "formula"), [("plain", 0.0, FORMULA), ("late", 0.5, LATE)]
)
def test_with_little_noise_it_is_rs_regression(name: Any, late: Any, formula: Any) -> None:
    """Coefficients are coxph's, and so are a person's survival curves."""
    data = persons(np.random.default_rng(18), 8000, late=late)  # fixed: R was given these persons
    fit = outcome(planned_partial(data, HUGE_RHO, formula, cuts=CUTS), whole(data))
    reference = R[name]
    gap = (np.array(fit.coefficients) - reference["cox"]) / reference["cox_errors"]
    assert np.abs(gap).max() < 0.15
    ratio = np.array(fit.standard_errors) / reference["cox_errors"]
    assert (ratio > 0.9).all()
    assert (ratio < 1.15).all()
    people = {name: np.array(values) for name, values in R["persons"].items()}
    curves = result_of(fit).predict_survival(people, R["times"])
    assert curves.survival == pytest.approx(np.array(reference["survival"]), abs=0.03)
    assert (curves.lower < curves.survival).all()
    assert (curves.survival < curves.upper).all()


@pytest.mark.slow
def test_a_shifted_offset_moves_the_baseline_alone_and_an_exposure_is_its_exponential() -> None:
    data = persons(seeded(20), 3000, offset=0.7)
    fit = outcome(planned_partial(data, HUGE_RHO, offset="o", cuts=CUTS), whole(data))
    parts = outcome(planned_partial(data, HUGE_RHO, exposure="parts", cuts=CUTS), whole(data))
    data["o"] = data["o"] - 1.5
    moved = outcome(planned_partial(data, HUGE_RHO, offset="o", cuts=CUTS), whole(data))
    for other, ratio in ((parts, 1.0), (moved, np.exp(1.5))):
        assert other.coefficients == pytest.approx(np.array(fit.coefficients), abs=0.03)
        hazards = np.array(fit.baseline.hazards) * ratio
        assert np.array(other.baseline.hazards) == pytest.approx(hazards, rel=0.03)


def test_what_is_planned_from_sizes_alone() -> None:
    data = persons(seeded(1), 2000)
    counts = [len(planned_partial(data, offer(e).rho).asked.cuts) for e in (0.5, 4.0)]
    assert counts == [4, 6]


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
    data = persons(seeded(0), 50)
    with pytest.raises(InvalidQuery, match="one row"):
        planned_partial(data, 10**10, offset="o", max_rows=3)


@pytest.mark.parametrize("cuts", [(), (0.0, 1.0), (2.0, 1.0), (1.0, 13.0), (float("nan"),)])
def test_wrong_cuts_are_refused_when_planning(cuts: Any) -> None:
    with pytest.raises(InvalidQuery):
        parse_hazards(FORMULA, facts_of(1000, COLUMNS, None), cuts, None, 0.01)
