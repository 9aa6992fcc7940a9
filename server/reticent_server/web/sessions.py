# SPDX-License-Identifier: Apache-2.0
"""Sessions of people in a browser: a signed cookie, and form tokens that belong to it.

The cookie holds a session's id, whether somebody has signed in, and two times; it is authenticated
by HMAC-SHA-256 under a key that is derived from the pepper of the secrets, so that every worker
process reads it; a session goes on while its pepper is not retired. Whose session it is, and
whether it was ended, is in the database (access.sign_ins). It ends by itself after IDLE_SECONDS
without a request and LONGEST_SECONDS after signing in, and at once when its holder signs out or its
key is revoked or replaced.
"""

import hmac
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from secrets import token_hex

from reticent_server.access.peppers import PepperSource
from reticent_server.domain.clock import Clock

IDLE_SECONDS = 30 * 60
LONGEST_SECONDS = 12 * 3600
REFRESH_SECONDS = 60

_SEALED = re.compile(
    r"(?P<id>[0-9a-f]{32})\.(?P<who>[a-z]{1,16})\.(?P<begun>[0-9]{1,12})\.(?P<seen>[0-9]{1,12})",
    re.ASCII,
)
_NONCE = 32
"""Hexadecimal digits at the beginning of a form token that make it one of a kind."""


@dataclass(frozen=True, slots=True)
class Session:
    """is_signed_in: whether the database knows it. begun, seen: seconds since the epoch."""

    id: str
    is_signed_in: bool
    begun: int
    seen: int


class Sessions:
    """Makes, seals and opens sessions."""

    def __init__(self, peppers: PepperSource, clock: Clock, who: str = "curator") -> None:
        """who: whose sessions; those of others are not opened."""
        self._peppers = peppers
        self._clock = clock
        self._who = who

    def new(self, session_id: str | None = None) -> Session:
        """A session: of somebody who has signed in, under the id that the database has given; None:
        of nobody. Signing in never keeps the id of the session before."""
        now = self._now()
        return Session(session_id or token_hex(16), session_id is not None, now, now)

    def seal(self, session: Session) -> str:
        """The cookie's value."""
        who = self._who if session.is_signed_in else "nobody"
        text = f"{session.id}.{who}.{session.begun}.{session.seen}"
        return f"{text}.{self._mac('session', text)}"

    def open(self, cookie: str) -> Session | None:
        """The session of a cookie; None if it was not sealed here, or has ended by itself."""
        text, _, mac = cookie.rpartition(".")
        if not self._is_ours("session", text, mac):
            return None
        match = _SEALED.fullmatch(text)
        if match is None or match["who"] not in {self._who, "nobody"}:
            return None
        is_signed_in = match["who"] == self._who
        session = Session(match["id"], is_signed_in, int(match["begun"]), int(match["seen"]))
        now = self._now()
        ended = now - session.seen > IDLE_SECONDS or now - session.begun > LONGEST_SECONDS
        return None if ended else session

    def refreshed(self, session: Session) -> Session | None:
        """The session as seen now; None where its cookie is new enough."""
        now = self._now()
        return replace(session, seen=now) if now - session.seen > REFRESH_SECONDS else None

    def form_token(self, session: Session) -> str:
        """What a form of the session carries, and no other site can know; another for every
        form."""
        nonce = token_hex(_NONCE // 2)
        return nonce + self._mac("form", _form_text(session, nonce))

    def is_form_token(self, session: Session, token: str) -> bool:
        """Whether the token was made for a form of this session. (access.form_tokens knows of those
        that were used.)"""
        nonce = token[:_NONCE]
        return self._is_ours("form", _form_text(session, nonce), token[_NONCE:])

    def new_flow(self) -> tuple[str, int]:
        """(id, now) of a sign-in elsewhere that begins; now: seconds since the epoch."""
        return token_hex(16), self._now()

    def age(self, begun: int) -> int:
        """Seconds since then."""
        return self._now() - begun

    def mac(self, purpose: str, text: str) -> str:
        """What nobody else can compute of a text, in hexadecimal; another for each purpose."""
        return self._mac(purpose, text)

    def sealed_text(self, purpose: str, text: str) -> str:
        """A text that `opened_text` knows again."""
        return f"{text}.{self._mac(purpose, text)}"

    def opened_text(self, purpose: str, sealed: str) -> str | None:
        """The text; None if it was not sealed here, for that purpose."""
        text, _, mac = sealed.rpartition(".")
        return text if self._is_ours(purpose, text, mac) else None

    def _mac(self, purpose: str, text: str) -> str:
        return _mac(self._peppers().in_use, purpose, text)

    def _is_ours(self, purpose: str, text: str, mac: str) -> bool:
        """Whether it is of this server, under any pepper that it still has."""
        known = [_mac(pepper, purpose, text) for pepper in self._peppers().by_id.values()]
        return mac.isascii() and any(hmac.compare_digest(own, mac) for own in known)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _form_text(session: Session, nonce: str) -> str:
    return f"{session.id}.{session.is_signed_in}.{nonce}"


def _mac(pepper: bytes, purpose: str, text: str) -> str:
    key = hmac.digest(pepper, b"reticent: sessions of the console, version 2", sha256)
    return hmac.digest(key, f"{purpose}:{text}".encode("utf-8", "replace"), sha256).hex()
