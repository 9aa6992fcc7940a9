# SPDX-License-Identifier: Apache-2.0
"""The entries of the chain: h_i = SHA-256(h_{i−1} ‖ canonical JSON of entry i), h_0 = 32 zero
bytes.

An entry is about an account (a budget or a charge, `ledger`) or about a row of another table (an
administrative act, `chain.acts`). The form that is hashed never changes: entries are kept for ever.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from reticent_server.domain.amounts import ZERO, Amounts

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before it has its place in the chain.

    account: whose `spent` changes by `change`; None for an administrative act, which has a
    `subject`: the row that it is about. at: None for settle, whose time is kept nowhere.
    """

    action: str
    account: str | None
    actor: str
    at: str | None
    release_id: str | None = None
    change: Amounts = ZERO
    detail: Mapping[str, Any] = field(default_factory=dict)
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An immutable draft at its place in the chain."""

    seq: int
    draft: Draft
    hash: str


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no blanks, ASCII only; ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str | bytes) -> str:
    """SHA-256, hexadecimal."""
    return sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def entry_row(seq: int, draft: Draft) -> dict[str, Any]:
    """What is hashed of an entry, and what `ledger export` prints beside the hash."""
    about = {} if draft.subject is None else {"subject": draft.subject}
    return about | {
        "seq": seq,
        "action": draft.action,
        "account": draft.account,
        "actor": draft.actor,
        "at": draft.at,
        "release_id": draft.release_id,
        "primary_change": draft.change.primary,
        "secondary_change": draft.change.secondary,
        "detail": dict(draft.detail),
    }


def entry_hash(previous: str, row: Mapping[str, Any]) -> str:
    """The hash of an entry after the entry whose hash is `previous`."""
    return sha256(bytes.fromhex(previous) + canonical_json(row).encode()).hexdigest()


def link(previous: str, seq: int, draft: Draft) -> Entry:
    """The draft as entry number `seq`."""
    return Entry(seq, draft, entry_hash(previous, entry_row(seq, draft)))


def follows(previous: str, entry: Entry) -> bool:
    """Whether the entry's hash is its own, after the entry whose hash is `previous`."""
    try:
        return entry.hash == entry_hash(previous, entry_row(entry.seq, entry.draft))
    except (ValueError, TypeError):
        return False  # a hash that is not hexadecimal, or a value that is no JSON
