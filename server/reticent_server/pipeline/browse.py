# SPDX-License-Identifier: Apache-2.0
"""What a caller may look at for free: public facts, own accounts, own releases."""

import json
from collections.abc import Mapping

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.principal import Principal
from reticent_server.errors import NO_DATASET, NotFound
from reticent_server.formula.features import parse_view
from reticent_server.ledger.service import Pending
from reticent_server.pipeline.accounts import account_json
from reticent_server.pipeline.authorising import askable
from reticent_server.pipeline.documents import (
    Json,
    dataset_json,
    pending_body,
)
from reticent_server.pipeline.persons import facts_of_persons
from reticent_server.pipeline.projects import project_json
from reticent_server.pipeline.schedule import turn_of
from reticent_server.pipeline.services import Services

NO_RELEASE = "You have no such release."


def datasets(services: Services, principal: Principal) -> list[Json]:
    """The data sets with a grant, by name."""
    names = askable(services, principal)
    return [dataset_json(f) for f in services.catalog.list() if f.name in names]


def dataset(services: Services, principal: Principal, name: str) -> Json:
    """One data set. Raises NotFound for an absent one and for one without a grant alike."""
    return dataset_json(granted_facts(services, principal, name))


def persons(
    services: Services, principal: Principal, name: str, features: Mapping[str, str]
) -> Json:
    """A data set as a table with one row a person. Raises as `dataset`, and InvalidQuery,
    InvalidFormula."""
    facts = granted_facts(services, principal, name)
    return dataset_json(facts_of_persons(facts, parse_view(features, facts.schema)))


def granted_facts(services: Services, principal: Principal, name: str) -> DatasetFacts:
    """A data set's facts. Raises NotFound for an absent one and for one without a grant alike."""
    if not (
        services.access.granted(principal.id, name) or services.projects.seats(principal.id, name)
    ):
        raise NotFound(NO_DATASET)
    return services.catalog.facts(name)


def accounts(services: Services, principal: Principal) -> list[Json]:
    """The caller's own accounts, by data set, then those of live projects that the caller is in."""
    own = [account_json(balance) for balance in services.ledger.balances(principal.id)]
    seats = services.projects.seats(principal.id)
    shared = {project_id: name for project_id, name, _ in seats}
    return own + [
        account_json(balance, name)
        for project_id, name in shared.items()
        for balance in services.ledger.balances(project_id)
    ]


def projects(services: Services, principal: Principal) -> list[Json]:
    """The projects that the caller is a member of, by name, those that are over too."""
    return [project_json(project) for project in services.projects.of(principal.id)]


def release(services: Services, principal: Principal, release_id: str) -> bytes:
    """One of the caller's releases, as it was stored. Raises NotFound."""
    stored = services.ledger.release(principal.id, release_id)
    if stored is None:
        raise NotFound(NO_RELEASE)
    return shown(services, stored)


def releases(services: Services, principal: Principal, limit: int, offset: int) -> bytes:
    """A page of the caller's releases, newest first, each in its stored bytes."""
    bodies = services.ledger.releases(principal.id, limit + 1, offset)
    after = json.dumps(offset + limit if len(bodies) > limit else None).encode()
    page = b",".join(shown(services, one) for one in bodies[:limit])
    return b'{"releases":[' + page + b'],"next_offset":' + after + b"}"


def shown(services: Services, stored: bytes | Pending) -> bytes:
    """A settled release's stored bytes; of one that is not visible yet, what was promised when
    charging."""
    if isinstance(stored, bytes):
        return stored
    facts = services.catalog.facts_of(stored.version_id)
    now_ms = services.queue.now_ms()
    return pending_body(facts, stored, turn_of(stored, now_ms), now_ms)
