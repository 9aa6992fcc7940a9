# SPDX-License-Identifier: Apache-2.0
"""Less noise for a question whose answer is one count or one table of counts, where accounts add up
(ε, δ).

What such a release loses is known exactly (accounting.exact_counts), so its noise need not allow
for a conversion: at ε = 1, 2 and 4 and δ = 10⁻⁶ a count's is 2.3, 5.7 and 7.7 % smaller than by the
others, a table's 1.2, 4.6 and 5.4 %. It starts from the plan by zCDP's conversion, so that a
question is planned alike whichever conversion is tried before. The engine certifies what is drawn
(mechanisms.lone_count).
"""

from dataclasses import replace

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.domain.steps import CountSum
from reticent_server.kinds import registry
from reticent_server.mechanisms import lone_count


def raised_alone(
    facts: DatasetFacts, query: Query, offer: PrivacyCost, usual: Planned
) -> Planned | None:
    """The plan at the most ρ that is certified for the offer's (ε, δ); None where its release is
    not one count. usual: at the offer's ρ.
    """
    part = _only_count(usual)
    if part is None:
        return None
    rho = lone_count.most(part, offer.epsilon, offer.delta)
    return registry.plan(facts, query, replace(offer, rho=rho)) if rho > part.rho else None


def _only_count(planned: Planned) -> CountSum | None:
    """The part that takes all of the plan's ρ, where that is a count."""
    counts = planned.gaussian_counts or ()
    return counts[0] if len(counts) == 1 and counts[0].rho == planned.rho else None
