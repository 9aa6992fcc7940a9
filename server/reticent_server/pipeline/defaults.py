# SPDX-License-Identifier: Apache-2.0
"""The δ of a request that names none: what the policy allows at most, and no more than its accounts
can pay.

The policy's δ (DatasetFacts.default_delta) stands where no account is charged for it: under the
rule zcdp the δ of a Gaussian release only says at which ε its ρ is shown. Where an account is
charged, δ is at most a QUERIES-th of the account's whole δ (under zcdp and gdp: of δ″), so that
QUERIES such requests fit. It depends on totals alone, never on what is left: the same question has
the same guarantee until the curator changes an account. Free, from public facts.

A request is stored with its δ filled in. A retry of an idempotency key takes the δ that was stored,
so that a change of the account in between does not make another request of it.
"""

from dataclasses import replace
from fractions import Fraction

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
from reticent_server.kinds.shared.columns import LEAST_DELTA
from reticent_server.ledger.model import Standing
from reticent_server.ledger.rules import charge
from reticent_server.pipeline import planning
from reticent_server.pipeline.ask import Ask

QUERIES = 10
"""Requests with the default δ that an account's δ covers. A δ ten times as small costs a test of
safety a threshold larger by ln(10)/ε records; fewer than ten requests would use up an account in
one sitting.
"""

_LEAST = Fraction(1, 2)
"""Of the ρ of an offer: the kinds' plans spend .93 of it or more (a test over all examples holds
them to it).
"""


def with_stored_delta(ask: Ask, standing: Standing) -> Ask:
    """The ask with the δ that its idempotency key was used with, where it names none."""
    stored = standing.request
    if ask.privacy.delta is not None or stored is None:
        return ask
    return replace(ask, privacy=replace(ask.privacy, delta=stored["privacy"].get("delta")))


def planned(facts: DatasetFacts, ask: Ask, standing: Standing) -> tuple[Ask, Plan]:
    """The ask with its δ, and its plan. Raises what planning raises; charges nothing."""
    privacy = ask.privacy

    def planned_at(privacy: Privacy) -> Plan:
        return planning.plan(
            facts,
            ask.query,
            privacy,
            gaussian=standing.has_gaussian,
            counted=standing.adds_up,
        )

    if privacy.delta is not None or standing.request is not None:
        return ask, planned_at(privacy)
    privacy = replace(privacy, delta=facts.default_delta)
    ready = planned_at(privacy)
    payable = _payable(ready.cost, standing)
    if payable is not None and LEAST_DELTA <= payable < facts.default_delta * DELTA_UNITS:
        privacy = Privacy(privacy.epsilon, from_units(payable, DELTA_UNITS))
        ready = planned_at(privacy)
    return replace(ask, privacy=privacy), ready


def planned_instead(
    facts: DatasetFacts, ask: Ask, standing: Standing, query: Query, privacy: Privacy
) -> Plan:
    """The plan of another question with the same accounts. Raises what planning raises."""
    return planned(facts, replace(ask, query=query, privacy=privacy), standing)[1]


def least_cost(facts: DatasetFacts, ask: Ask, standing: Standing) -> PrivacyCost:
    """What a plan of the ask costs at least, known before it is made: ε as asked, and _LEAST of the
    ρ that (ε, δ) allow, at the smallest δ that `planned` could choose. Raises InvalidPrivacy.
    """
    delta = ask.privacy.delta
    if delta is None:
        payable = min((b.cap.secondary for b in standing.accounts), default=0) // QUERIES
        least = from_units(max(payable, LEAST_DELTA), DELTA_UNITS)
        delta = min(least, facts.default_delta)
    epsilon, delta = planning.checked_privacy(facts, Privacy(ask.privacy.epsilon, delta))
    rho = rho_units(epsilon, delta) * _LEAST.numerator // _LEAST.denominator
    return PrivacyCost(decimal_units(epsilon, EPSILON_UNITS), 0, rho, gaussian=rho)


def _payable(cost: PrivacyCost, standing: Standing) -> int | None:
    """A QUERIES-th of the least δ among the accounts that are charged for δ, in units; None where
    none is.
    """
    totals = [b.cap.secondary for b in standing.accounts if charge(cost, b.rule).secondary]
    return min(totals) // QUERIES if totals else None
