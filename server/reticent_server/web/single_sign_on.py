# SPDX-License-Identifier: Apache-2.0
"""Signing in at the identity provider, which sends the browser back with a code.

The provider's redirection comes from another site, so the session's cookie (SameSite=Strict) is not
sent with it. A cookie of its own (Lax, ten minutes) says in which browser the sign-in began; the
reply to the provider's redirection is a page that leads on, so that the next request comes from
this site.
"""

import re
from shlex import quote as shell_word
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from reticent_server.access.oidc.flow import Flow, attempt, is_reply
from reticent_server.access.oidc.single_sign_on import SingleSignOn
from reticent_server.access.oidc.tokens import Claims
from reticent_server.chain.entries import digest
from reticent_server.domain.principal import Principal
from reticent_server.errors import Unavailable, WeakSignIn
from reticent_server.events import EventLogger
from reticent_server.web.cookies import cookie
from reticent_server.web.entrance import inside, sign_in_again
from reticent_server.web.routing import NOTHING, ProviderRoute, pages_router
from reticent_server.web.site import Site
from reticent_server.web.visits import (
    actor,
    cookie_name,
    cookie_path,
    current_session,
    is_secure,
    set_cookie,
    site_of,
)

log = EventLogger(__name__)

FLOW_SECONDS = 600
"""In which somebody types a password and a second factor at the provider."""

_PURPOSE = "sign-in"
_FLOW = re.compile(
    r"(?P<id>[0-9a-f]{32})\.(?P<begun>[0-9]{1,12})\.(?P<before>[0-9a-f]{0,32})\."
    r"(?P<next>[!-~]{0,2000})",
    re.ASCII,
)
_OTHER = (
    "That sign-in did not begin in this browser, took too long, or was used before. Sign in again."
)
_REFUSED = "The identity provider did not say who you are. Sign in again."


def provider_router(name: str) -> APIRouter:
    """The way to the provider and back, below /name."""
    router = pages_router(name, ProviderRoute)
    router.add_api_route("/oidc/sign-in", begin, methods=["GET"], response_model=None)
    router.add_api_route("/oidc/callback", come_back, methods=["GET"], response_model=None)
    return router


def begin(request: Request) -> Response:
    """Sends the browser to the provider."""
    site, (flow, _) = site_of(request), _parts(request)
    flow_id, begun = site.sessions.new_flow()
    path = quote(inside(request, request.query_params.get("next", "")), safe="/")
    known = current_session(request)  # its cookie does not come with the provider's redirection
    before = known.id if known is not None and known.is_signed_in else ""
    sealed = site.sessions.sealed_text(_PURPOSE, f"{flow_id}.{begun}.{before}.{path[:2000]}")
    response = RedirectResponse(flow.address(attempt(site.sessions.mac, flow_id)), 303)
    response.set_cookie(
        _cookie(request),
        sealed,
        max_age=FLOW_SECONDS,
        path=cookie_path(request),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return response


def come_back(request: Request) -> Response:
    """A session of whoever the provider says has come back to the browser that began, once."""
    site, (flow, sso) = site_of(request), _parts(request)
    try:
        begun = _begun(site, request)
        claims = None if begun is None else _claims(site, flow, begun["id"], request)
        holder = None if claims is None else sso.holder(claims)
    except (Unavailable, WeakSignIn) as error:
        return _over(request, error.status, error.detail)
    if begun is None:
        return _over(request, 403, _OTHER)
    if claims is None:
        return _over(request, 401, _REFUSED)
    if holder is None or not holder.may(site.identity.act):
        return _over(request, 403, site.identity.nobody.format(shell_word(claims["sub"])))
    if begun["before"]:
        site.services.sign_ins.end(begun["before"], by=actor(site, holder))
    return _entered(site, request, holder, unquote(begun["next"]))


def _begun(site: Site, request: Request) -> re.Match[str] | None:
    """The sign-in that the browser's cookie names, if its state came back, and no reply was used
    before."""
    sealed = site.sessions.opened_text(_PURPOSE, cookie(request, _cookie(request)) or "")
    flow = None if sealed is None else _FLOW.fullmatch(sealed)
    if flow is None or not 0 <= site.sessions.age(int(flow["begun"])) <= FLOW_SECONDS:
        return None
    begun = attempt(site.sessions.mac, flow["id"])
    if not is_reply(begun, request.query_params):
        return None
    is_first = site.services.form_tokens.use(digest(begun.state), 2 * FLOW_SECONDS)
    return flow if is_first else None


def _claims(site: Site, flow: Flow, flow_id: str, request: Request) -> Claims | None:
    return flow.finished(attempt(site.sessions.mac, flow_id), request.query_params)


def _entered(site: Site, request: Request, holder: Principal, path: str) -> Response:
    session_id = site.services.sign_ins.begin(holder, by=actor(site, holder))
    template = site.templates.get_template("signed_in.html")
    response = HTMLResponse(template.render(path=inside(request, path), home=site.identity.home))
    set_cookie(request, response, site.sessions.seal(site.sessions.new(session_id)))
    return _without_flow(request, response)


def _over(request: Request, status: int, problem: str) -> Response:
    """The page to begin again; the sign-in that has failed is forgotten."""
    log.warning("sign_in_refused", site=site_of(request).identity.name, status=status)
    return _without_flow(request, sign_in_again(request, status, problem))


def _without_flow(request: Request, response: Response) -> Response:
    response.delete_cookie(
        _cookie(request),
        path=cookie_path(request),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return response


def _parts(request: Request) -> tuple[Flow, SingleSignOn]:
    """Raises NotFound where keys only are taken."""
    site = site_of(request)
    sso = site.services.single_sign_on
    if sso is None or site.flow is None:
        raise NOTHING
    return site.flow, sso


def _cookie(request: Request) -> str:
    return f"{cookie_name(request)}-sign-in"
