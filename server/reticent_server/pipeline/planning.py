# SPDX-License-Identifier: Apache-2.0
"""Planning: a request and public facts → a Plan. Reads no private cell."""

from dataclasses import replace
from math import isfinite

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import (
    DELTA_UNITS,
    EPSILON_UNITS,
    PrivacyCost,
    decimal_units,
    from_units,
)
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy, Query
from reticent_server.errors import InvalidPrivacy
from reticent_server.kinds import registry
from reticent_server.mechanisms.registry import drawable
from reticent_server.pipeline import policy
from reticent_server.pipeline.gaussian_planning import price, raised
from reticent_server.pipeline.guarantees import guarantee_of
from reticent_server.pipeline.lone_planning import raised_alone
from reticent_server.pipeline.persons import facts_of_persons, reading_ms, view_of

# beyond it a release protects nobody; larger values are taken for slips of the pen
MAX_EPSILON = 100.0
# a chance of one in a hundred that a unit is not protected at all; larger values are taken for
# slips
MAX_DELTA = 0.01
_TOO_DEAR = "a plan costs more than it was offered"
_TOO_LITTLE = "epsilon and delta are too small for as many rows as a unit may have; raise them."
MIN_RHO = 1000  # 10⁻⁹: below this the shares of a plan are no longer whole numbers of units


def plan(
    facts: DatasetFacts,
    query: Query,
    privacy: Privacy,
    *,
    gaussian: bool = False,
    counted: bool = False,
) -> Plan:
    """The plan of a request. Raises InvalidRequest's subclasses and PolicyRefused; charges nothing.

    gaussian: whether a plan with Gaussian noise alone gets the ρ of that
    (pipeline.gaussian_planning). counted: whether one that releases one count or table of counts
    gets the ρ of that (pipeline.lone_planning).
    """
    view = view_of(facts, query)
    rows_ms = 0 if view is None else reading_ms(facts, view)
    most_rows = facts.schema.unit.max_rows
    facts = facts if view is None else facts_of_persons(facts, view)
    epsilon, delta = checked_privacy(facts, privacy)
    rho = rho_units(epsilon, delta)
    if rho < MIN_RHO:
        raise InvalidPrivacy("epsilon and delta are too small to release anything; raise them.")
    offer = PrivacyCost(
        epsilon=decimal_units(epsilon, EPSILON_UNITS),
        delta=decimal_units(delta, DELTA_UNITS),
        rho=rho,
    )
    usual, gaussian_rho, lone = registry.plan(facts, query, offer), None, False
    planned, cost = usual, usual.cost(offer)
    if gaussian and planned.gaussian_counts is not None:
        more = raised(facts, query, offer, (epsilon, delta))
        if more is not None:
            planned, gaussian_rho = more
    alone = raised_alone(facts, query, offer, usual) if counted else None
    if alone is not None and alone.rho > planned.rho:
        planned, gaussian_rho, lone = alone, None, True
    cost = replace(cost, rho=planned.rho, gaussian=price(planned))
    if not all(map(drawable, planned.parts)):
        raise InvalidPrivacy(_TOO_LITTLE)
    if cost.epsilon > offer.epsilon or cost.delta > offer.delta:
        raise RuntimeError(_TOO_DEAR)
    delta = from_units(cost.delta, DELTA_UNITS)
    guarantee = guarantee_of(facts, planned, epsilon, delta, most_rows)
    policy.check(facts.policy, guarantee, cost)
    return Plan(
        facts=facts,
        query=query,
        epsilon=epsilon,
        delta=delta,
        cost=cost,
        guarantee=guarantee,
        planned=planned,
        deadline_ms=planned.deadline_ms(facts.slots) + rows_ms,
        gaussian_rho=gaussian_rho,
        lone=lone,
        view=view,
        expected_ms=planned.expected_ms(facts.slots) + rows_ms,
        cold_ms=planned.cold_ms(facts.slots),
    )


def checked_privacy(facts: DatasetFacts, privacy: Privacy) -> tuple[float, float]:
    """ε and δ of a request, δ by default. Raises InvalidPrivacy for what is out of range."""
    epsilon = privacy.epsilon
    delta = facts.default_delta if privacy.delta is None else privacy.delta
    if not (isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InvalidPrivacy(f"epsilon must be above 0 and at most {MAX_EPSILON:g}.")
    if not (isfinite(delta) and 0 < delta <= MAX_DELTA):
        raise InvalidPrivacy(f"delta must be above 0 and at most {MAX_DELTA:g}.")
    return epsilon, delta
