"""The hash chain: h_i = SHA-256(h_{i−1} ‖ canonical JSON of entry i), h_0 = 32 zero bytes."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from reticent_server.ledger.model import Draft, Entry

GENESIS = "0" * 64


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no blanks, ASCII only; ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str | bytes) -> str:
    """SHA-256, hexadecimal."""
    return sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def entry_row(seq: int, draft: Draft) -> dict[str, Any]:
    """What is hashed of an entry, and what `ledger export` prints beside the hash."""
    return {
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
