# SPDX-License-Identifier: Apache-2.0
"""Signing in with a key, and signing out."""

from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from typing import Annotated, Any

import structlog
from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse

from reticent_server.console.routing import pages_router
from reticent_server.console.visits import (
    HOME,
    SIGN_IN,
    Fields,
    Outdated,
    SignInNeeded,
    Visit,
    actor,
    check_origin,
    console_of,
    current_session,
    drop_cookie,
    is_in_the_clear,
    posted_for,
    set_cookie,
    signed_in,
)
from reticent_server.domain.roles import Act

router = pages_router()

log = structlog.get_logger(__name__)

NO_KEY = "unknown"
"""Where attempts are counted whose key has no id that there is."""

_WRONG = (
    "That is not a key for the console, which is for curators, budget officers and auditors. Keys come "
    "from `reticent curator add` and `rotate-key`."
)
_TOO_OFTEN = "There were too many attempts with this key. Wait {} seconds, then sign in again."
_STALE = "This page was open for too long. Please sign in now."


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """Asks for the key; starts a session, which its form belongs to."""
    with suppress(SignInNeeded):
        return signed_in(request).redirect(HOME)
    ended = "Your session has ended. Sign in again." if "ended" in request.query_params else ""
    return _page(request, 200, request.query_params, notice=ended)


@router.post("/sign-in")
def sign_in(request: Request, fields: Fields) -> Response:
    """A session of a curator, always with a new id. So many attempts a minute go through for each key, and
    as many for all that are no keys: who knows no key keeps nobody else out."""
    console, before = console_of(request), current_session(request)
    try:
        if before is None:
            return _page(request, 403, fields, problem=_STALE)
        check_origin(request, fields, before)
    except Outdated as error:
        return _page(request, 403, fields, problem=error.detail)
    services, key = console.services, fields.get("key", "")
    wait = services.sign_in_limits.wait(services.access.known_key_id(key) or NO_KEY)
    if wait > 0:
        log.warning("console_sign_in_limited")
        return _page(request, 429, fields, problem=_TOO_OFTEN.format(ceil(wait)))
    holder = services.access.authenticate(key)
    if holder is None or not holder.may(Act.LOOK):
        log.warning("console_sign_in_refused")
        return _page(request, 401, fields, problem=_WRONG)
    if before.is_signed_in:
        services.sign_ins.end(before.id, by=actor(holder))
    session_id = services.sign_ins.begin(holder, by=actor(holder))
    response = RedirectResponse(inside(fields.get("next", "")), 303)
    set_cookie(request, response, console.sessions.seal(console.sessions.new(session_id)))
    return response


@router.post("/sign-out")
def sign_out(visit: Annotated[Visit, Depends(posted_for(Act.LOOK))]) -> Response:
    """Ends the session, for every copy of its cookie."""
    visit.services.sign_ins.end(visit.session.id, by=visit.actor)
    response = RedirectResponse(SIGN_IN, 303)
    drop_cookie(visit.request, response)
    return response


def sign_in_again(request: Request, status: int, problem: str) -> Response:
    """The page that asks who it is, with what went wrong."""
    return _page(request, status, {}, problem=problem)


def _page(
    request: Request, status: int, given: Mapping[str, str], *, problem: str = "", notice: str = ""
) -> Response:
    console, session = console_of(request), current_session(request)
    is_new = session is None or session.is_signed_in
    if session is None or is_new:
        session = console.sessions.new()
    context: dict[str, Any] = {"problem": problem, "notice": notice}
    context |= {"next": inside(given.get("next", "")), "in_the_clear": is_in_the_clear(request)}
    sso = console.services.single_sign_on
    context["provider"] = sso is not None and sso.flow is not None
    response = Visit(console, request, session).page("sign_in.html", status, **context)
    if is_new:
        set_cookie(request, response, console.sessions.seal(session))
    return response


def inside(path: str) -> str:
    """A path of the console, else its first page: signing in leads nowhere else."""
    return path if path.startswith(HOME) and path.isascii() and path.isprintable() else HOME
