# SPDX-License-Identifier: Apache-2.0
"""The planned location and scale by influence: replies, standard errors, refusals, cost."""

from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.proposal2 import fit_proposal2

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.design import Compare, Design
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.location_scale.influence import plan_influence_location_scale
from reticent_server.kinds.location_scale.query import LocationScale
from support.fits.regressions import facts_of, numeric, profile_of, whole
from support.kinds.recipes import answer
from support.seeds import seeded

N = 20_000
COLUMN = numeric("y")


def values(n: Any = N, law: str = "normal", seed: int = 0) -> Any:
    rng = seeded(seed)
    return 1.0 + 0.7 * (rng.normal(size=n) if law == "normal" else rng.exponential(size=n))


def planned(
    y: Any,
    epsilon: float = 4.0,
    *,
    profile: bool = True,
    max_rows: int = 1,
    where: Any = None,
    missing: Any = (),
    **fields: Any,
) -> Any:
    table = {"y": y}
    facts = facts_of(len(y), [COLUMN], profile_of(table, [COLUMN]) if profile else None, max_rows)
    design = Design(None, (), False, where, ("y",), missing)
    query = LocationScale("y", mechanism="influence", **({"calibration": "asymptotic"} | fields))
    offer = PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, 10**10)
    return plan_influence_location_scale(facts, design, COLUMN, query, offer)


@pytest.mark.parametrize("law", ["normal", "exponential"])
@pytest.mark.parametrize("profile", [True, False])
def test_it_is_the_joint_solution_with_the_standard_errors_it_names(
    law: str, profile: bool
) -> None:
    y = values(law=law)
    plan = planned(y, profile=profile)
    found = answer(plan, whole({"y": y}))
    exact = fit_proposal2(y, found["tuning"])
    error = np.array([found["location"] - exact.location, found["scale"] - exact.scale])
    assert np.abs(error / found["privacy_standard_errors"]).max() < 7
    assert max(found["privacy_standard_errors"]) < 0.05
    sampling = np.array(found["standard_errors"]) ** 2 - np.square(found["privacy_standard_errors"])
    assert np.sqrt(sampling) == pytest.approx(np.sqrt(np.diag(exact.covariance)), rel=0.25)
    assert found["calibration"] == "asymptotic"
    assert found["estimable"] == [True, True]
    assert any("not shown" in warning for warning in found["warnings"])


@pytest.mark.slow
def test_errors_are_of_the_size_of_the_noise() -> None:
    y = values()
    plan = planned(y)
    exact = fit_proposal2(y, plan.part.tuning)
    z = []
    for _ in range(20):
        found = answer(plan, whole({"y": y}))
        error = np.array([found["location"] - exact.location, found["scale"] - exact.scale])
        z.extend(error / found["privacy_standard_errors"])
    assert 0.4 < np.sqrt(np.mean(np.square(z))) < 1.9
    expected = plan.forecast["privacy_standard_error"] * 0.7
    assert found["privacy_standard_errors"][0] == pytest.approx(expected, rel=0.3)


def test_it_costs_what_was_offered_and_names_its_assumptions() -> None:
    plan = planned(values())
    assert plan.own_cost.epsilon == 4 * EPSILON_UNITS
    assert plan.own_cost.delta <= DELTA_UNITS // 10**6
    assert plan.rho > plan.pilot.rho
    assert len(plan.assumptions) == 5
    assert plan.passes == plan.pilot.passes + 1
    few, many = (planned(values(n), tuning=1.5).column_ms for n in (2000, 200_000))
    assert few < many


@pytest.mark.parametrize(
    "fields",
    [
        {"calibration": None},
        {"max_rows": 2},
        {"where": Compare("y", ">", 0.0)},
        {"missing": ("y",)},
        {"tuning": 0.5},
        {"tuning": 4.0},
        {"tuning": "planned"},
    ],
)
def test_what_has_no_proof_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        planned(values(2000), **fields)


def test_too_few_records_are_refused() -> None:
    with pytest.raises(InvalidQuery, match="more records"):
        planned(values(500), epsilon=0.5)


@pytest.mark.parametrize("kind", ["constant", "two values", "zero"])
def test_degenerate_columns_have_a_reply_like_any_other(kind: str) -> None:
    y = {
        "constant": np.full(3000, 2.0),
        "two values": np.repeat([0.0, 1.0], 1500),
        "zero": np.zeros(3000),
    }[kind]
    found = answer(planned(y), whole({"y": y}))
    numbers = [found["location"], found["scale"], *found["standard_errors"]]
    assert np.all(np.isfinite(numbers))
