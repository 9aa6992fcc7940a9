# SPDX-License-Identifier: Apache-2.0
"""Tokens that the provider has signed: what must hold before a word of one is believed.

JWT (RFC 7519) under the best practice of RFC 8725: the algorithm is one of a list that the settings
give and never what the token says, all of them with public keys; the key is the provider's; issuer,
audience and expiry are there and right. An ID token of a sign-in also carries the nonce of that
sign-in.
"""

import json
from binascii import Error as Base64Error
from collections.abc import Callable, Collection, Mapping
from typing import Any

from authlib.oauth2.claims import JWTClaims
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode

from reticent_server.access.oidc.provider import Provider
from reticent_server.domain.clock import Clock
from reticent_server.events import EventLogger

LEEWAY_SECONDS = 60
"""By which the clocks of the provider and of this server may differ."""

LONGEST_TOKEN = 16 * 1024
"""Characters; servers and proxies take no longer header."""

LONGEST_SUBJECT = 255
"""Characters, by OpenID Connect Core 1.0, section 2."""

_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
_REFUSED = (JoseError, ValueError, TypeError, KeyError, RecursionError, OverflowError)

log = EventLogger(__name__)

Claims = Mapping[str, Any]


class Tokens:
    """Verifies tokens of one provider."""

    def __init__(self, provider: Provider, clock: Clock, algorithms: Collection[str]) -> None:
        self._provider = provider
        self._clock = clock
        self._algorithms = tuple(algorithms)

    def bearer(self, token: str, audience: str) -> Claims | None:
        """The claims of an access or ID token for an audience; None for one that is not valid.

        Raises Unavailable where the provider's keys cannot be had.
        """
        return self._verified(
            token, lambda claims, header: JWTClaims(claims, header, self._options(audience))
        )

    def signed_in(
        self, token: str, client_id: str, nonce: str, access_token: str | None
    ) -> Claims | None:
        """The claims of the ID token of a sign-in that began with `nonce`; None, Unavailable as
        above."""
        given = {"nonce": nonce, "client_id": client_id, "access_token": access_token}
        return self._verified(
            token,
            lambda claims, header: CodeIDToken(claims, header, self._options(client_id), given),
            is_own=True,
        )

    def _verified(
        self,
        token: str,
        rules: Callable[[dict[str, Any], dict[str, Any]], JWTClaims],
        *,
        is_own: bool = False,
    ) -> Claims | None:
        header = _header(token)
        if header is None or header["alg"] not in self._algorithms:
            return None
        key = self._provider.key(header.get("kid"), header["alg"], is_own=is_own)
        if key is None:
            return None
        try:
            claims = jwt.decode(token, key, algorithms=self._algorithms)
            now = int(self._clock.now().timestamp())
            rules(claims.claims, claims.header).validate(now, LEEWAY_SECONDS)
        except _REFUSED as error:
            log.warning("token_refused", error=type(error).__name__)
            return None
        return claims.claims if _is_of_somebody(claims.claims) else None

    def _options(self, audience: str) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "value": self._provider.issuer},
            "aud": {"essential": True, "value": audience},
            "exp": {"essential": True},
            "sub": {"essential": True},
        }


def _header(token: str) -> dict[str, Any] | None:
    """The header of a signed token in compact form, before anything is asked of anybody."""
    if len(token) > LONGEST_TOKEN or not token.isascii() or token.count(".") != 2:
        return None
    try:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0].encode("ascii")))
    except (ValueError, Base64Error, RecursionError):
        return None
    if not isinstance(header, dict) or not isinstance(header.get("alg"), str):
        return None
    kid, kind = header.get("kid"), header.get("typ", "JWT")
    if not isinstance(kid, str | None) or not isinstance(kind, str):
        return None
    return header if kind.lower() in _TYPES else None


def _is_of_somebody(claims: Claims) -> bool:
    """Whether there is a subject. (Logout tokens and other events are signed by the same keys.)"""
    subject = claims.get("sub")
    is_named = isinstance(subject, str) and 0 < len(subject) <= LONGEST_SUBJECT
    return is_named and "events" not in claims
