# SPDX-License-Identifier: Apache-2.0
"""An OpenID provider by Authlib's authorization server, on 127.0.0.1: its rules, not ours, decide
which codes and clients it takes.

Two clients are registered: the server under test, and one of somebody else.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import AuthorizationCodeMixin, UserInfo
from authlib.oidc.core.grants import OpenIDCode

from support.processes.http_thread import Reply, answering
from support.processes.identity_provider import CLIENT, SECRET, rsa

REDIRECT = "https://reticent.example/console/sign-in/reply"
OTHER, OTHER_REDIRECT = "somebody-elses", "https://other.example/reply"


@dataclass
class RegisteredClient(ClientMixin):  # type: ignore[misc]
    """A confidential client with one redirection."""

    name: str
    redirect: str
    secret: str = SECRET

    def get_client_id(self) -> str:
        return self.name

    def get_default_redirect_uri(self) -> str:
        return self.redirect

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class IssuedCode(AuthorizationCodeMixin):  # type: ignore[misc]
    """A code, with what it was asked for by."""

    code: str
    client: str
    user: str
    given: dict[str, str]
    code_challenge: str | None = field(init=False)
    code_challenge_method: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.code_challenge = self.given.get("code_challenge")
        self.code_challenge_method = self.given.get("code_challenge_method")

    def get_redirect_uri(self) -> str | None:
        return self.given.get("redirect_uri")

    def get_scope(self) -> str | None:
        return self.given.get("scope")

    def get_nonce(self) -> str | None:
        return self.given.get("nonce")

    def get_auth_time(self) -> int:
        return int(time.time())

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class FormRequest(OAuth2Request):  # type: ignore[misc]
    """Of a query or a form. Authlib wants https, which a test on one machine has none of."""

    def __init__(self, method: str, path: str, given: dict[str, str], headers: Any) -> None:
        super().__init__(method, f"https://provider.example{path}", headers=headers)
        self.payload = BasicOAuth2Payload(given)
        self._given = given

    @property
    def args(self) -> dict[str, str]:
        return self._given

    @property
    def form(self) -> dict[str, str]:
        return self._given


class CertifiedProvider(AuthorizationServer):  # type: ignore[misc]
    """issuer, key: as of tokens. user: who signs in next."""

    issuer = ""
    user = "s-carol"

    def __init__(self) -> None:
        super().__init__()
        both = (RegisteredClient(CLIENT, REDIRECT), RegisteredClient(OTHER, OTHER_REDIRECT))
        self.clients = {each.name: each for each in both}
        self.codes: dict[str, IssuedCode] = {}
        self.register_token_generator("default", BearerTokenGenerator(lambda *_, **__: "opaque"))
        self.register_grant(_grant(self), [CodeChallenge(required=True), _identity(self)])

    def query_client(self, client_id: str) -> RegisteredClient | None:
        return self.clients.get(client_id)

    def save_token(self, token: Any, request: Any) -> None:
        pass

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def create_oauth2_request(self, request: Any) -> OAuth2Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> Reply:
        own = {"content-type", "content-length"}
        return status, body, [(k, v) for k, v in headers if k.lower() not in own]

    def reply(self, method: str, path: str, given: dict[str, str], headers: Any) -> Reply:
        if path == "/.well-known/openid-configuration":
            return 200, self._discovery(), []
        if path == "/keys":
            return 200, {"keys": [rsa(1).as_dict(private=False)]}, []
        asked = FormRequest(method, path, given, headers)
        if path == "/token":
            made: Reply = self.create_token_response(asked)
            return made
        try:
            grant = self.get_consent_grant(asked, end_user=self.user)
        except OAuth2Error as error:  # a page of the provider's own, which leads nowhere
            return 400, {"error": error.error}, []
        back: Reply = self.create_authorization_response(asked, grant_user=self.user, grant=grant)
        return back

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorise",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }


def _grant(provider: CertifiedProvider) -> type[AuthorizationCodeGrant]:
    class Codes(AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

        def save_authorization_code(self, code: str, request: Any) -> None:
            client = request.client.get_client_id()
            provider.codes[code] = IssuedCode(code, client, request.user, request.payload.data)

        def query_authorization_code(self, code: str, client: Any) -> IssuedCode | None:
            found = provider.codes.get(code)
            return found if found and found.client == client.get_client_id() else None

        def delete_authorization_code(self, authorization_code: IssuedCode) -> None:
            del provider.codes[authorization_code.code]

        def authenticate_user(self, authorization_code: IssuedCode) -> str:
            return authorization_code.user

    return Codes


def _identity(provider: CertifiedProvider) -> OpenIDCode:
    class Identity(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, nonce: str, request: Any) -> bool:
            return any(code.get_nonce() == nonce for code in provider.codes.values())

        def resolve_client_private_key(self, client: Any) -> dict[str, Any]:
            key: dict[str, Any] = rsa(1).as_dict(private=True)
            return key

        def get_client_algorithm(self, client: Any) -> str:
            return "RS256"

        def get_client_claims(self, client: Any) -> dict[str, Any]:
            now = int(time.time())
            name = client.get_client_id()
            return {"iss": provider.issuer, "aud": name, "iat": now, "exp": now + 3600}

        def generate_user_info(self, user: str, scope: str) -> UserInfo:
            return UserInfo(sub=user)

    return Identity(require_nonce=True)


@contextmanager
def certified_provider() -> Iterator[CertifiedProvider]:
    """It runs in a thread of this process."""
    provider = CertifiedProvider()
    with answering(provider.reply) as port:
        provider.issuer = f"http://127.0.0.1:{port}"
        yield provider
