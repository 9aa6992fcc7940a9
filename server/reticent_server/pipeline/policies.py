# SPDX-License-Identifier: Apache-2.0
"""Changing what is allowed on a data set, from the command line and from the console alike."""

from math import isfinite

from reticent_server.access.approvals import Approvals
from reticent_server.catalog.json_values import policy_to_json
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.facts import Policy
from reticent_server.errors import InvalidRequest
from reticent_server.pipeline.second_person import require

TIERS = ("unconditional", "conditional")


def set_policy(
    catalog: Catalog, approvals: Approvals, name: str, policy: Policy, *, by: str
) -> None:
    """Replaces the policy of a data set. Raises InvalidRequest, NotFound, SecondPerson,
    PolicyRefused."""
    check_policy(policy)
    population = catalog.facts(name).population
    wish = {"name": name, "policy": policy_to_json(policy)}
    require(catalog, approvals, "policy", population, wish, by=by)
    catalog.set_policy(name, policy, by=by)


def check_policy(policy: Policy) -> None:
    """Raises InvalidRequest."""
    largest, delta = policy.max_epsilon, policy.default_delta
    if largest is not None and not (isfinite(largest) and largest > 0):
        raise InvalidRequest("The largest ε of a request is a positive number.")
    if delta is not None and not 0 < delta < 1:
        raise InvalidRequest("δ where a request has none is between 0 and 1.")
    if not policy.tiers or not set(policy.tiers) <= set(TIERS):
        raise InvalidRequest(f"Allow at least one guarantee of {', '.join(TIERS)}.")
