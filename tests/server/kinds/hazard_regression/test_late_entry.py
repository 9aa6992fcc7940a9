# SPDX-License-Identifier: Apache-2.0
"""What is expected of persons who come under observation late, beside a simulated population."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.hazard_regression.partial_score import KnownBaseline
from reticent_server.kinds.hazard_regression.public_persons import (
    RiskTable,
    expected,
    public_persons,
)
from reticent_server.kinds.shared.follow_up.table import life_table
from support.fits.hazards import COLUMNS, GROUP, persons, planned_partial
from support.fits.regressions import drive, whole
from support.kinds.recipes import released
from support.seeds import seeded
from support.tables.follow_up import offer

ENDS = np.arange(1, 41) / 10
BEGINS = ENDS - 0.1
HAZARD, LEAVING = 0.35, 0.1  # per unit of time: of a person of middling risk, and of leaving
N = 60_000


def followed(seed: int) -> tuple[Any, Any, Any, Any]:
    """Regressors, entries, ends and events; two in five come at 2, and only the living do."""
    rng = seeded(seed)
    u = rng.normal(size=N)
    start = np.where(rng.random(N) < 0.4, 2.0, 0.0)
    dies = start + rng.exponential(size=N) / (HAZARD * np.exp(u))
    leaves = start + rng.exponential(size=N) / LEAVING
    time = np.minimum(np.minimum(dies, leaves), ENDS[-1])
    return u, start, time, (dies <= leaves) & (dies <= ENDS[-1])


def table_of(start: Any, time: Any, event: Any) -> RiskTable:
    position = np.searchsorted(ENDS, time)
    events = np.bincount(position[event], minlength=40).astype(float)
    at_risk = np.array([np.sum((start < m) & (time > m)) for m in ENDS - 0.05], dtype=float)
    entering = np.zeros(40)
    entering[[0, 20]] = np.sum(start == 0.0), np.sum(start == 2.0)
    return RiskTable(ENDS, events, at_risk, np.ones(40), entering=entering)


def test_means_at_risk_are_those_of_who_has_come_and_not_left() -> None:
    """Public rows are those of all persons, whenever they come."""
    u, start, time, event = followed(1)
    table = table_of(start, time, event)
    rows = seeded(2).normal(size=20_000)
    found = expected(table, rows[:, None], rows, float(N))
    for k in (0, 10, 19, 20, 30, 38):
        here = (start < ENDS[k]) & (time > BEGINS[k])
        weights = np.exp(u[here])
        assert found.means[k, 0] == pytest.approx(
            float(weights @ u[here] / weights.sum()), abs=0.05
        )
    early = replace(table, entering=None)
    assert expected(early, rows[:, None], rows, N).means[20, 0] < found.means[20, 0] - 0.2
    assert found.means[20, 0] > found.means[19, 0] + 0.2


def test_public_persons_come_when_the_records_do() -> None:
    _, start, time, event = followed(3)
    table = table_of(start, time, event)
    rows = seeded(4).normal(size=20_000)
    risk = expected(table, rows[:, None], rows, float(N))
    known = KnownBaseline(ENDS, risk.hazards, risk.means)
    persons = public_persons(table, known, rows[:, None], rows).persons
    assert np.mean(persons.start == 2.0) == pytest.approx(0.4, abs=0.02)
    assert (persons.start <= persons.time).all()
    assert persons.event.mean() == pytest.approx(event.mean(), abs=0.03)
    assert np.mean(persons.time - persons.start) == pytest.approx(np.mean(time - start), rel=0.05)


def test_without_noise_censoring_counts_who_comes() -> None:
    _, start, time, event = followed(5)
    table = table_of(start, time, event)
    assert table.censoring[:-1].mean() == pytest.approx(LEAVING / 10, abs=0.002)
    # before many come: 24,000, of whom .034 are gone by the middle of their first interval, where
    # they are counted, seem to be .06 of the 14,000 who were there
    assert 0.005 < table.censoring[19] < 0.1
    assert table.shares.tolist() == [1.0]


@pytest.mark.slow
def test_strata_have_no_more_events_than_were_released() -> None:
    """Three strata of few events each at epsilon = 1: intervals whose noise is above their events
    are raised, and their sum was up to four times what was released.
    """
    data = persons(seeded(6), 1500, strata=3)
    data["e"] = data["e"] * (np.arange(1500) % 4 == 0)
    plan = planned_partial(data, offer(1.0).rho, strata="g", columns=[*COLUMNS, GROUP])
    newton = plan.newton(plan.ground)
    steps = drive(newton.fit(), whole(data)).steps
    (step,) = [s for s in steps if s.label == "follow-up"]
    found = released(step, whole(data))
    table = newton.table.baseline(found, 1500.0).table
    told = life_table(newton.fine, found[0], 1500).events.sum(axis=1)
    own = table.events.reshape(3, -1).sum(axis=1)
    assert (own > 0).all()
    assert (own <= np.maximum(told, _noise_of_events(newton)) + 1e-9).all()


def _noise_of_events(newton: Any) -> float:
    """The sd of a stratum's events: a third of all, where one is expected of all."""
    return float(newton.table.expected_noise(1.0)) / newton.fine.size
