# SPDX-License-Identifier: Apache-2.0
"""Plans as a kind itself makes them, also where the server declines the question (its parts' bounds
hold all the same).
"""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.kinds import registry


def planned_of_parts(facts: DatasetFacts, query: Query, offer: PrivacyCost) -> Planned:
    """Of persons with several rows, too, for a kind whose standard errors take rows as
    independent.
    """
    return registry.kind_of(query).plan(facts.of_places(), query, offer)
