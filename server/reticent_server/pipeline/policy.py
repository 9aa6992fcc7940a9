# SPDX-License-Identifier: Apache-2.0
"""What a data set's curator allows, held against every plan: whatever the kind, whoever planned
it."""

from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost, decimal_units
from reticent_server.domain.facts import Policy
from reticent_server.domain.plan import Guarantee
from reticent_server.errors import PolicyRefused


def check(policy: Policy, guarantee: Guarantee, cost: PrivacyCost) -> None:
    """Raises PolicyRefused for a tier that is not allowed, or for more ε than one request may cost.

    The cost counts, not the ε that was asked for: a kind may cost less, and must never cost more.
    """
    if guarantee.tier not in policy.tiers:
        allowed = " or ".join(policy.tiers) or "no"
        raise PolicyRefused(
            f"This data set allows {allowed} guarantees only; this one would be {guarantee.tier}."
        )
    limit = policy.max_epsilon
    if limit is not None and cost.epsilon > decimal_units(limit, EPSILON_UNITS):
        raise PolicyRefused(f"This data set allows at most epsilon = {limit:g} a query.")
