# SPDX-License-Identifier: Apache-2.0
"""Whether a plan's word on intervals is kept: what is forecast beside what comes, of panels and of
regressions.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import (
    PROFILE_PROBABILITIES,
    ColumnProfile,
    DatasetFacts,
    Profile,
)
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema
from reticent_server.domain.steps import Block
from reticent_server.fitting.expected_intervals import NO_INTERVALS, expected_intervals
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.attacks.seeded_noise import seed_noise
from support.fits.panels import facts_of, panel
from support.fits.regressions import drive
from support.seeds import seeded

PANELS = [
    (persons, m, effects, epsilon)
    for persons, m in ((545, 8), (1500, 8), (3000, 4), (1500, 1))
    for effects in ((None, "person") if m > 1 else (None,))
    for epsilon in (0.05, 1.0, 2.0, 4.0, 8.0)
]


def planned(
    persons: int, m: int, effects: Any, epsilon: float, **more: Any
) -> tuple[Any, Any, Any]:
    table, absent = panel([1, persons], persons, m, balanced=True)
    facts = facts_of(table, absent, m)
    query = LinearRegression("y ~ x0 + x1", loss="squared", effects=effects, **more)
    offer = PrivacyCost(10**9, 10**12, rho_units(epsilon, 1e-6))
    return kind_of(query).plan(facts, query, offer), table, absent


def kept(case: tuple[int, int, Any, float]) -> tuple[bool, bool]:
    """(whether intervals are expected, whether any came)."""
    plan, table, absent = planned(*case)
    expected = np.isfinite(np.array(plan.precision.privacy)).any()
    result = drive(plan.run(), Block(0, len(absent), table, {ABSENT: absent})).result
    came = any(low is not None for low, _ in result["confidence_intervals"])
    return bool(expected), came


@pytest.mark.slow
def test_nine_of_ten_questions_get_what_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, "intervals")
    found = {case: kept(case) for case in PANELS}
    right = sum(expected == came for expected, came in found.values())
    assert right >= 0.9 * len(PANELS), found
    assert {expected for expected, _ in found.values()} == {True, False}
    promised = [case for case, (expected, came) in found.items() if expected and not came]
    assert len(promised) <= 1, "an interval that is promised and does not come is the worse mistake"


def test_a_panel_too_small_for_its_noise_is_said_before_it_is_charged() -> None:
    """545 persons of 8 rows at ε = 2: the noise hides how long persons' sums are."""
    plan, *_ = planned(545, 8, None, 2.0)
    assert plan.precision.privacy == (np.inf,) * 3
    assert NO_INTERVALS in plan.forecast["notes"]
    assert plan.forecast["privacy_to_sampling"] == [None] * 3


def test_without_noise_worth_naming_every_interval_is_expected() -> None:
    plan, *_ = planned(3000, 4, "person", 8.0)
    assert np.isfinite(plan.precision.privacy).all()
    assert NO_INTERVALS not in plan.forecast["notes"]


def responses(tail: str, n: int) -> Any:
    """(n,) of a response on x: normal errors, or those of a Cauchy's tail."""
    rng = seeded(7)
    x = rng.normal(size=n)
    e = rng.normal(size=n) if tail == "normal" else 5 * rng.standard_cauchy(size=n)
    return {"x": x, "y": np.clip(x + e, -5000.0, 5000.0)}


@pytest.mark.parametrize("tail", ["normal", "Cauchy"])
def test_a_profile_s_tail_decides_whether_least_squares_is_promised(
    monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    """And what is promised comes, and what is not does not."""
    seed_noise(monkeypatch, f"tail {tail}")
    table = responses(tail, 8000)
    columns = [Column(name, ColumnKind.NUMERIC, -5000.0, 5000.0) for name in table]
    places = np.array(PROFILE_PROBABILITIES)
    known = {k: ColumnProfile(tuple(np.quantile(v, places))) for k, v in table.items()}
    facts = DatasetFacts("d", "d", 1, "v", 8000, Schema(tuple(columns)), Profile(known))
    query = LinearRegression("y ~ x", loss="squared")
    plan = kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, rho_units(1.0, 1e-6)))
    expected = np.isfinite(np.array(plan.precision.privacy))
    for rho in (plan.fit.rho, 2 * plan.fit.rho):  # where no interval is expected, no ε is advised
        assert np.isfinite(plan.fit.noise_ratio(rho)) == (tail == "normal")
    untold = replace(plan.fit.forecast_fit, told=False)
    sized = plan.fit.sizes, plan.fit.budget
    assert not expected_intervals(untold, *sized, declined=False).any()
    told = any("so long that a few records" in note for note in plan.forecast["notes"])
    result = drive(plan.run(), Block(0, 8000, table, {})).result
    came = np.array([low is not None for low, _ in result["confidence_intervals"]])
    assert expected.tolist() == came.tolist() == [tail == "normal"] * 2
    assert told == (tail == "Cauchy")
