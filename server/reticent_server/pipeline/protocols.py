# SPDX-License-Identifier: Apache-2.0
"""Whether a request is what the protocol that it names says: from public facts, before a charge."""

from dataclasses import replace

from reticent_server.access.protocols import AcceptedProtocol
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import query_json
from reticent_server.errors import InvalidQuery, PolicyRefused
from reticent_server.kinds import registry
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.services import Services

_UNKNOWN = (
    "No protocol of that digest is accepted for this data set, or it was withdrawn: ask its "
    "curator. Nothing was charged."
)
_REQUIRED = (
    "This data set answers only what a protocol asks that its curator has accepted: name one. "
    "Nothing was charged."
)
_CHANGED = "The data set is not as the protocol says: {} Nothing was charged."
_OTHER_QUESTION = (
    "The protocol asks this site another question: ask the study that it states, and nothing else. "
    "Nothing was charged."
)
_OTHER_SPENDING = "The protocol states another epsilon or delta for this site. Nothing was charged."


def require_agreed(services: Services, ask: Ask, facts: DatasetFacts) -> None:
    """Nothing for a request that names no protocol, where the policy asks for none; else raises
    PolicyRefused, as for one that is unknown or withdrawn, and InvalidQuery for a request or a
    schema that differs from it.
    """
    if ask.protocol is None:
        if facts.policy.protocol_required:
            raise PolicyRefused(_REQUIRED)
        return
    accepted = services.protocols.holding(ask.protocol, facts.name)
    if accepted is None:
        raise PolicyRefused(_UNKNOWN)
    differs = _difference(accepted, ask, facts)
    if differs is not None:
        raise InvalidQuery(differs)


def _difference(accepted: AcceptedProtocol, ask: Ask, facts: DatasetFacts) -> str | None:
    agreed, site = accepted.agreed, accepted.site
    problems = agreed.problems(site, facts.schema)
    if problems:
        return _CHANGED.format(" ".join(problems))
    if query_json(ask.query) != query_json(registry.stored_query(agreed.question(site))):
        return _OTHER_QUESTION
    stated = agreed.privacy(site)
    if stated != (replace(ask.privacy, delta=None) if stated.delta is None else ask.privacy):
        return _OTHER_SPENDING
    return None
