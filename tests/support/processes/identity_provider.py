# SPDX-License-Identifier: Apache-2.0
"""An identity provider on 127.0.0.1: discovery, keys, the authorisation code flow with PKCE, and
tokens.

It shares no code with the server's side but the signatures (joserfc). It refuses what a provider
must refuse (another client, another redirection, a code that is used twice or by another verifier),
and tests may change what its tokens say.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode

from joserfc import jws
from joserfc.jwk import OctKey, RSAKey

from support.processes.http_thread import Reply, answering

CLIENT, SECRET = "reticent console", "a secret: with a colon"
Json = dict[str, Any]


@cache
def rsa(number: int) -> RSAKey:
    """A key pair for all tests of a process."""
    key: RSAKey = RSAKey.generate_key(2048, {"kid": f"k{number}", "alg": "RS256", "use": "sig"})
    return key


@dataclass
class Provider:
    """claims: of who signs in next, beside what every token has. now: its clock. change: what is
    done to claims last. asked: paths that were asked for. keys: numbers of the keys in the
    published set; key: of the one that signs. userinfo: what it says there.
    down: it replies 500 to everything.
    """

    issuer: str = ""
    redirect: str = ""
    claims: Json = field(default_factory=lambda: {"sub": "s-carol"})
    now: Callable[[], float] = time.time
    change: Callable[[Json], Json] = field(default=lambda claims: claims)
    asked: list[str] = field(default_factory=list)
    keys: list[int] = field(default_factory=lambda: [1])
    key: int = 1
    down: bool = False
    codes: dict[str, Json] = field(default_factory=dict)
    methods: list[str] = field(default_factory=lambda: ["client_secret_basic"])
    metadata: Json = field(default_factory=dict)
    userinfo: Json | None = None

    def token(self, header: Json | None = None, **claims: Any) -> str:
        """A token of this provider. A claim that is None is left out."""
        now = int(self.now())
        said = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 3600} | self.claims
        said = {n: v for n, v in self.change(said | claims).items() if v is not None}
        return signed(header or {"alg": "RS256", "kid": f"k{self.key}"}, said, rsa(self.key))

    def reply(self, method: str, path: str, given: dict[str, str], basic: str) -> tuple[int, Any]:
        """(status, JSON or the address to go to)."""
        self.asked.append(path)
        if self.down:
            return 500, {}
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._discovery()
            case "/keys":
                return 200, {"keys": [rsa(n).as_dict(private=False) for n in self.keys]}
            case "/authorise":
                return self._authorised(given)
            case "/token" if method == "POST":
                return self._exchanged(given, basic)
        known = self.userinfo if path == "/userinfo" else None
        return (404, {}) if known is None else (200, known)

    def _discovery(self) -> Json:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorise",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": self.methods,
            **({} if self.userinfo is None else {"userinfo_endpoint": f"{self.issuer}/userinfo"}),
        } | self.metadata

    def _authorised(self, given: dict[str, str]) -> tuple[int, Any]:
        wanted = {
            "client_id": CLIENT,
            "redirect_uri": self.redirect,
            "response_type": "code",
            "code_challenge_method": "S256",
        }
        if any(given.get(name) != value for name, value in wanted.items()):
            return 400, {"error": "invalid_request"}
        if "openid" not in given["scope"].split() or len(given["state"]) < 32:
            return 400, {"error": "invalid_request"}
        code = f"code-{len(self.codes)}"
        self.codes[code] = {"nonce": given["nonce"], "challenge": given["code_challenge"]}
        back = {"code": code, "state": given["state"], "iss": self.issuer}
        return 302, f"{self.redirect}?{urlencode(back)}"

    def _exchanged(self, given: dict[str, str], basic: str) -> tuple[int, Any]:
        begun = self.codes.pop(given.get("code", ""), None)
        verifier = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if _client(given, basic) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        if begun is None or begun["challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        if given.get("redirect_uri") != self.redirect:
            return 400, {"error": "invalid_grant"}
        token = self.token(nonce=begun["nonce"])
        return 200, {"id_token": token, "access_token": "opaque", "token_type": "Bearer"}


def _client(given: dict[str, str], basic: str) -> tuple[str, str]:
    if not basic:
        return given.get("client_id", ""), given.get("client_secret", "")
    name, _, secret = base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")
    return unquote(name), unquote(secret)


def signed(header: Json, claims: Json, key: RSAKey | OctKey) -> str:
    """A token under a key, with any header."""
    payload = json.dumps(claims)
    return jws.serialize_compact({"typ": "JWT"} | header, payload, key, algorithms=[header["alg"]])


def unsigned(header: Json, claims: Json, signature: bytes = b"") -> str:
    """A token that nobody has signed."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(p).rstrip(b"=").decode() for p in parts)


@contextmanager
def identity_provider(host: str = "127.0.0.1") -> Iterator[Provider]:
    """A provider that runs in a thread of this process. host: as it calls itself; "localhost" is,
    for a browser, another site than 127.0.0.1.
    """
    provider = Provider()

    def answer(method: str, path: str, given: Json, headers: Message) -> Reply:
        basic = headers.get("Authorization", "") if method == "POST" else ""
        status, content = provider.reply(method, path, given, basic)
        if isinstance(content, str):
            return status, "", [("Location", content)]
        return status, content, []

    with answering(answer) as port:
        provider.issuer = f"http://{host}:{port}"
        yield provider
