# SPDX-License-Identifier: Apache-2.0
"""Signing in with a key, and signing out."""

from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from reticent_server.domain.roles import Act
from reticent_server.events import EventLogger
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import (
    Fields,
    Outdated,
    SignInNeeded,
    Visit,
    actor,
    check_origin,
    current_session,
    drop_cookie,
    is_in_the_clear,
    posted_for,
    set_cookie,
    signed_in,
    site_of,
)

log = EventLogger(__name__)

NO_KEY = "unknown"
"""Where attempts are counted whose key has no id that there is."""

_TOO_OFTEN = "There were too many attempts with this key. Wait {} seconds, then sign in again."
_STALE = "This page was open for too long. Please sign in now."


def entrance_of(name: str, act: Act) -> APIRouter:
    """The way into the pages below /name, for those who may do `act`, and out."""
    router = pages_router(name)
    router.add_api_route("/sign-in", sign_in_page, methods=["GET"], response_model=None)
    router.add_api_route("/sign-in", sign_in, methods=["POST"], response_model=None)

    @router.post("/sign-out")
    def sign_out(visit: Annotated[Visit, Depends(posted_for(act))]) -> Response:
        """Ends the session, for every copy of its cookie."""
        visit.services.sign_ins.end(visit.session.id, by=visit.actor)
        response = RedirectResponse(visit.site.identity.sign_in, 303)
        drop_cookie(visit.request, response)
        return response

    return router


def sign_in_page(request: Request) -> Response:
    """Asks for the key; starts a session, which its form belongs to."""
    with suppress(SignInNeeded):
        return signed_in(request).redirect(site_of(request).identity.home)
    ended = "Your session has ended. Sign in again." if "ended" in request.query_params else ""
    return _page(request, 200, request.query_params, notice=ended)


def sign_in(request: Request, fields: Fields) -> Response:
    """A session of whoever holds the key, always with a new id. So many attempts a minute go
    through for each key, and as many for all that are no keys: who knows no key keeps nobody else
    out."""
    site, before = site_of(request), current_session(request)
    try:
        if before is None:
            return _page(request, 403, fields, problem=_STALE)
        check_origin(request, fields, before)
    except Outdated as error:
        return _page(request, 403, fields, problem=error.detail)
    services, key = site.services, fields.get("key", "")
    wait = services.sign_in_limits.wait(services.access.known_key_id(key) or NO_KEY)
    if wait > 0:
        log.warning("sign_in_limited", site=site.identity.name)
        return _page(request, 429, fields, problem=_TOO_OFTEN.format(ceil(wait)))
    holder = services.access.authenticate(key)
    if holder is None or not holder.may(site.identity.act):
        log.warning("sign_in_refused", site=site.identity.name)
        return _page(request, 401, fields, problem=site.identity.wrong_key)
    if before.is_signed_in:
        services.sign_ins.end(before.id, by=actor(site, holder))
    session_id = services.sign_ins.begin(holder, by=actor(site, holder))
    response = RedirectResponse(inside(request, fields.get("next", "")), 303)
    set_cookie(request, response, site.sessions.seal(site.sessions.new(session_id)))
    return response


def sign_in_again(request: Request, status: int, problem: str) -> Response:
    """The page that asks who it is, with what went wrong."""
    return _page(request, status, {}, problem=problem)


def _page(
    request: Request, status: int, given: Mapping[str, str], *, problem: str = "", notice: str = ""
) -> Response:
    site, session = site_of(request), current_session(request)
    is_new = session is None or session.is_signed_in
    if session is None or is_new:
        session = site.sessions.new()
    context: dict[str, Any] = {"problem": problem, "notice": notice}
    context |= {
        "next": inside(request, given.get("next", "")),
        "in_the_clear": is_in_the_clear(request),
    }
    context["provider"] = site.flow is not None
    response = Visit(site, request, session).page("sign_in.html", status, **context)
    if is_new:
        set_cookie(request, response, site.sessions.seal(session))
    return response


def inside(request: Request, path: str) -> str:
    """A path of the site, else its first page: signing in leads nowhere else."""
    home = site_of(request).identity.home
    return path if path.startswith(home) and path.isascii() and path.isprintable() else home
