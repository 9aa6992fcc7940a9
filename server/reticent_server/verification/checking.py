# SPDX-License-Identifier: Apache-2.0
"""Whether a release's JSON is what the ledger's chain has recorded: by its SHA-256, and by nothing else.

The digest of a release's stored bytes is in the entry that settled it, and that entry's hash is in the chain. A text
with the same digest is the release word for word. A release that is absent and one with another text have the same
reply, so the page tells nothing to whoever does not hold the release. No record and no stored release is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent_server.chain.entries import digest
from reticent_server.pipeline.services import Services

LONGEST = 1_000_000
"""Characters of a text: more than any release has."""


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """document: what was pasted, None where it is no release. entry: the number of the entry that has its digest, and
    the entry's hash; None where there is none. head: of the chain now."""

    document: Mapping[str, Any] | None
    digest: str
    entry: tuple[int, str] | None
    head: str


def checked(services: Services, text: str) -> ReleaseVerdict:
    """The verdict on a text. Spaces and line breaks between its members do not matter; everything else does."""
    document = _release(text)
    head = services.ledger.head()
    if document is None:
        return ReleaseVerdict(None, "", None, head)
    written = digest(json.dumps(document, allow_nan=False, separators=(",", ":")).encode())
    return ReleaseVerdict(document, written, _entry(services, str(document["id"]), written), head)


def _release(text: str) -> dict[str, Any] | None:
    """None unless it has the members of a release that this page shows."""
    try:
        document = json.loads(text[: LONGEST + 1])
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not document.keys() >= _NEEDED:
        return None
    given = document["guarantee"]
    is_whole = isinstance(given, dict) and given.keys() >= _GUARANTEE
    is_named = isinstance(document["id"], str) and document["id"].isprintable()
    return document if is_whole and is_named and _numbers(given) else None


_NEEDED = {"id", "dataset", "version", "status", "query", "guarantee", "created_at"}
_GUARANTEE = {"tier", "unit", "epsilon", "delta", "mechanism", "statement"}


def _numbers(given: Mapping[str, Any]) -> bool:
    plain = all(isinstance(given[name], int | float) for name in ("epsilon", "delta"))
    return plain and isinstance(given.get("assumptions", []), list)


def _entry(services: Services, release_id: str, written: str) -> tuple[int, str] | None:
    """The entry that settled the release with this digest."""
    for entry in services.ledger.search([release_id]):
        draft = entry.draft
        if draft.release_id == release_id and draft.detail.get("body_sha256") == written:
            return entry.seq, entry.hash
    return None
