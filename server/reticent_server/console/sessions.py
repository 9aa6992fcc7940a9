"""Sessions of curators: a signed cookie, and a form token that belongs to it.

The cookie holds a random id, the public id of the key that was used to sign in, and two times; it is
authenticated by HMAC-SHA-256 under a key that is derived from the pepper of the secrets file, so
that every worker process reads it and no database row is written for looking. A session ends after
IDLE_SECONDS without a request, LONGEST_SECONDS after signing in, and when its key is revoked or
replaced, whichever is first.
"""

import hmac
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from secrets import token_hex

from reticent_server.domain.clock import Clock

IDLE_SECONDS = 30 * 60
LONGEST_SECONDS = 12 * 3600
REFRESH_SECONDS = 60

_SEALED = re.compile(
    r"(?P<id>[0-9a-f]{32})\.(?P<key>[0-9a-f]{16}|)\.(?P<begun>[0-9]{1,12})\.(?P<seen>[0-9]{1,12})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Session:
    """key_id: "" before signing in. begun, seen: seconds since the epoch."""

    id: str
    key_id: str
    begun: int
    seen: int


class Sessions:
    """Makes, seals and opens sessions."""

    def __init__(self, pepper: bytes, clock: Clock) -> None:
        self._key = hmac.digest(pepper, b"reticent: sessions of the console, version 1", sha256)
        self._clock = clock

    def new(self, key_id: str = "") -> Session:
        """A session of its own: signing in never keeps the id of the session before."""
        now = self._now()
        return Session(token_hex(16), key_id, now, now)

    def seal(self, session: Session) -> str:
        """The cookie's value."""
        text = f"{session.id}.{session.key_id}.{session.begun}.{session.seen}"
        return f"{text}.{self._mac('session', text)}"

    def open(self, cookie: str) -> Session | None:
        """The session of a cookie; None if it was not sealed here, or has ended."""
        text, _, mac = cookie.rpartition(".")
        if not (mac.isascii() and hmac.compare_digest(self._mac("session", text), mac)):
            return None
        match = _SEALED.fullmatch(text)
        if match is None:
            return None
        session = Session(match["id"], match["key"], int(match["begun"]), int(match["seen"]))
        now = self._now()
        ended = now - session.seen > IDLE_SECONDS or now - session.begun > LONGEST_SECONDS
        return None if ended else session

    def refreshed(self, session: Session) -> Session | None:
        """The session as seen now; None where its cookie is new enough."""
        now = self._now()
        return replace(session, seen=now) if now - session.seen > REFRESH_SECONDS else None

    def form_token(self, session: Session) -> str:
        """What every form of the session carries, and no other site can know."""
        return self._mac("form", f"{session.id}.{session.key_id}")

    def is_form_token(self, session: Session, token: str) -> bool:
        return token.isascii() and hmac.compare_digest(self.form_token(session), token)

    def _mac(self, purpose: str, text: str) -> str:
        message = f"{purpose}:{text}".encode("utf-8", "replace")
        return hmac.digest(self._key, message, sha256).hex()

    def _now(self) -> int:
        return int(self._clock.now().timestamp())
