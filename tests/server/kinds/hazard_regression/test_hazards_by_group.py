# SPDX-License-Identifier: Apache-2.0
"""Hazard regressions by group: each finds Cox's coefficients of its own group."""

from typing import Any

import numpy as np
import pytest

from reticent_server.errors import InvalidQuery
from reticent_server.kinds.hazard_regression.kind import KIND, HazardRegression
from reticent_server.mechanisms import registry as mechanisms
from support.fits.hazards import COLUMNS, FORMULA, GROUP, cox, persons
from support.fits.regressions import drive, facts_of, profile_of, whole
from support.seeds import seeded
from support.tables.follow_up import offer

ALL = [*COLUMNS, GROUP]


def by_group(data: Any, epsilon: float, formula: str = FORMULA, **fields: Any) -> Any:
    facts = facts_of(len(data["t"]), ALL, profile_of(data, COLUMNS, {"g": 3}))
    query = HazardRegression(formula, target="likelihood", by="g", **fields)
    plan = KIND.plan(facts, query, offer(epsilon))
    return plan, drive(plan.run(), whole(data))


def spent(trace: Any) -> int:
    return sum(map(mechanisms.rho, trace.steps))


@pytest.mark.slow
def test_each_group_has_coxs_coefficients_of_its_own_records() -> None:
    """To .4 of Cox's standard errors, with next to no noise; slopes of the second group have the
    other sign, and the third has no record. The charge is that of the steps, all of
    what is offered.
    """
    data = persons(seeded(31), 4000, strata=3)
    data["g"] = np.where(data["g"] == 2, 0.0, data["g"])
    data["age"] = np.where(data["g"] == 1, -data["age"], data["age"])
    plan, trace = by_group(data, 300.0)
    assert len(trace.steps) == plan.passes
    assert 0.99 * offer(300.0).rho < spent(trace) <= plan.outlined.rho <= offer(300.0).rho
    first, second, empty = trace.result["groups"]
    assert [fit["level"] for fit in (first, second, empty)] == ["a", "b", "c"]
    for g, fit in enumerate((first, second)):
        own = data["g"] == g
        X = np.column_stack([data[name] for name in ("age", "arm", "dose")])[own]
        beta, V = cox(X, 0 * data["t"][own], data["t"][own], data["e"][own])
        off = (np.array(fit["coefficients"]) - beta) / np.sqrt(np.diag(V))
        assert np.abs(off).max() < 0.4
        assert fit["records_in_use"] == pytest.approx(own.sum(), rel=0.02)
    assert second["coefficients"][0] < 0 < first["coefficients"][0]
    assert not any(empty["estimable"])
    assert np.isfinite(empty["coefficients"]).all()


@pytest.mark.audit
def test_the_charge_of_late_entries_and_bins_is_that_of_the_steps() -> None:
    data = persons(seeded(32), 600, strata=3)
    late = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")
    plan, trace = by_group(data, 1.0, late, proportionality=2)
    assert 0.99 * offer(1.0).rho < spent(trace) <= plan.outlined.rho <= offer(1.0).rho


def test_the_forecast_is_of_the_smallest_group() -> None:
    data = persons(seeded(34), 600, strata=3)
    data["g"] = (np.arange(600) < 60) * 1.0 + (np.arange(600) < 20) * 1.0
    facts = facts_of(600, ALL, profile_of(data, COLUMNS, {"g": 3}))
    plan = KIND.plan(facts, HazardRegression(FORMULA, by="g"), offer(4.0))
    assert plan.forecast["group"] == "c"


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"by": "arm"}, "another column"),
        ({"by": "age"}, "categorical"),
        ({"by": "g", "strata": "g"}, "another column"),
    ],
)
def test_a_column_that_makes_no_groups_is_refused(fields: dict[str, str], match: str) -> None:
    facts = facts_of(600, ALL, None)
    with pytest.raises(InvalidQuery, match=match):
        KIND.plan(facts, HazardRegression(FORMULA, **fields), offer(1.0))
