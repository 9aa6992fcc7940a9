# SPDX-License-Identifier: Apache-2.0
"""API keys: `rk_<id>_<secret>`, of which only an HMAC under the pepper is stored."""

import hmac
import re
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex, token_urlsafe

_NOBODYS = "-" * 64  # as long as a digest, and no hexadecimal number
_KEY = re.compile(r"rk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A new key; `token` is shown once and stored nowhere."""

    id: str
    token: str = field(repr=False)


def new_key() -> ApiKey:
    """A key with 256 random bits."""
    key_id = token_hex(8)
    return ApiKey(key_id, f"rk_{key_id}_{token_urlsafe(32)}")


def key_id(token: str) -> str | None:
    """The id inside a well-formed token, else None."""
    match = _KEY.fullmatch(token)
    return match[1] if match else None


def digest(pepper: bytes, token: str) -> str:
    """HMAC-SHA-256 of the whole token, hexadecimal."""
    return hmac.new(pepper, token.encode("utf-8", "replace"), sha256).hexdigest()


def matches(pepper: bytes, token: str, stored: str | None) -> bool:
    """Whether the token has the stored digest; as long when there is none (an unknown key id)."""
    return hmac.compare_digest(digest(pepper, token), stored or _NOBODYS)
