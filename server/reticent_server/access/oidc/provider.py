# SPDX-License-Identifier: Apache-2.0
"""The identity provider: what it says of itself (OpenID Connect Discovery 1.0) and its public keys
(RFC 7517)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key

from reticent_server.access.oidc.fetching import UNREACHABLE, Fetcher, Kept, safe_url
from reticent_server.domain.clock import Clock
from reticent_server.errors import Unavailable

_DISCOVERY = "/.well-known/openid-configuration"
_ASYMMETRIC = {"RSA", "EC", "OKP"}
_FAMILIES = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}
"""Kinds of keys, by how their algorithms begin (RFC 7518, RFC 8037)."""

MOST_KEYS = 64
"""Of a set; providers have two to ten."""

LEAST_RSA_BITS = 2048
"""NIST SP 800-131A: shorter keys are not used for signatures."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """authorization, token, keys, userinfo: URLs. auth_methods: how a client may prove itself at
    `token`.
    """

    authorization: str
    token: str
    keys: str
    auth_methods: Collection[str]
    userinfo: str | None = None


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that signs. kid, algorithm: as the set says; None where it says nothing."""

    kid: str | None
    algorithm: str | None
    key: Key


class Provider:
    """One issuer; nothing is fetched before something is asked."""

    def __init__(self, issuer: str, fetcher: Fetcher, clock: Clock) -> None:
        self.issuer = issuer
        self._fetcher = fetcher
        self._metadata = Kept(self._read_metadata, clock)
        self._keys = Kept(self._read_keys, clock)

    def metadata(self) -> Metadata:
        """Raises Unavailable."""
        return self._metadata.get()

    def key(self, kid: str | None, algorithm: str, *, is_own: bool = False) -> Key | None:
        """The key of that id for an algorithm; without an id, the only one there is for it.

        A key that is not known may be new: the set is then fetched again, but seldom, unless the
        token came from the provider itself (is_own), which nobody can make it send. Raises
        Unavailable.
        """
        signing_key = _chosen(self._keys.get(), kid, algorithm)
        return signing_key or _chosen(self._keys.get(sooner=True, at_once=is_own), kid, algorithm)

    def userinfo(self, access_token: str) -> dict[str, Any]:
        """What the provider says of whom a token is of (OpenID Connect Core 1.0, section 5.3);
        empty where it has no such endpoint. Raises Unavailable.
        """
        url = self.metadata().userinfo
        header = {"Authorization": f"Bearer {access_token}"}
        return {} if url is None else self._fetcher.get(url, header)

    def exchange(self, headers: Mapping[str, str], body: str) -> dict[str, Any]:
        """The reply of the token endpoint. Raises Unavailable."""
        return self._fetcher.post(self.metadata().token, headers, body)

    def close(self) -> None:
        """Ends the connections to the identity provider."""
        self._fetcher.close()

    def _read_metadata(self) -> Metadata:
        document = self._fetcher.get(self.issuer.rstrip("/") + _DISCOVERY)
        if document.get("issuer") != self.issuer:
            raise Unavailable(UNREACHABLE)
        methods = document.get("token_endpoint_auth_methods_supported")
        userinfo = document.get("userinfo_endpoint")
        return Metadata(
            safe_url(document.get("authorization_endpoint"), self.issuer),
            safe_url(document.get("token_endpoint"), self.issuer),
            safe_url(document.get("jwks_uri"), self.issuer),
            [m for m in methods if isinstance(m, str)] if isinstance(methods, list) else (),
            None if userinfo is None else safe_url(userinfo, self.issuer),
        )

    def _read_keys(self) -> tuple[PublicKey, ...]:
        entries = self._fetcher.get(self.metadata().keys).get("keys")
        if not isinstance(entries, list) or len(entries) > MOST_KEYS:
            raise Unavailable(UNREACHABLE)
        return tuple(key for key in map(_public_key, entries) if key is not None)


def _public_key(entry: Any) -> PublicKey | None:
    """A key that verifies signatures; None for others, and for what cannot be read."""
    if not isinstance(entry, dict) or entry.get("kty") not in _ASYMMETRIC:
        return None
    if entry.get("use", "sig") != "sig":
        return None
    public = {name: value for name, value in entry.items() if name not in {"d", "key_ops"}}
    try:
        key = import_key(public)
        too_short = isinstance(key, RSAKey) and key.public_key.key_size < LEAST_RSA_BITS
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    kid, algorithm = entry.get("kid"), entry.get("alg")
    return None if too_short else PublicKey(kid, algorithm, key)


def _chosen(keys: Collection[PublicKey], kid: str | None, algorithm: str) -> Key | None:
    family = _FAMILIES[algorithm[:2]]
    fit = [k for k in keys if k.algorithm in {None, algorithm} and isinstance(k.key, family)]
    if kid is not None:
        fit = [k for k in fit if k.kid == kid]
    return fit[0].key if len(fit) == 1 else None
