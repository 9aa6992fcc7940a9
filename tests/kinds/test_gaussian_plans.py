# SPDX-License-Identifier: Apache-2.0
"""Under accounts that add up (ε, δ), every kind's examples: more ρ where parts are sums with
Gaussian noise and selections among them, and steps that it pays for.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from reticent_server.accounting import gaussian
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import ColumnKind, Unit
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import InvalidRequest
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.registry import stored_query
from reticent_server.mechanisms import gaussian_cost
from reticent_server.mechanisms.gaussian_cost import GaussianCost
from reticent_server.pipeline import gaussian_planning, planning
from reticent_server.pipeline.profile import release_profile
from support.attacks.recorder import Served
from support.installations.small import Installation, copied, opened
from support.kinds.examples import QUERIES

OTHERS = {"quantiles", "iqr", "median", "m_estimate", "depth_median", "subsample_aggregate"}
"""Kinds that only select, or test for safety."""

SUMS = {
    "count", "mean", "sum", "describe", "hazard_regression", "histogram", "crosstab",
    "synthetic",
    "quantile_regression", "hypothesis_test", "study", "survival_curve", "cumulative_incidence",
    "log_rank", "t_test",
    "anova", "mann_whitney", "kruskal", "proportion_test", "correlation", "ks_test", "roc",
}  # fmt: skip
"""Kinds that are made of sums, whatever is asked. (Regressions and location_scale are, but by
influence.)
"""


@pytest.fixture(scope="module")
def facts(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatasetFacts]:
    """`people` with a profile: without one, fits select theirs first."""
    directory = tmp_path_factory.mktemp("gaussian") / "installation"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        release_profile(services, "people", epsilon=50.0)
        yield services.catalog.facts("people")


def status(plan: Plan) -> str:
    """Of its release, by an engine that asks nobody whether it was paid for."""
    facts = plan.facts
    columns = {c.name: np.linspace(c.lower, c.upper, facts.slots) for c in facts.schema.columns}
    whole = {c.name for c in facts.schema.columns if c.kind is not ColumnKind.NUMERIC}
    nowhere = {f"{c.name}:missing": np.zeros(facts.slots, dtype=bool) for c in facts.schema.columns}
    rows = {k: np.rint(v) if k in whole else v for k, v in columns.items()}
    table = Served(facts, rows | nowhere)
    engine = LocalEngine(lambda _: table, table, cache_bytes=0, threads=1, block_rows=128)
    try:
        return engine.execute(plan, Reservation("r", facts.version_id, plan.cost, "")).status
    finally:
        engine.close()


def selected(plan: Plan) -> int:
    """The ρ of its selections."""
    return sum(part.rho for part in plan.planned.selections)


def gained(plan: Plan) -> float:
    """Times zCDP's ρ that it has at least: 1.15 is shared out, and selections take 4/7 more."""
    return 1.1 / (1 + 4 / 7 * selected(plan) / plan.cost.rho)


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", QUERIES)
def test_a_gaussian_plan_has_the_same_promise_and_pays_for_all_its_steps(
    facts: DatasetFacts, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, privacy = stored_query(QUERIES[name]), Privacy(0.5, 1e-6)
    plain = planning.plan(facts, query, privacy)
    plan = planning.plan(facts, query, privacy, gaussian=True)
    assert plain.gaussian_rho is None
    assert replace(plan.cost, rho=0, gaussian=0) == replace(plain.cost, rho=0, gaussian=0)
    assert (plan.cost.gaussian > 0) == (plan.gaussian_rho is not None)
    kind = QUERIES[name]["kind"]
    if plan.gaussian_rho is None:
        assert kind not in SUMS
        assert QUERIES[name].get("mechanism") != "newton"
        assert plan.cost == plain.cost
        return
    assert kind not in OTHERS
    assert plan.guarantee == plain.guarantee
    assert gained(plan) * plain.cost.rho < plan.cost.rho < plan.gaussian_rho
    costs: list[GaussianCost] = []
    cost = gaussian_cost.cost
    monkeypatch.setattr(gaussian_cost, "cost", lambda step: costs.append(cost(step)) or costs[-1])
    assert status(plan) == "reply"
    assert 0.95 * plan.gaussian_rho < sum(each.rho for each in costs) <= plan.gaussian_rho


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", QUERIES)
def test_a_plan_over_persons_with_several_rows_has_it_too(
    facts: DatasetFacts, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = replace(facts, schema=replace(facts.schema, unit=Unit("person", 4)))
    query, privacy = stored_query(QUERIES[name]), Privacy(0.5, 1e-6)
    try:
        plain = planning.plan(facts, query, privacy)
    except InvalidRequest:
        return
    plan = planning.plan(facts, query, privacy, gaussian=True)
    if plan.gaussian_rho is None:
        assert plain.planned.gaussian_counts is None
        return
    assert plan.guarantee == plain.guarantee
    assert gained(plan) * plain.cost.rho < plan.cost.rho < plan.gaussian_rho
    costs: list[GaussianCost] = []
    cost = gaussian_cost.cost
    monkeypatch.setattr(gaussian_cost, "cost", lambda step: costs.append(cost(step)) or costs[-1])
    assert status(plan) == "reply"
    assert 0.95 * plan.gaussian_rho < sum(each.rho for each in costs) <= plan.gaussian_rho
    listed = sum(part.bins for part in plan.planned.gaussian_counts or ())
    assert sum(each.counted for each in costs) <= listed


@pytest.mark.sample(48)
@pytest.mark.parametrize("name", QUERIES)
def test_no_plan_that_can_have_more_rho_goes_without(facts: DatasetFacts, name: str) -> None:
    for epsilon, delta in product((0.25, 0.5, 1.0, 2.0), (1e-10, 1e-6, 1e-3)):
        has_all_that_it_can_have(facts, name, epsilon, delta)


def has_all_that_it_can_have(facts: DatasetFacts, name: str, epsilon: float, delta: float) -> None:
    """Where zCDP's own ρ leaves room, some more is found; all of it but 1 % by plans whose sums are
    not mostly counts.
    """
    query, privacy = stored_query(QUERIES[name]), Privacy(epsilon, delta)
    plain = planning.plan(facts, query, privacy).planned
    most, allowed = gaussian_planning.most(plain), gaussian.rho_units(epsilon, delta)
    if most is None or most > 0.99 * allowed:
        return
    plan = planning.plan(facts, query, privacy, gaussian=True)
    assert plan.gaussian_rho == allowed
    counts = plain.gaussian_counts or ()
    alone = sum(part.rho for part in counts) > plain.rho / 2
    paid = gaussian_planning.most(plan.planned)
    assert paid is not None
    assert paid > (most if alone else 0.99 * allowed)


@pytest.mark.sample(60)
@pytest.mark.parametrize("persons", [1, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_what_selects_its_own_profile_has_it_too_and_pays_for_that(
    facts: DatasetFacts, name: str, persons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No profile. What of its selections is not paid for releases nothing."""
    facts = replace(facts, profile=None, schema=replace(facts.schema, unit=Unit("p", persons)))
    query, privacy = stored_query(QUERIES[name]), Privacy(0.5, 1e-6)
    try:
        plain = planning.plan(facts, query, privacy)
    except InvalidRequest:
        return
    plan = planning.plan(facts, query, privacy, gaussian=True)
    if plan.gaussian_rho is None:
        assert gaussian_planning.most(plain.planned) is None
        return
    assert plan.guarantee == plain.guarantee
    assert gained(plan) * plain.cost.rho < plan.cost.rho
    assert plan.cost.rho + 4 * selected(plan) // 7 < plan.cost.gaussian
    costs: list[GaussianCost] = []
    cost = gaussian_cost.cost
    monkeypatch.setattr(gaussian_cost, "cost", lambda step: costs.append(cost(step)) or costs[-1])
    assert status(plan) == "reply"
    assert 0.95 * plan.gaussian_rho < sum(each.rho for each in costs) <= plan.gaussian_rho
    listed = sum(part.bins for part in plan.planned.gaussian_counts or ())
    assert sum(each.counted for each in costs) <= listed
    if selected(plan):
        short = replace(plan, gaussian_rho=plan.cost.rho + selected(plan) // 2)
        assert status(short) == "failed"


@pytest.mark.parametrize("persons", [1, 4])
def test_a_profile_is_priced_by_its_parts(facts: DatasetFacts, persons: int) -> None:
    """Mostly selections, so that zCDP's conversion is no worse for it where (ε, δ) adds up; of
    levels alone it gets more."""
    facts = replace(facts, profile=None, schema=replace(facts.schema, unit=Unit("p", persons)))
    counted = tuple(c for c in facts.schema.columns if c.kind is not ColumnKind.NUMERIC)
    levels = replace(facts, schema=replace(facts.schema, columns=counted))
    for of in (facts, levels):
        plan = planning.plan(of, ProfileQuery(), Privacy(0.5, 1e-6), gaussian=True)
        assert plan.cost.rho + 4 * selected(plan) // 7 < plan.cost.gaussian < 1.58 * plan.cost.rho
        assert status(plan) == "reply"
    assert plan.gaussian_rho is not None
    assert not selected(plan)


@pytest.mark.sample(24)
@pytest.mark.parametrize("delta", [1e-18, 1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("name", ["count 0", "sum 0", "histogram 0", "linear_regression 1"])
def test_at_any_epsilon_and_delta_there_is_no_less_rho_and_a_reply(
    facts: DatasetFacts, name: str, epsilon: float, delta: float
) -> None:
    query, privacy = stored_query(QUERIES[name]), Privacy(epsilon, delta)
    if planning.rho_units(epsilon, delta) < planning.MIN_RHO:
        return
    plain = planning.plan(facts, query, privacy)
    plan = planning.plan(facts, query, privacy, gaussian=True)
    assert plan.cost.rho >= plain.cost.rho
    assert status(plan) == "reply"


@pytest.mark.sample(72)
@pytest.mark.parametrize("persons", [1, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_its_price_under_gdp_pays_for_all_its_steps(
    facts: DatasetFacts, name: str, persons: int
) -> None:
    """At every epsilon, and where no account asks for it."""
    facts = replace(facts, schema=replace(facts.schema, unit=Unit("person", persons)))
    query = stored_query(QUERIES[name])
    for epsilon in (0.1, 3.0, 50.0):
        try:
            plan = planning.plan(facts, query, Privacy(epsilon, 1e-6))
        except InvalidRequest:
            return
        if plan.planned.gaussian_counts is None:
            assert plan.cost.gaussian == 0
        elif epsilon < 1:
            more = plan.cost.gaussian - plan.cost.rho - 4 * selected(plan) // 7
            assert 0 < more < 0.01 * plan.cost.rho
        assert status(plan) in {"reply", "no_reply"}
        assert plan.gaussian_limit == (plan.cost.gaussian or None)


def _spent(plan: Plan) -> int:
    """What its steps cost together, without the fee for discrete noise."""
    step = next(plan.planned.run())
    return gaussian_cost.cost(step).rho


def test_a_step_that_its_plan_did_not_name_releases_nothing(facts: DatasetFacts) -> None:
    """Plans that are charged by the Gaussian conversion and read whole columns; two whose ρ, of one
    step or of all, is not paid for there.
    """
    whole, quantiles, count, fit = (
        planning.plan(facts, stored_query(QUERIES[name]), Privacy(0.5, 1e-6), gaussian=True)
        for name in ("m_estimate 0", "quantiles 0", "count 0", "linear_regression 1")
    )
    assert None not in (count.gaussian_rho, fit.gaussian_rho)
    for plan in (
        replace(whole, gaussian_rho=10**12),
        replace(quantiles, gaussian_rho=quantiles.cost.rho),
        replace(count, gaussian_rho=count.cost.rho),
        replace(fit, gaussian_rho=fit.cost.rho),
        replace(fit, cost=replace(fit.cost, gaussian=fit.cost.rho)),
        replace(whole, cost=replace(whole.cost, gaussian=10**12)),
        replace(
            count, cost=replace(count.cost, gaussian=_spent(count))
        ),  # all but the fee of its count
    ):
        assert status(plan) == "failed"
