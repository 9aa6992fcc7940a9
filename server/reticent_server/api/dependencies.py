# SPDX-License-Identifier: Apache-2.0
"""What routes ask for: the services, the caller, and the idempotency key."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Annotated, cast

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from reticent_server.access.keys import key_id
from reticent_server.api.threads import ask_provider, read
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest, RateLimited, Unauthorized
from reticent_server.pipeline.services import Services
from reticent_server.web.validation import KEY


class _OneBearer(HTTPBearer):
    """No credentials where the header is sent twice: others on the way may have read the other
    one.
    """

    async def __call__(self, request: HTTPConnection) -> HTTPAuthorizationCredentials | None:
        if len(request.headers.getlist("authorization")) > 1:
            return None
        return await super().__call__(request)


_bearer = _OneBearer(
    scheme_name="HTTPBearer", auto_error=False, description="A key from `reticent analyst add`."
)
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def services_of(request: Request) -> Services:
    """The services that the application was made with. (async: one that is not gets a thread.)"""
    return cast(Services, request.app.state.services)


WithServices = Annotated[Services, Depends(services_of)]


async def authenticated(services: WithServices, credentials: _Credentials) -> Principal:
    """The holder of the key. Raises Unauthorized, always with the same words, or RateLimited."""
    look_up = ask_provider if _is_foreign(services, credentials) else read
    return await look_up(partial(_holder, services, credentials))


def _holder(services: Services, credentials: HTTPAuthorizationCredentials | None) -> Principal:
    holder = _authenticated(services, credentials.credentials) if credentials else None
    if holder is None:
        raise Unauthorized("Send a valid key in the header `Authorization: Bearer <key>`.")
    wait = services.rates.wait(holder.proof)
    if wait > 0:
        raise RateLimited("This key has asked too often; wait, then ask again.", ceil(wait))
    return holder


def _authenticated(services: Services, token: str) -> Principal | None:
    """By one of our keys, else by a token of the identity provider. Raises WeakSignIn,
    Unavailable.
    """
    sso = services.single_sign_on
    if sso is None or key_id(token) is not None:
        return services.access.authenticate(token)
    return sso.bearer(token)


def _is_foreign(services: Services, credentials: HTTPAuthorizationCredentials | None) -> bool:
    """Whether what is sent is no key of this server, so that the identity provider is asked."""
    if services.single_sign_on is None or credentials is None:
        return False
    return key_id(credentials.credentials) is None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The holder of a key who may do `act`. Raises WrongRole."""

    act: Act

    async def __call__(self, holder: Annotated[Principal, Depends(authenticated)]) -> Principal:
        holder.require(self.act)
        return holder


@dataclass(frozen=True, slots=True)
class AllowedLater:
    """As `Allowed`, when it is called: by a route whose request cannot be malformed, on the thread
    that it has anyway. (A thread for the key alone takes as long as reading the key.) A token has
    asked the identity provider before, on a thread that may wait."""

    act: Act

    async def __call__(
        self, services: WithServices, credentials: _Credentials
    ) -> Callable[[], Principal]:
        known = None
        if _is_foreign(services, credentials):
            known = await authenticated(services, credentials)

        def holder() -> Principal:
            principal = known or _holder(services, credentials)
            principal.require(self.act)
            return principal

        return holder


Caller = Annotated[Principal, Depends(Allowed(Act.ASK))]
Wisher = Annotated[Principal, Depends(Allowed(Act.REQUEST))]
Asker = Annotated[Callable[[], Principal], Depends(AllowedLater(Act.ASK))]


def idempotency_key(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            pattern=r"^[\x21-\x7e]{1,255}$",
            description="A retry with the same key gets the same stored release, at no new charge.",
        ),
    ] = None,
) -> str | None:
    """The key, 1 to 255 visible ASCII characters. Raises InvalidRequest where it is sent twice."""
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise InvalidRequest(KEY)
    return key


IdempotencyKey = Annotated[str | None, Depends(idempotency_key)]


async def answer_later(
    request: Request,
    _prefer: Annotated[
        str | None, Header(alias="Prefer", description="`respond-async`: 202 at once (RFC 7240).")
    ] = None,
) -> bool:
    """Whether the caller prefers to come back for the answer."""
    preferences = ",".join(request.headers.getlist("prefer")).split(",")
    return any(p.partition(";")[0].strip().lower() == "respond-async" for p in preferences)


AnswerLater = Annotated[bool, Depends(answer_later)]
