# SPDX-License-Identifier: Apache-2.0
"""Signing in by the authorisation code flow: OpenID Connect Core 1.0, section 3.1, with PKCE
(RFC 7636).

A sign-in that has begun is one random id. State, nonce and the code's verifier are made from it
under a key of this server, so nothing is stored, and the browser keeps the sealed id
(console.single_sign_on).
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from reticent_server.access.oidc.provider import Provider
from reticent_server.access.oidc.tokens import Claims, Tokens
from reticent_server.errors import Unavailable

SCOPE = "openid email"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one sign-in sends and expects; all three cannot be guessed."""

    state: str
    nonce: str
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientRegistration:
    """This server as the provider knows it. secret: None for a public client."""

    client_id: str
    redirect_url: str
    secret: str | None = field(repr=False)


def attempt(mac: Callable[[str, str], str], flow_id: str) -> Attempt:
    """Of a sign-in's id, by a function of purpose and text that only this server can compute: 256
    bits each, in hexadecimal (RFC 7636 allows 43 to 128 characters)."""
    made = (mac(f"sign-in {purpose}", flow_id) for purpose in ("state", "nonce", "verifier"))
    return Attempt(*made)


def is_reply(begun: Attempt, query: Mapping[str, str]) -> bool:
    """Whether the browser came back from this attempt, and from no other."""
    return hmac.compare_digest(query.get("state", "").encode(), begun.state.encode())


class Flow:
    """Sends people to the provider, and reads what they come back with."""

    def __init__(
        self, provider: Provider, tokens: Tokens, own: ClientRegistration, acr: str
    ) -> None:
        self._provider = provider
        self._tokens = tokens
        self._own = own
        self._acr = acr

    def address(self, begun: Attempt) -> str:
        """Where the browser is sent. Raises Unavailable."""
        wishes = {"acr_values": self._acr} if self._acr else {}
        url: str = prepare_grant_uri(
            self._provider.metadata().authorization,
            client_id=self._own.client_id,
            response_type="code",
            redirect_uri=self._own.redirect_url,
            scope=SCOPE,
            state=begun.state,
            nonce=begun.nonce,
            code_challenge=create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
            **wishes,
        )
        return url

    def finished(self, begun: Attempt, query: Mapping[str, str]) -> Claims | None:
        """The claims of whoever came back with a reply to this attempt (`is_reply`); None for a
        refusal, or a token that is not valid. Raises Unavailable.
        """
        code, issuer = query.get("code", ""), query.get("iss", self._provider.issuer)
        if not code or issuer != self._provider.issuer:  # RFC 9207
            return None
        reply = self._exchanged(begun, code)
        token, access = reply.get("id_token"), reply.get("access_token")
        if not isinstance(token, str):
            return None
        given = access if isinstance(access, str) else None
        claims = self._tokens.signed_in(token, self._own.client_id, begun.nonce, given)
        if claims is None or "email" in claims or given is None:
            return claims
        return {**self._address(claims["sub"], given), **claims}

    def _address(self, subject: str, access_token: str) -> dict[str, object]:
        """The address of a provider that says it at UserInfo only, as it does by default where a
        token for that is issued (OpenID Connect Core 1.0, section 5.4); empty where it does not
        answer, or speaks of somebody else: who is linked by the subject needs none.
        """
        try:
            said = self._provider.userinfo(access_token)
        except Unavailable:
            return {}
        if said.get("sub") != subject:
            return {}
        return {name: said[name] for name in ("email", "email_verified") if name in said}

    def _exchanged(self, begun: Attempt, code: str) -> dict[str, object]:
        body = prepare_token_request(
            "authorization_code",
            code=code,
            redirect_uri=self._own.redirect_url,
            code_verifier=begun.verifier,
        )
        url = self._provider.metadata().token
        _, headers, sent = self._authentication().prepare("POST", url, {}, body)
        return self._provider.exchange(headers, sent)

    def _authentication(self) -> ClientAuth:
        """By the header (RFC 6749, section 2.3.1: both parts are encoded as in a form), unless the
        provider takes the form only."""
        own, methods = self._own, self._provider.metadata().auth_methods
        if own.secret is None:
            return ClientAuth(own.client_id, None, "none")
        if methods and "client_secret_basic" not in methods:
            return ClientAuth(own.client_id, own.secret, "client_secret_post")
        encoded = (quote(own.client_id, safe=""), quote(own.secret, safe=""))
        return ClientAuth(*encoded, "client_secret_basic")
