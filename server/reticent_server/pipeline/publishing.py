# SPDX-License-Identifier: Apache-2.0
"""A release for everybody: a curator publishes it once, and all who have a grant on its data set
read it for nothing.

Its guarantee does not change: it held against every reader from the day of the charge. What becomes
known besides is what was asked. There is no way back, as those who have read it keep it.
"""

import json

from reticent_server.domain.principal import Principal
from reticent_server.errors import Conflict, NotFound
from reticent_server.pipeline.books import Books
from reticent_server.pipeline.browse import NO_RELEASE, datasets, granted_facts
from reticent_server.pipeline.documents import Json
from reticent_server.pipeline.services import Services


def publish(books: Books, release_id: str, *, by: str) -> Json:
    """Publishes a release; its document. Raises NotFound for no such release; Conflict for a
    profile, where it has no reply (yet), and the second time."""
    found = books.ledger.any_release(release_id)
    if found is None:
        raise NotFound("There is no such release.")
    owner, stored = found
    if owner is None:
        raise Conflict("A profile is published already.")
    if not isinstance(stored, bytes):
        raise Conflict("This release is not answered yet; publish it when it is.")
    release: Json = json.loads(stored)
    if release["status"] != "reply":
        raise Conflict("Only a release with a reply can be published.")
    books.catalog.publish(release["id"], release["dataset"], by=by)
    return release


def published(
    services: Services, principal: Principal, name: str, limit: int, offset: int
) -> bytes:
    """A page of a data set's published releases, the last published first, each in its stored
    bytes. Raises NotFound for an absent data set and for one without a grant alike."""
    ids = services.catalog.published(granted_facts(services, principal, name).name)
    bodies = [services.ledger.any_release(id_) for id_ in ids[offset : offset + limit]]
    page = b",".join(body[1] for body in bodies if body and isinstance(body[1], bytes))
    after = json.dumps(offset + limit if len(ids) > offset + limit else None).encode()
    return b'{"releases":[' + page + b'],"next_offset":' + after + b"}"


def published_release(services: Services, principal: Principal, release_id: str) -> bytes:
    """One of the releases that are published to the caller, in its stored bytes. Raises NotFound
    for all others alike."""
    names = (each["name"] for each in datasets(services, principal))
    if any(release_id in services.catalog.published(name) for name in names):
        found = services.ledger.any_release(release_id)
        if found is not None and isinstance(found[1], bytes):
            return found[1]
    raise NotFound(NO_RELEASE)
