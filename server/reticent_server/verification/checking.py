# SPDX-License-Identifier: Apache-2.0
"""Whether a release's JSON is what the ledger's chain has recorded: by its SHA-256, and by nothing
else.

The digest of a release's stored bytes is in the entry that settled it, and that entry's hash is in
the chain. A text with the same digest is the release word for word. A release that is absent and
one with another text have the same reply, so the page tells nothing to whoever does not hold the
release. No record and no stored release is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from sys import float_info
from typing import Any

from reticent_server.chain.entries import digest
from reticent_server.domain.strict_json import parse
from reticent_server.pipeline.services import Services

LONGEST = 1_000_000
"""Characters of a text: more than any release has."""


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """document: what was pasted, None where it is no release. entry: the number of the entry that
    has its digest, and the entry's hash; None where there is none. head: of the chain now."""

    document: Mapping[str, Any] | None
    digest: str
    entry: tuple[int, str] | None
    head: str


def checked(services: Services, text: str) -> ReleaseVerdict:
    """The verdict on a text. Spaces and line breaks between its members do not matter; everything
    else does."""
    document = _release(text)
    head = services.ledger.head()
    if document is None:
        return ReleaseVerdict(None, "", None, head)
    written = digest(json.dumps(document, allow_nan=False, separators=(",", ":")).encode())
    return ReleaseVerdict(document, written, _entry(services, str(document["id"]), written), head)


def _release(text: str) -> dict[str, Any] | None:
    """None unless it has the members of a release that this page shows."""
    try:
        document = parse(text[: LONGEST + 1])
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not document.keys() >= _NEEDED:
        return None
    given = document["guarantee"]
    is_whole = isinstance(given, dict) and given.keys() >= _GUARANTEE
    is_shown = is_whole and _is_name(document["id"]) and _texts(given) and _numbers(given)
    return document if is_shown else None


_NEEDED = {"id", "dataset", "version", "status", "query", "guarantee", "created_at"}
_GUARANTEE = {"tier", "unit", "epsilon", "delta", "mechanism", "statement"}


LONGEST_ID = 40
"""Characters of a release's id, as its column has: what is searched for in the ledger is never
longer."""


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_ID and value.isprintable()


def _texts(given: Mapping[str, Any]) -> bool:
    """Whether what the page shows as text is text that UTF-8 can hold."""
    assumptions = given.get("assumptions") or []
    if not isinstance(assumptions, list):
        return False
    shown = [given[name] for name in ("tier", "unit", "mechanism", "statement")] + assumptions
    return all(isinstance(each, str) and _is_unicode(each) for each in shown)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        return False
    return True


def _numbers(given: Mapping[str, Any]) -> bool:
    """Whether ε and δ can be a guarantee's: finite and not negative, δ a probability."""
    epsilon, delta = given["epsilon"], given["delta"]
    if any(
        isinstance(each, bool) or not isinstance(each, int | float) for each in (epsilon, delta)
    ):
        return False
    return bool(0 <= epsilon <= _LARGEST_FLOAT and 0 <= delta <= 1)


_LARGEST_FLOAT = float_info.max
"""A whole number above it, which JSON can spell, cannot be computed with."""


def _entry(services: Services, release_id: str, written: str) -> tuple[int, str] | None:
    """The entry that settled the release with this digest."""
    for entry in services.ledger.search([release_id]):
        draft = entry.draft
        if draft.release_id == release_id and draft.detail.get("body_sha256") == written:
            return entry.seq, entry.hash
    return None
